package participant

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"ledgerindexer/ledger"
)

// formats is a scope in the form of the API.
type formats struct {
	Event  EventFormat
	Update UpdateFormat
}

func formatsOf(scope ledger.Scope) (formats, error) {
	shape := TransactionShape("")
	switch scope.Shape {
	case ledger.ShapeACSDelta:
		shape = ShapeACSDelta
	case ledger.ShapeLedgerEffects:
		shape = ShapeLedgerEffects
	default:
		return formats{}, fmt.Errorf("--shape must be %s or %s, not %q", ledger.ShapeACSDelta, ledger.ShapeLedgerEffects,
			scope.Shape)
	}
	parties := set(scope.Parties)
	event := EventFormat{FiltersByParty: make(map[string]Filters, len(parties))}
	wanted := wantedContracts(scope)
	for _, party := range parties {
		event.FiltersByParty[party] = wanted
	}
	if len(parties) == 0 {
		event.FiltersForAnyParty = &wanted
	}
	update := UpdateFormat{IncludeTransactions: &TransactionFormat{EventFormat: event, TransactionShape: shape}}
	if scope.Reassignments {
		update.IncludeReassignments = &event
	}
	if scope.Topology {
		update.IncludeTopologyEvents = &TopologyFormat{&ParticipantAuthorizationFormat{Parties: parties}}
	}
	return formats{event, update}, nil
}

// encodedFormats translates the scope for reading. The JSON is encoded once: with thousands of parties encoding is
// costly, and equal scopes must give equal bytes.
func encodedFormats(scope ledger.Scope) (*formats, error) {
	f, err := formatsOf(scope)
	if err != nil {
		return nil, err
	}
	if f.Event.encoded, err = json.Marshal(f.Event); err == nil {
		f.Update.encoded, err = json.Marshal(f.Update)
	}
	if err != nil {
		return nil, fmt.Errorf("--parties, --templates and --interfaces must be UTF-8 text: %w", err)
	}
	return &f, nil
}

// wantedContracts returns the filters for one party (or any). An interface filter brings its views, but not the
// contract's payload. Without templates everything is wanted, so a wildcard is added to the interfaces.
func wantedContracts(scope ledger.Scope) Filters {
	var list []CumulativeFilter
	templates := set(scope.Templates)
	if len(templates) == 0 {
		list = append(list, CumulativeFilter{Wildcard: &WildcardFilter{IncludeCreatedEventBlob: scope.Blobs}})
	}
	for _, id := range templates {
		list = append(list, CumulativeFilter{Template: &TemplateFilter{TemplateID: id, IncludeCreatedEventBlob: scope.Blobs}})
	}
	for _, id := range set(scope.Interfaces) {
		list = append(list, CumulativeFilter{Interface: &InterfaceFilter{
			InterfaceID: id, IncludeInterfaceView: true, IncludeCreatedEventBlob: scope.Blobs,
		}})
	}
	return Filters{Cumulative: list}
}

func set(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
