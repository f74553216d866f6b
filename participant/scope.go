package participant

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerindexer/ledger"
)

// formats is a scope in the form of the API (interface.md, "EventFormat", "UpdateFormat"). The JSON is made once: with
// thousands of parties that is costly, and a continuation token is valid only with exactly the same format, so equal
// scopes must give equal bytes.
type formats struct {
	Event, Update jsontext.Value
}

type object = map[string]any

func formatsOf(scope ledger.Scope) (*formats, error) {
	shape := ""
	switch scope.Shape {
	case ledger.ShapeACSDelta:
		shape = "TRANSACTION_SHAPE_ACS_DELTA"
	case ledger.ShapeLedgerEffects:
		shape = "TRANSACTION_SHAPE_LEDGER_EFFECTS"
	default:
		return nil, fmt.Errorf("--shape must be %s or %s, not %q", ledger.ShapeACSDelta, ledger.ShapeLedgerEffects,
			scope.Shape)
	}
	parties, byParty := set(scope.Parties), object{}
	wanted := object{"cumulative": wantedContracts(scope)}
	for _, party := range parties {
		byParty[party] = wanted
	}
	event := object{"filtersByParty": byParty, "verbose": false} // without labels of record fields and the like
	if len(parties) == 0 {
		event["filtersForAnyParty"] = wanted
	}
	update := object{"includeTransactions": object{"eventFormat": event, "transactionShape": shape}}
	if scope.Reassignments {
		update["includeReassignments"] = event
	}
	if scope.Topology {
		update["includeTopologyEvents"] = object{"includeParticipantAuthorizationEvents": object{"parties": parties}}
	}
	var f formats
	var err error
	if f.Event, err = json.Marshal(event, json.Deterministic(true)); err == nil {
		f.Update, err = json.Marshal(update, json.Deterministic(true))
	}
	if err != nil {
		return nil, fmt.Errorf("--parties, --templates and --interfaces must be UTF-8 text: %w", err)
	}
	return &f, nil
}

// wantedContracts returns the filters for one party (or any). An interface filter brings its views, but not the
// contract's payload. Without templates everything is wanted, so a wildcard is added to the interfaces.
func wantedContracts(scope ledger.Scope) (list []object) {
	add := func(variant string, members object) {
		members["includeCreatedEventBlob"] = scope.Blobs
		list = append(list, object{"identifierFilter": object{variant: object{"value": members}}})
	}
	templates := set(scope.Templates)
	if len(templates) == 0 {
		add("WildcardFilter", object{})
	}
	for _, id := range templates {
		add("TemplateFilter", object{"templateId": id})
	}
	for _, id := range set(scope.Interfaces) {
		add("InterfaceFilter", object{"interfaceId": id, "includeInterfaceView": true})
	}
	return list
}

func set(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
