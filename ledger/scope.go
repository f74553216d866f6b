package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// Shape is the transaction shape that is requested.
type Shape string

// The transaction shapes. ACS delta brings creations and archivals of stakeholders; ledger effects brings
// exercises, and creations that were only witnessed.
const (
	ShapeACSDelta      Shape = "acs-delta"
	ShapeLedgerEffects Shape = "ledger-effects"
)

// Scope is what is read of the ledger. Rows are complete for it, not beyond it. A database has one scope in force;
// after it was changed, what was stored before is of the earlier one.
type Scope struct {
	Parties       []string `json:"parties"`    // empty: any party, which needs the right to read as any
	Templates     []string `json:"templates"`  // "#package-name:Module:Entity"; with Interfaces empty too: all
	Interfaces    []string `json:"interfaces"` // their views are asked for
	Shape         Shape    `json:"shape"`
	Blobs         bool     `json:"blobs"`         // ask for createdEventBlob
	Reassignments bool     `json:"reassignments"` // ask for reassignments
	Topology      bool     `json:"topology"`      // ask for topology events
}

// Canonical returns the scope as JSON. Equal scopes have equal bytes: lists are sorted, without repetition.
func (s Scope) Canonical() []byte {
	sorted := func(list []string) []string {
		list = slices.Compact(slices.Sorted(slices.Values(list)))
		if list == nil {
			return []string{}
		}
		return list
	}
	s.Parties, s.Templates, s.Interfaces = sorted(s.Parties), sorted(s.Templates), sorted(s.Interfaces)
	text, err := json.Marshal(s)
	if err != nil {
		panic("ledger: a scope always has a JSON form: " + err.Error()) // strings and booleans only
	}
	return text
}

// Hash returns 32 hexadecimal digits that identify the scope: the first half of the SHA-256 of Canonical.
func (s Scope) Hash() string {
	sum := sha256.Sum256(s.Canonical())
	return hex.EncodeToString(sum[:16])
}

// form returns the settings that decide in which form something is shown, as flags.
func (s Scope) form() []string {
	return []string{"--shape " + string(s.Shape), fmt.Sprintf("--blobs=%t", s.Blobs),
		fmt.Sprintf("--reassignments=%t", s.Reassignments), fmt.Sprintf("--topology=%t", s.Topology)}
}

// OtherForm names the settings, as flags, by which what two scopes both show is not shown in the same form.
func (s Scope) OtherForm(other Scope) (flags []string) {
	for _, setting := range beyond(s.form(), other.form()) {
		flags = append(flags, setting[:strings.IndexAny(setting, " =")])
	}
	return flags
}

// LeftOut names what a scope leaves out that a database can't be widened by later, each with the flag that reads it.
func (s Scope) LeftOut() (list []string) {
	for _, part := range []struct {
		read bool
		what string
	}{
		{
			s.Shape == ShapeLedgerEffects,
			"exercises: choices, who acted, arguments, results and why tokens moved (--shape " + string(ShapeLedgerEffects) +
				")",
		},
		{s.Blobs, "created-event blobs (--blobs)"},
		{s.Reassignments, "reassignments (--reassignments)"},
		{s.Topology, "topology events (--topology)"},
	} {
		if !part.read {
			list = append(list, part.what)
		}
	}
	return list
}

// Lacks names the settings by which a scope does not show all that another one shows, as flags; empty: it shows all of
// that, in the same form. A scope may show more only by further parties, templates and interfaces.
func (s Scope) Lacks(of Scope) (flags []string) {
	holds := func(list, other []string) bool { return len(beyond(other, list)) == 0 }
	all := func(list, other []string) bool { // an empty list shows all
		return len(list) == 0 || len(other) > 0 && holds(list, other)
	}
	for _, names := range []struct {
		flag  string
		shown bool
	}{
		{"--parties", all(s.Parties, of.Parties)}, {"--templates", all(s.Templates, of.Templates)},
		{"--interfaces", holds(s.Interfaces, of.Interfaces)},
	} {
		if !names.shown {
			flags = append(flags, names.flag)
		}
	}
	return append(flags, s.OtherForm(of)...)
}

// Added returns what a scope shows beyond an earlier one, in the same form, as a scope: either its further parties or
// its further templates. ok is false where there is no such scope, because also something else differs.
func (s Scope) Added(before Scope) (added Scope, ok bool) {
	for _, names := range []func(*Scope) *[]string{
		func(s *Scope) *[]string { return &s.Parties },
		func(s *Scope) *[]string { return &s.Templates },
	} {
		added, widened := s, before
		was, now := *names(&before), *names(&s)
		further := beyond(now, was)
		*names(&added), *names(&widened) = further, now
		if len(was) > 0 && len(further) > 0 && widened.Hash() == s.Hash() && len(s.Lacks(before)) == 0 {
			return added, true
		}
	}
	return Scope{}, false
}

// Differences describes the settings in which two scopes differ, as flags: what this one has, and what the other one
// has.
func (s Scope) Differences(other Scope) (here, there string) {
	return strings.Join(s.apart(other), " "), strings.Join(other.apart(s), " ")
}

// mostApart is how many names of a list are told; a scope may have thousands.
const mostApart = 5

// apart returns what a scope has otherwise than another one.
func (s Scope) apart(other Scope) (settings []string) {
	for _, list := range []struct {
		flag       string
		own, other []string
		empty      string
	}{
		{"--parties", s.Parties, other.Parties, "(any)"}, {"--templates", s.Templates, other.Templates, "(no list)"},
		{"--interfaces", s.Interfaces, other.Interfaces, "(none)"},
	} {
		only, lacks := onlyIn(list.own, list.other), onlyIn(list.other, list.own)
		switch {
		case only != "":
			settings = append(settings, list.flag+" "+only)
		case lacks != "" && len(list.own) == 0:
			settings = append(settings, list.flag+" "+list.empty)
		case lacks != "":
			settings = append(settings, list.flag+" (without "+lacks+")")
		}
	}
	return append(settings, beyond(s.form(), other.form())...)
}

// beyond returns the names of a list that another one does not have, in their order.
func beyond(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return slices.Contains(other, name) })
}

// onlyIn lists the names that only the first of two lists has; empty: there are none.
func onlyIn(list, other []string) string {
	only := slices.Compact(slices.Sorted(slices.Values(beyond(list, other))))
	text := strings.Join(only[:min(len(only), mostApart)], ",")
	if more := len(only) - mostApart; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
