package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// Scope is what tests write in, unless they are about scopes.
var Scope = ledger.Scope{Shape: ledger.ShapeACSDelta, Reassignments: true}

// Template is of what is created.
const Template = "pkg-1:Main:Asset"

// Time returns a time of the ledger; it panics on a text that is none.
func Time(text string) ledger.Time {
	t, err := ledger.ParseTime(text)
	if err != nil {
		panic(err)
	}
	return t
}

// NewUpdate returns a transaction without events.
func NewUpdate(offset ledger.Offset, synchronizer string) ledger.Update {
	return ledger.Update{
		Offset: offset, Kind: ledger.KindTransaction, ID: fmt.Sprint("update-", offset), SynchronizerID: &synchronizer,
		RecordTime: Time("2025-01-02T03:04:05.123456Z"),
	}
}

// Creation returns the creation of a contract, by the template Template.
func Creation(nodeID int32, contractID string) ledger.CreatedEvent {
	return ledger.CreatedEvent{
		NodeID: nodeID, Origin: ledger.OriginTransaction, ContractID: contractID, TemplateID: Template, PackageName: "asset",
		Argument: ledger.JSON(`{"amount": "1.0"}`), Signatories: []string{"alice"}, CreatedAt: Time("2025-01-02T03:04:05Z"),
		ACSDelta: new(true),
	}
}

// Archival returns the archival of a contract, by the same template of another package.
func Archival(nodeID int32, contractID string) ledger.ArchivedEvent {
	return ledger.ArchivedEvent{NodeID: nodeID, ContractID: contractID, TemplateID: "pkg-2:Main:Asset",
		PackageName: "asset"}
}

// Exercise returns an exercise of a choice that transfers a contract.
func Exercise(nodeID int32, contractID string, consuming bool, acsDelta *bool) ledger.ExercisedEvent {
	return ledger.ExercisedEvent{
		NodeID: nodeID, ContractID: contractID, TemplateID: Template, PackageName: "asset", Choice: "Transfer",
		Consuming:            consuming,
		LastDescendantNodeID: nodeID, ACSDelta: acsDelta,
	}
}

// Assign adds an assignment and the creation event inside it.
func Assign(u *ledger.Update, nodeID int32, contractID, source, target string, counter int64) {
	c := Creation(nodeID, contractID)
	c.Origin = ledger.OriginAssignment
	u.Kind = ledger.KindReassignment
	u.Created = append(u.Created, c)
	u.Assigned = append(u.Assigned, ledger.AssignedEvent{
		NodeID: nodeID, ContractID: contractID, TemplateID: Template, PackageName: "asset", Source: source, Target: target,
		ReassignmentID: fmt.Sprint("r-", counter), ReassignmentCounter: counter,
	})
}

// Unassign adds an unassignment.
func Unassign(u *ledger.Update, nodeID int32, contractID, source, target string, counter int64) {
	u.Kind = ledger.KindReassignment
	u.Unassigned = append(u.Unassigned, ledger.UnassignedEvent{
		Offset: u.Offset, NodeID: nodeID, ContractID: contractID, TemplateID: Template, PackageName: "asset", Source: source,
		Target:         target,
		ReassignmentID: fmt.Sprint("r-", counter), ReassignmentCounter: counter,
	})
}

// OneCreation returns a page with one update that creates one contract.
func OneCreation(from, to ledger.Offset) []ledger.Page {
	u := NewUpdate(to, "sync::1")
	u.Created = []ledger.CreatedEvent{Creation(0, fmt.Sprint("contract-", to))}
	return []ledger.Page{{From: from, To: to, Updates: []ledger.Update{u}}}
}

// EveryKind returns a page whose updates have a row in each fact table.
func EveryKind(from ledger.Offset) []ledger.Page {
	transaction := NewUpdate(from+1, "sync::1")
	c := Creation(0, fmt.Sprint("contract-", from))
	c.InterfaceViews = []ledger.InterfaceView{{InterfaceID: HoldingV1, Value: ledger.JSON(`{"a": "\u0000"}`)}}
	transaction.Created = []ledger.CreatedEvent{c, Creation(1, fmt.Sprint("transient-", from))}
	transaction.Archived = []ledger.ArchivedEvent{Archival(3, "unseen")}
	transaction.Exercised = []ledger.ExercisedEvent{{
		NodeID: 2, ContractID: fmt.Sprint("transient-", from), TemplateID: Template, PackageName: "asset", Choice: "Archive",
		Consuming:            true,
		LastDescendantNodeID: 2, Argument: ledger.JSON(`{}`), Result: ledger.JSON(`{}`),
	}}
	reassignment := NewUpdate(from+2, "sync::2")
	Assign(&reassignment, 0, "arrived", "sync::1", "sync::2", 1)
	topology := NewUpdate(from+3, "sync::1")
	topology.Kind = ledger.KindTopology
	unknown := NewUpdate(from+4, "sync::1")
	unknown.Kind = ledger.KindUnknown
	unknown.Unknown = []ledger.UnknownElement{{Kind: "Novelty", Raw: ledger.JSON(`{"Novelty": {}}`)}}
	Rest(&topology, Of{Parties: []string{"alice"}, Text: "added"}, transaction, reassignment, unknown)
	return []ledger.Page{{From: from, To: from + 4, Updates: []ledger.Update{transaction, reassignment, topology,
		unknown}}}
}

// Of is what an event says.
type Of struct {
	ContractID string
	Parties    []string
	Text       string      // of names
	Content    ledger.JSON // of what a redaction takes
}

// Rest adds to an update an event for each table of events of which neither it nor the others have one.
func Rest(u *ledger.Update, of Of, others ...ledger.Update) {
	has := map[string]bool{}
	for _, other := range append(others, *u) {
		for e := range other.All {
			has[e.Table()] = true
		}
	}
	for _, list := range reflect.ValueOf(u).Elem().Fields() {
		if list.Kind() != reflect.Slice || list.Type().Elem().Kind() != reflect.Struct {
			continue
		}
		event := reflect.New(list.Type().Elem())
		if table := event.Interface().(ledger.Element).Table(); has[table] {
			continue
		}
		of.fill(event.Elem(), int32(100+u.Elements()))
		list.Set(reflect.Append(list, event.Elem()))
	}
}

func (of Of) fill(event reflect.Value, nodeID int32) {
	named := map[string]any{
		"NodeID": nodeID, "ContractID": of.ContractID, "TemplateID": Template, "PackageName": "asset",
		"PartyID": &of.Parties[0], "ImplementedInterfaces": []string(nil),
	}
	typed := map[reflect.Type]any{}
	for _, value := range []any{of.Parties, of.Content, []byte(of.Content), &of.Text, Time("2025-01-02T03:04:05Z")} {
		typed[reflect.TypeOf(value)] = value
	}
	for field, into := range event.Fields() {
		value, ok := named[field.Name]
		if !ok {
			value, ok = typed[into.Type()]
		}
		switch {
		case ok:
			into.Set(reflect.ValueOf(value))
		case into.Kind() == reflect.String:
			into.SetString(of.Text)
		}
	}
}

// Sorted sorts a list in place.
func Sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// Collect keeps what is found in a list.
func Collect[T any](list *[]T) func(T) {
	return func(found T) { *list = append(*list, found) }
}

// RequireProblem requires that an error is a *ledger.Problem that says these things.
func RequireProblem(t *testing.T, err error, parts ...string) {
	t.Helper()
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	for _, part := range parts {
		require.Contains(t, problem.What+"; "+problem.Do, part)
	}
}
