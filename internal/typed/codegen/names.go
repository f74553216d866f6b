package codegen

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"ledgerindexer/internal/typed"
)

// View is a view that a type is written for.
type View struct {
	Schema, Name string
	Of           string // what it is of, for people
	Columns      []typed.Column
	Comments     map[string]string // of columns, by their names
}

// form is what a SQL type is in a language.
type form struct {
	name     string
	nullable bool // has a value for NULL itself
}

// formOf looks a column's type up. A type that is not known was published by another release of this program.
func formOf(forms map[string]form, v View, c typed.Column) (form, error) {
	kind := c.Type
	if strings.HasPrefix(kind, "numeric(") {
		kind = "numeric"
	}
	f, ok := forms[kind]
	if !ok {
		return form{}, fmt.Errorf("column %s of view %s.%s has type %q, which this program does not know", c.Name, v.Schema, v.Name, c.Type)
	}
	return f, nil
}

// names gives names that are not taken yet.
type names map[string]bool

// take returns a name, or where it is taken the name with a number behind it.
func (n names) take(name string) string {
	candidate := name
	for i := 2; n[candidate]; i++ {
		candidate = fmt.Sprintf("%s_%d", name, i)
	}
	n[candidate] = true
	return candidate
}

// capitalized makes a name of SQL one that other packages can use: initial_amount is InitialAmount, contract_id is ContractID. No word
// that a language reserves begins with a capital.
func capitalized(name string) string {
	var out strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		runes := []rune(word)
		switch {
		case word == "id":
			out.WriteString("ID")
			continue
		case word == "":
			continue
		case !unicode.IsLetter(runes[0]) && out.Len() > 0: // x_1 is no x1
			out.WriteByte('_')
		}
		runes[0] = unicode.ToUpper(runes[0])
		out.WriteString(strings.Map(inName, string(runes)))
	}
	text := out.String()
	if first, _ := utf8.DecodeRuneInString(text); !unicode.IsUpper(first) {
		return "X" + text
	}
	return text
}

func inName(r rune) rune {
	if unicode.IsLetter(r) || unicode.IsDigit(r) {
		return r
	}
	return '_'
}

// line returns a text without line breaks and other characters that are not to be seen.
func line(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)), " ")
}
