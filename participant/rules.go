package participant

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// RequestError is a request that breaks a rule of the interface. It was not sent.
type RequestError struct {
	Field   string // as the interface names it, such as "updateFormat.includeTransactions"
	Rule    string // what is required
	Section string // of interface.md, such as "endpoint 2"
}

func (e *RequestError) Error() string {
	return fmt.Sprintf("%s %s (interface.md, %s)", e.Field, e.Rule, e.Section)
}

// The sections of interface.md that rules come from.
const (
	sectionPackage  = "GET /v2/packages/{package-id}, which is not in it"
	sectionContract = "endpoint 3"
	sectionVetting  = "endpoint 4"
	sectionUpdate   = "endpoint 5"
	sectionVetted   = `"VettedPackages"` // interface.md has no endpoint that lists them
)

// rules checks a request and keeps the first broken rule in err.
type rules struct {
	section string
	err     error
}

func (r *rules) must(ok bool, field, rule string, args ...any) {
	if !ok && r.err == nil {
		r.err = &RequestError{Field: field, Rule: fmt.Sprintf(rule, args...), Section: r.section}
	}
}

// text checks that a text is valid in JSON.
func (r *rules) text(field, text string) {
	r.must(utf8.ValidString(text), field, "must be UTF-8 text, and is %s", shown(text))
}

func (r *rules) id(field, id string) {
	r.must(id != "", field, "must not be empty")
	r.text(field, id)
}

// ids checks the identifiers of a list, which may be empty.
func (r *rules) ids(field string, list []string) {
	for i, id := range list {
		if id == "" || !utf8.ValidString(id) {
			r.id(fmt.Sprintf("%s[%d]", field, i), id)
			return
		}
	}
}

// shown quotes an id, shortened if it is long, for an error.
func shown(id string) string {
	const most = 150
	if len(id) > most {
		return strconv.Quote(strings.ToValidUTF8(id[:most], "")) + "…"
	}
	return strconv.Quote(id)
}
