package participant

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/ledger"
)

// formats are the scope in the words of the API, made once: a continuation token is only good with the very same
// event format, so equal scopes give equal bytes.
type formats struct {
	event  jsontext.Value // EventFormat
	update jsontext.Value // UpdateFormat
}

type eventFormat struct {
	FiltersByParty     map[string]filters `json:"filtersByParty"`
	FiltersForAnyParty *filters           `json:"filtersForAnyParty,omitzero"`
	Verbose            bool               `json:"verbose"`
}

type filters struct {
	Cumulative []cumulativeFilter `json:"cumulative"`
}

type cumulativeFilter struct {
	IdentifierFilter identifierFilter `json:"identifierFilter"`
}

// identifierFilter is a sum type: exactly one is set.
type identifierFilter struct {
	Wildcard  *valued[wildcardFilter]  `json:"WildcardFilter,omitzero"`
	Template  *valued[templateFilter]  `json:"TemplateFilter,omitzero"`
	Interface *valued[interfaceFilter] `json:"InterfaceFilter,omitzero"`
}

type valued[T any] struct {
	Value T `json:"value"`
}

type wildcardFilter struct {
	Blob bool `json:"includeCreatedEventBlob"`
}

type templateFilter struct {
	TemplateID string `json:"templateId"`
	Blob       bool   `json:"includeCreatedEventBlob"`
}

type interfaceFilter struct {
	InterfaceID string `json:"interfaceId"`
	View        bool   `json:"includeInterfaceView"`
	Blob        bool   `json:"includeCreatedEventBlob"`
}

type updateFormat struct {
	Transactions  transactionFormat `json:"includeTransactions"`
	Reassignments *eventFormat      `json:"includeReassignments,omitzero"`
	Topology      *topologyFormat   `json:"includeTopologyEvents,omitzero"`
}

type transactionFormat struct {
	EventFormat eventFormat `json:"eventFormat"`
	Shape       string      `json:"transactionShape"`
}

type topologyFormat struct {
	Authorizations partyTopologyFormat `json:"includeParticipantAuthorizationEvents"`
}

type partyTopologyFormat struct {
	Parties []string `json:"parties"` // empty: all
}

// newFormats translates the scope (interface.md, "EventFormat" and "UpdateFormat"). The deprecated filter and
// verbose are never sent.
func newFormats(scope ledger.Scope) (formats, error) {
	shape := ""
	switch scope.Shape {
	case ledger.ShapeACSDelta:
		shape = "TRANSACTION_SHAPE_ACS_DELTA"
	case ledger.ShapeLedgerEffects:
		shape = "TRANSACTION_SHAPE_LEDGER_EFFECTS"
	default:
		return formats{}, fmt.Errorf("--shape must be %s or %s, not %q", ledger.ShapeACSDelta, ledger.ShapeLedgerEffects, scope.Shape)
	}
	parties := set(scope.Parties)
	event := eventFormat{FiltersByParty: map[string]filters{}}
	wanted := wantedContracts(scope)
	for _, party := range parties {
		event.FiltersByParty[party] = wanted
	}
	if len(parties) == 0 {
		event.FiltersForAnyParty = &wanted
	}
	update := updateFormat{Transactions: transactionFormat{EventFormat: event, Shape: shape}}
	if scope.Reassignments {
		update.Reassignments = &event
	}
	if scope.Topology {
		update.Topology = &topologyFormat{Authorizations: partyTopologyFormat{Parties: parties}}
	}
	var out formats
	var err error
	if out.event, err = json.Marshal(event, json.Deterministic(true)); err == nil {
		out.update, err = json.Marshal(update, json.Deterministic(true))
	}
	if err != nil {
		return formats{}, fmt.Errorf("--parties, --templates and --interfaces must be UTF-8 text: %w", err)
	}
	return out, nil
}

// wantedContracts is what one party (or any) is asked for. An interface brings its views, but not the payload of
// the contract: without templates everything is wanted, so a wildcard goes with the interfaces.
func wantedContracts(scope ledger.Scope) filters {
	var list []cumulativeFilter
	add := func(f identifierFilter) { list = append(list, cumulativeFilter{IdentifierFilter: f}) }
	templates := set(scope.Templates)
	if len(templates) == 0 {
		add(identifierFilter{Wildcard: &valued[wildcardFilter]{wildcardFilter{Blob: scope.Blobs}}})
	}
	for _, id := range templates {
		add(identifierFilter{Template: &valued[templateFilter]{templateFilter{TemplateID: id, Blob: scope.Blobs}}})
	}
	for _, id := range set(scope.Interfaces) {
		add(identifierFilter{Interface: &valued[interfaceFilter]{interfaceFilter{InterfaceID: id, View: true, Blob: scope.Blobs}}})
	}
	return filters{Cumulative: list}
}

// set sorts a list and leaves repetitions out.
func set(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
