package sandbox

import (
	"encoding/json"
	"fmt"
)

// The shapes of transactions.
const (
	ACSDelta      = shapeACSDelta
	LedgerEffects = shapeLedgerEffects
)

// Scope is what an indexer asks for. The zero value asks for everything, of any
// party, in the ACS_DELTA shape and without blobs.
type Scope struct {
	// Parties whose filters are asked for; none means any party.
	Parties []string
	// Templates, as "#package-name:Module:Entity"; none means all.
	Templates []string
	// Interfaces, in the same form, whose views are asked for as well.
	Interfaces []string
	// InterfacesOnly leaves out the wildcard where there are no templates, so that
	// only contracts with one of the interfaces come, without create arguments.
	InterfacesOnly bool
	// Shape of transactions: ACSDelta (default) or LedgerEffects.
	Shape string
	// Blobs asks for createdEventBlob.
	Blobs bool
	// NoReassignments and NoTopology leave those updates out.
	NoReassignments, NoTopology bool
	// Version is the serving participant's release; default "3.5".
	Version string
}

func (s Scope) shape() string {
	if s.Shape == "" {
		return ACSDelta
	}
	return s.Shape
}

func (s Scope) features() *features {
	if s.Version == "" {
		s.Version = "3.5"
	}
	f := featuresOf(s.Version)
	return &f
}

func (s Scope) eventFormat() *eventFormat {
	var list []clause
	if len(s.Templates) == 0 && !s.InterfacesOnly {
		list = append(list, clause{Blob: s.Blobs})
	}
	for _, id := range s.Templates {
		list = append(list, clause{Kind: clauseTemplate, ID: id, Blob: s.Blobs})
	}
	for _, id := range s.Interfaces {
		list = append(list, clause{Kind: clauseInterface, ID: id, Blob: s.Blobs, View: true})
	}
	f := &eventFormat{ByParty: map[string][]clause{}}
	if len(s.Parties) == 0 {
		f.Any = list
	}
	for _, p := range s.Parties {
		f.ByParty[p] = list
	}
	return f
}

func (s Scope) updateFormat() *updateFormat {
	f := &updateFormat{Transactions: s.eventFormat(), Shape: s.shape(), Topology: !s.NoTopology}
	if !s.NoReassignments {
		f.Reassignments = s.eventFormat()
	}
	return f
}

// EventFormat returns the EventFormat that asks for the scope, as JSON.
func (s Scope) EventFormat() string { return mustJSON(s.eventFormat().request()) }

// UpdateFormat returns the UpdateFormat that asks for the scope, as JSON.
func (s Scope) UpdateFormat() string {
	f := s.updateFormat()
	out := map[string]any{
		"includeTransactions": map[string]any{"eventFormat": f.Transactions.request(), "transactionShape": f.Shape},
	}
	if f.Reassignments != nil {
		out["includeReassignments"] = f.Reassignments.request()
	}
	if f.Topology {
		out["includeTopologyEvents"] = map[string]any{
			"includeParticipantAuthorizationEvents": map[string]any{"parties": []string{}},
		}
	}
	return mustJSON(out)
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // of maps and strings: can not happen
	}
	return string(b)
}

func (f *eventFormat) request() map[string]any {
	out := map[string]any{"filtersByParty": map[string]any{}, "verbose": f.Verbose}
	filters := func(list []clause) map[string]any {
		cumulative := []any{}
		for _, c := range list {
			name, body := "WildcardFilter", map[string]any{"includeCreatedEventBlob": c.Blob}
			switch c.Kind {
			case clauseTemplate:
				name = "TemplateFilter"
				body["templateId"] = c.ID
			case clauseInterface:
				name = "InterfaceFilter"
				body["interfaceId"], body["includeInterfaceView"] = c.ID, c.View
			}
			cumulative = append(cumulative,
				map[string]any{"identifierFilter": map[string]any{name: map[string]any{"value": body}}})
		}
		return map[string]any{"cumulative": cumulative}
	}
	for p, list := range f.ByParty {
		out["filtersByParty"].(map[string]any)[p] = filters(list)
	}
	if f.Any != nil {
		out["filtersForAnyParty"] = filters(f.Any)
	}
	return out
}

// compiled returns the filters of a scope that a server would accept; any other is
// a mistake of the caller.
func (s Scope) compiled(n names) *updateFilter {
	n.packageIDs = s.Version == "3.4"
	f, err := n.compileUpdates(s.updateFormat())
	if err != nil {
		panic(fmt.Sprintf("sandbox: a server would refuse this scope: %v", err))
	}
	return f
}
