package audit

import (
	"encoding/json"
	"maps"

	"ledgerindexer/ledger"
)

// alike reports whether two values of a column, as text, say the same: JSON and numbers as ledger.AlikeJSON says.
func alike(c column, a, b *string) bool {
	switch {
	case a == nil && b == nil:
		return true
	case c.name == "extra":
		return ledger.AlikeExtra(jsonOf(a), jsonOf(b))
	case a == nil || b == nil:
		return false
	case *a == *b:
		return true
	case c.name == exactColumn:
		return alikeExact(*a, *b)
	case c.typeName == "jsonb" || c.typeName == "numeric":
		return ledger.AlikeJSON(jsonOf(a), jsonOf(b))
	}
	return false
}

// alikeExact reports whether two rows' exact values say the same, each of which is the JSON of a field.
func alikeExact(a, b string) bool {
	var left, right map[string]string
	return json.Unmarshal([]byte(a), &left) == nil && json.Unmarshal([]byte(b), &right) == nil &&
		maps.EqualFunc(left, right, func(x, y string) bool { return ledger.AlikeJSON(ledger.JSON(x), ledger.JSON(y)) })
}

func jsonOf(text *string) ledger.JSON {
	if text == nil {
		return nil
	}
	return ledger.JSON(*text)
}
