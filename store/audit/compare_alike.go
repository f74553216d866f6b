package audit

import (
	"encoding/hex"
	"slices"
	"strings"

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
	case c.typeName == "jsonb" || c.typeName == "numeric":
		return ledger.AlikeJSON(jsonOf(a), jsonOf(b))
	case c.name == exactColumn:
		left, err := hex.DecodeString(*a)
		right, wrong := hex.DecodeString(*b)
		return err == nil && wrong == nil && ledger.AlikeJSON(left, right) // else one is a digest
	}
	return false
}

// alikeFields reports whether two lists of exact values say the same, each of them with the name of its field.
func alikeFields(a, b *string) bool {
	if a == nil || b == nil {
		return false
	}
	return slices.EqualFunc(strings.Split(*a, ", "), strings.Split(*b, ", "), func(x, y string) bool {
		field, left, _ := strings.Cut(x, " ")
		other, right, _ := strings.Cut(y, " ")
		return field == other && alike(column{name: exactColumn}, &left, &right)
	})
}

func jsonOf(text *string) ledger.JSON {
	if text == nil {
		return nil
	}
	return ledger.JSON(*text)
}

// shownText returns a value that differs as it is shown: long binary ones by their digest.
func shownText(c column, value *string) *string {
	if c.name != exactColumn || value == nil {
		return value
	}
	bytes, err := hex.DecodeString(*value)
	if err != nil {
		return value
	}
	return digest(bytes, digestAbove)
}
