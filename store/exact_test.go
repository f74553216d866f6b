package store

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// refusable are values that jsonb refuses, and one that it takes. Package rows has them all.
var refusable = []struct {
	name    string
	value   string
	refused bool
}{
	{"usual", `{"a": [1, -2.50, "b \"c\" \n"]}`, false},
	{"a NUL", `{"a": "\u0000"}`, true},
	{"a lone surrogate", `["\ud83d"]`, true},
	{"nested too deep", strings.Repeat("[", 1001) + strings.Repeat("]", 1001), true},
	{"a number out of the range of numeric", `1e131073`, true},
}

// Each value has its own field, and names the row it belongs to.
func TestExactFields(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	bad := func(n string) ledger.JSON { return ledger.JSON(`{"` + n + `": "\u0000"}`) }
	u := storetest.NewUpdate(1, "sync::1")
	u.Extra = bad("1")
	u.RecordTime, u.EffectiveAt = storetest.Time("2025-01-02T03:04:05.123456789Z"), storetest.Time("2025-01-02T03:04:05.1234561+02:00")
	c := storetest.Creation(0, "contract")
	c.Argument, c.ContractKey, c.Extra, c.CreatedAt = bad("2"), bad("3"), bad("4"), storetest.Time("2025-01-02T03:04:05.000000001Z")
	c.InterfaceViews = []ledger.InterfaceView{{InterfaceID: "i:I:I", Value: bad("5"), StatusDetails: bad("6"), Extra: bad("7")}}
	u.Created = []ledger.CreatedEvent{c}
	u.Exercised = []ledger.ExercisedEvent{{NodeID: 1, ContractID: "x", TemplateID: storetest.Template, Argument: bad("8"), Result: bad("9"), Extra: bad("10")}}
	u.Archived = []ledger.ArchivedEvent{{NodeID: 2, ContractID: "x", TemplateID: storetest.Template, Extra: bad("11")}}
	v := storetest.NewUpdate(2, "sync::1")
	storetest.Assign(&v, 0, "contract", "sync::2", "sync::1", 1)
	v.Assigned[0].Extra = bad("12")
	storetest.Unassign(&v, 1, "contract", "sync::1", "sync::2", 2)
	v.Unassigned[0].Extra, v.Unassigned[0].AssignmentExclusivity = bad("13"), storetest.Time("2025-01-02T03:04:05.9999999Z")
	w := storetest.NewUpdate(3, "sync::1")
	w.Topology = []ledger.TopologyEvent{{Kind: ledger.TopologyUnknown, Extra: bad("14")}}
	w.Unknown = []ledger.UnknownElement{{Kind: "New", NodeID: new(int32(4)), Raw: bad("15")}}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: 0, To: 3, Updates: []ledger.Update{u, v, w}}}))
	require.Equal(t, storetest.Sorted([]string{
		`1 <nil> extra {"1": "\u0000"}`, `1 <nil> recordTime "2025-01-02T03:04:05.123456789Z"`, `1 <nil> effectiveAt "2025-01-02T03:04:05.1234561+02:00"`,
		`1 0 payload {"2": "\u0000"}`, `1 0 contract_key {"3": "\u0000"}`, `1 0 extra {"4": "\u0000"}`, `1 0 createdAt "2025-01-02T03:04:05.000000001Z"`,
		`1 0 view_value {"5": "\u0000"}`, `1 0 status_details {"6": "\u0000"}`, `1 0 extra {"7": "\u0000"}`,
		`1 1 choice_argument {"8": "\u0000"}`, `1 1 exercise_result {"9": "\u0000"}`, `1 1 extra {"10": "\u0000"}`, `1 2 extra {"11": "\u0000"}`,
		`2 0 assignment_extra {"12": "\u0000"}`, `2 1 extra {"13": "\u0000"}`, `2 1 assignmentExclusivity "2025-01-02T03:04:05.9999999Z"`,
		`3 0 extra {"14": "\u0000"}`, `3 4 raw {"15": "\u0000"}`,
	}), storetest.Sorted(d.Rows("SELECT ledger_offset, node_id, field, convert_from(exact, 'UTF8') FROM ledger.exact_payloads")))
	require.Equal(t, "2025-01-02 03:04:05.123456+00 2025-01-02 01:04:05.123456+00",
		d.Row("SELECT record_time::text, effective_at::text FROM ledger.updates WHERE ledger_offset = 1"), "the microsecond before")
}
