package participant

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ledgerindexer/ledger"
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
	sectionSnapshot = "endpoint 1"
	sectionUpdates  = "endpoint 2"
	sectionPackage  = "GET /v2/packages/{package-id}, which is not in it"
	sectionContract = "endpoint 3"
	sectionVetting  = "endpoint 4"
	sectionUpdate   = "endpoint 5"
	sectionLimits   = `"Limits"`
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

func (r *rules) offset(field string, offset ledger.Offset) {
	r.must(offset >= 0, field, "must not be negative, and is %d", offset)
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

// formats checks that either a format or its deprecated form is set.
func (r *rules) formats(name string, given bool, filter *TransactionFilter, verbose *bool) {
	r.must(!given || filter == nil, name, "must be unset where filter is set")
	r.must(!given || verbose == nil, name, "must be unset where verbose is set")
	r.must(given || filter != nil, name, "must be set where filter is not")
	if filter != nil {
		r.filters("filter", filter.FiltersByParty, filter.FiltersForAnyParty)
	}
}

func (f *TransactionFilter) hasTemplates() bool {
	isTemplate := func(c CumulativeFilter) bool { return c.Template != nil }
	for _, filters := range f.FiltersByParty {
		if slices.ContainsFunc(filters.Cumulative, isTemplate) {
			return true
		}
	}
	return f.FiltersForAnyParty != nil && slices.ContainsFunc(f.FiltersForAnyParty.Cumulative, isTemplate)
}

func (r *rules) eventFormat(field string, f *EventFormat) {
	if f.encoded == nil {
		r.filters(field, f.FiltersByParty, f.FiltersForAnyParty)
	}
}

func (r *rules) filters(field string, byParty map[string]Filters, anyParty *Filters) {
	r.must(len(byParty) > 0 || anyParty != nil, field,
		"must have filtersByParty or filtersForAnyParty, and both are empty")
	for party, filters := range byParty {
		at := field + ".filtersByParty"
		r.must(party != "", at, "must not name an empty party")
		r.must(utf8.ValidString(party), at, "must name parties in UTF-8 text, and one is %s", shown(party))
		if i, rule := filters.broken(); rule != "" {
			r.must(false, fmt.Sprintf("%s[%s].cumulative[%d]", at, shown(party), i), "%s", rule)
		}
		if r.err != nil {
			return
		}
	}
	if anyParty == nil {
		return
	}
	if i, rule := anyParty.broken(); rule != "" {
		r.must(false, fmt.Sprintf("%s.filtersForAnyParty.cumulative[%d]", field, i), "%s", rule)
	}
}

// broken returns the first filter that breaks a rule, and the rule; an empty rule if none does.
func (f Filters) broken() (index int, rule string) {
	for i, filter := range f.Cumulative {
		if rule := filter.broken(); rule != "" {
			return i, rule
		}
	}
	return 0, ""
}

func (f CumulativeFilter) broken() (rule string) {
	variants, id := 0, ""
	if f.Wildcard != nil {
		variants++
	}
	if f.Template != nil {
		variants, id = variants+1, f.Template.TemplateID
	}
	if f.Interface != nil {
		variants, id = variants+1, f.Interface.InterfaceID
	}
	switch {
	case variants > 1:
		return fmt.Sprintf("must hold one variant, and holds %d", variants)
	case f.Template == nil && f.Interface == nil:
		return ""
	case !utf8.ValidString(id):
		return "must be UTF-8 text, and is " + shown(id)
	}
	if _, err := ledger.ParseTemplateID(id); err != nil {
		return "must be of the form package:Module:Entity, and is " + shown(id)
	}
	return ""
}

func (r *rules) updateFormat(field string, f *UpdateFormat) {
	if f.encoded != nil {
		return
	}
	if t := f.IncludeTransactions; t != nil {
		at := field + ".includeTransactions"
		r.must(t.TransactionShape == ShapeACSDelta || t.TransactionShape == ShapeLedgerEffects, at+".transactionShape",
			"must be %s or %s, and is %s", ShapeACSDelta, ShapeLedgerEffects, shown(string(t.TransactionShape)))
		r.eventFormat(at+".eventFormat", &t.EventFormat)
	}
	if f.IncludeReassignments != nil {
		r.eventFormat(field+".includeReassignments", f.IncludeReassignments)
	}
	if f.IncludeTopologyEvents != nil && f.IncludeTopologyEvents.IncludeParticipantAuthorizationEvents != nil {
		r.ids(field+".includeTopologyEvents.includeParticipantAuthorizationEvents.parties",
			f.IncludeTopologyEvents.IncludeParticipantAuthorizationEvents.Parties)
	}
}
