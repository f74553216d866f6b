package audit

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/internal/storetest"
	"ledgerindexer/store/internal/tables"
)

// simulatedSnapshot is what a simulated participant shows as active at the end of its ledger, with strange entries.
func simulatedSnapshot(t *testing.T, l *sandbox.Ledger) (at ledger.Offset, entries []ledger.ContractEntry) {
	t.Helper()
	server := httptest.NewServer(sandbox.NewServer(l, sandbox.ServerOptions{Version: "3.6", ExtraEntries: true}))
	defer server.Close()
	scope := sandbox.Scope{Interfaces: sandbox.InterfaceNames(), Blobs: true, Version: "3.6"}
	response, err := http.Post(server.URL+"/v2/state/active-contracts-page", "application/json", strings.NewReader(fmt.Sprintf(
		`{"activeAtOffset":%d,"maxPageSize":10000,"eventFormat":%s}`, l.End(), scope.EventFormat())))
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(body))
	page, err := ledger.DecodeContractPage(body)
	require.NoError(t, err)
	require.Empty(t, page.Next)
	require.Greater(t, len(page.Entries), 30)
	return ledger.Offset(l.End()), page.Entries
}

// inFlight continues until a reassignment is incomplete.
func inFlight(t *testing.T, l *sandbox.Ledger) (at ledger.Offset, entries []ledger.ContractEntry) {
	t.Helper()
	for {
		at, entries = simulatedSnapshot(t, l)
		if slices.ContainsFunc(entries, func(e ledger.ContractEntry) bool { return e.Unassigned != nil }) {
			return at, entries
		}
		l.Grow(10)
	}
}

// activity is a database with a simulated ledger in it, a snapshot of it, and the ledger's next updates, which were
// written after the snapshot.
type activity struct {
	*testDB
	store   *opened
	at      ledger.Offset
	entries []ledger.ContractEntry
}

// compareActive compares with the snapshot, after statements that are taken back. It returns the differences, those of
// what no entry has among them.
func (a *activity) compareActive(statements ...string) (list []Difference) {
	a.T.Helper()
	tx := a.spoil(statements...)
	keys, err := a.store.compareActive(a.T.Context(), tx, a.at, a.entries, storetest.Collect(&list))
	require.NoError(a.T, err)
	a.besides(keys, &list, func(each EachStored) error {
		return a.store.activeAt(a.T.Context(), tx, a.at, each)
	})
	require.NoError(a.T, tx.Rollback(a.T.Context()))
	return list
}

func newActivity(t *testing.T, shape string) *activity {
	t.Helper()
	l := sandbox.NewLedger(sandbox.Options{Seed: 29})
	l.Grow(120)
	d := newDatabase(t)
	leader := d.started()
	a := &activity{testDB: d, store: leader.store}
	a.at, a.entries = inFlight(t, l)
	first := simulated(t, l, shape, 0)
	require.NoError(t, leader.Append(t.Context(), storetest.Scope, []ledger.Page{first}))
	require.Empty(t, a.compareActive("SELECT 1"))
	require.Equal(t, "0", d.Row("SELECT count(*) FROM indexer.lifetimes WHERE deactivated_offset > $1", int64(a.at)))
	l.Grow(120)
	require.NoError(t, leader.Append(t.Context(), storetest.Scope, []ledger.Page{simulated(t, l, shape, first.To)}))
	require.NotEqual(t, "0", d.Row("SELECT count(*) FROM indexer.lifetimes WHERE activated_offset <= $1 AND deactivated_offset > $1", int64(a.at)))
	return a
}

// Whichever column of whichever row that the snapshot tells is altered: it is named.
func TestCompareActiveNamesWhatIsAltered(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "alters columns and rows one after the other, and compares each time")
	a := newActivity(t, sandbox.LedgerEffects)
	at := fmt.Sprint(int64(a.at))
	open := "activated_offset <= " + at
	active := "EXISTS (SELECT FROM indexer.active_contracts a WHERE a." + open + " AND a.activated_offset = x.ledger_offset AND a.activated_node_id = x.node_id)"
	incomplete := "ledger_offset <= " + at + " AND reassignment_id = '" + a.incomplete() + "'"
	for relation, where := range map[string]string{
		"active_contracts": open, "lifetimes": open + " AND deactivated_offset > " + at, "created": active, "interface_views": active,
		"reassignments": incomplete,
	} {
		seen := 0
		for column, typeName := range a.Columns(relation) {
			name := relation + "." + column
			if notInSnapshot[name] || slices.ContainsFunc(tables.In(tables.Facts), func(t tables.Table) bool {
				return t.Name == relation && slices.Contains(t.Snapshot, column) // an entry's alone
			}) {
				continue
			}
			value := spoilt(relation, column, typeName)
			if column == "witness_parties_ref" || column == "seen_by_ref" { // of these a snapshot tells a part
				value = "(SELECT party_list_ref FROM indexer.party_lists WHERE parties = '{}')"
			}
			ctid := a.Rows(fmt.Sprintf("SELECT tableoid::regclass::text, ctid::text FROM indexer.%s x WHERE %s ORDER BY %[3]s IS NULL, 1, 2 LIMIT 1", relation, where, column))
			require.Len(t, ctid, 1, name)
			table, place, _ := strings.Cut(ctid[0], " ")
			list := a.compareActive(fmt.Sprintf("UPDATE %s x SET %s = %s WHERE ctid = '%s'", table, column, value, place))
			require.NotEmpty(t, list, name)
			require.True(t, slices.ContainsFunc(list, func(d Difference) bool {
				return d.Kind == Altered && d.Relation == relation && d.Column == column && d.Offset > 0 ||
					d.Kind == Missing && slices.Contains(activeKeys[relation], column)
			}), "%s: %s", name, list)
			seen++
		}
		require.Greater(t, seen, 3, relation)
	}
}

// Columns that tell rows apart: where they are altered one row is missing and another is too many.
var activeKeys = map[string][]string{
	"active_contracts": {"contract_id", "synchronizer_ref"}, "lifetimes": {"contract_id", "synchronizer_ref"},
	"created": factKey("created"), "interface_views": factKey("interface_views"), "reassignments": factKey("reassignments"),
}

// Columns that a snapshot does not tell, or not in a form that can be compared. What a contract holds, and for whom,
// follows from its creation event, which is compared; TestWhatIsAlteredIsFoundAndRepaired alters it.
var notInSnapshot = map[string]bool{
	"active_contracts.position_id": true, "active_contracts.amount": true, "active_contracts.locked": true, "active_contracts.locked_until": true,
	"active_contracts.stakeholders_ref": true, "lifetimes.stakeholders_ref": true,
	"lifetimes.position_id": true, "lifetimes.amount": true, "lifetimes.locked": true, "lifetimes.locked_until": true,
	"lifetimes.deactivated_offset": true, "created.origin": true, "created.record_time": true, "created.extra": true,
	"interface_views.record_time": true, "interface_views.extra": true, "reassignments.record_time": true, "reassignments.extra": true,
}

// incomplete is the id of a reassignment that the snapshot has as incomplete.
func (a *activity) incomplete() string {
	for i := range a.entries {
		if u := a.entries[i].Unassigned; u != nil {
			return u.Unassigned.ReassignmentID
		}
	}
	require.Fail(a.T, "the snapshot has no incomplete reassignment")
	return ""
}

// Contracts that are not stored as active, and those that only are stored so.
func TestCompareActiveNamesMissingAndExtra(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "alters columns and rows one after the other, and compares each time")
	a := newActivity(t, sandbox.ACSDelta)
	at := fmt.Sprint(int64(a.at))
	one := func(relation, where string) string {
		return fmt.Sprintf("(tableoid, ctid) = (SELECT tableoid, ctid FROM indexer.%s WHERE %s ORDER BY 1, 2 LIMIT 1)", relation, where)
	}
	for name, c := range map[string]struct {
		statements []string
		want       []string
	}{
		"lost": {[]string{"DELETE FROM indexer.active_contracts WHERE " + one("active_contracts", "activated_offset <= "+at)}, []string{"missing active_contracts"}},
		"lost with the lifetime": {
			[]string{"DELETE FROM indexer.lifetimes WHERE " + one("lifetimes", "activated_offset <= "+at+" AND deactivated_offset > "+at)},
			[]string{"missing active_contracts"},
		},
		"later":         {[]string{"DELETE FROM indexer.active_contracts WHERE activated_offset > " + at}, nil},
		"closed before": {[]string{"DELETE FROM indexer.lifetimes WHERE deactivated_offset <= " + at}, nil},
		"stale": {
			[]string{"INSERT INTO indexer.active_contracts (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter) SELECT contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, 0 FROM indexer.lifetimes WHERE " +
				one("lifetimes", "deactivated_offset <= "+at)},
			[]string{"extra active_contracts"},
		},
		"closed too late": {
			[]string{"UPDATE indexer.lifetimes SET deactivated_offset = " + at + " + 1 WHERE " + one("lifetimes", "deactivated_offset <= "+at)},
			[]string{"extra lifetimes"},
		},
		"active and closed": {
			[]string{"INSERT INTO indexer.lifetimes (deactivated_offset, activated_offset, reassignment_counter, activated_node_id, synchronizer_ref, template_ref, contract_id) SELECT " + at + " + 1, activated_offset, reassignment_counter, activated_node_id, synchronizer_ref, template_ref, contract_id FROM indexer.active_contracts WHERE " +
				one("active_contracts", "activated_offset <= "+at)},
			[]string{"extra lifetimes"},
		},
		"its creation": {
			[]string{"DELETE FROM indexer.created WHERE (ledger_offset, node_id) = (SELECT activated_offset, activated_node_id FROM indexer.active_contracts WHERE activated_offset <= " + at +
				" AND contract_id NOT IN (SELECT contract_id FROM indexer.interface_views) ORDER BY 1, 2 LIMIT 1)"},
			[]string{"missing created"},
		},
		"its creation is another's": {
			[]string{"UPDATE indexer.created SET contract_id = 'other' WHERE (ledger_offset, node_id) = (SELECT activated_offset, activated_node_id FROM indexer.active_contracts WHERE activated_offset <= " + at + " LIMIT 1)"},
			[]string{"altered created"},
		},
		"a view more": {
			[]string{"INSERT INTO indexer.interface_views (ledger_offset, node_id, ordinal, contract_id, interface_id) SELECT activated_offset, activated_node_id, 77, contract_id, 'x' FROM indexer.active_contracts WHERE activated_offset <= " + at + " LIMIT 1"},
			[]string{"extra interface_views"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, kindsOrNil(a.compareActive(c.statements...)))
		})
	}
	require.NotEmpty(t, a.compareActive("UPDATE indexer.synchronizers SET synchronizer_id = 'other' WHERE synchronizer_ref = 1"))
	require.NotEmpty(t, a.compareActive("UPDATE indexer.templates SET package_name = 'other' WHERE template_ref = (SELECT min(template_ref) FROM indexer.active_contracts WHERE activated_offset <= "+at+")"))
}

func kindsOrNil(list []Difference) []string {
	if len(list) == 0 {
		return nil
	}
	return kinds(list)
}

// Without a state floor nothing is known of contracts from before.
func TestCompareActiveWithoutAStateFloor(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 31})
	l.Grow(100)
	d := newDatabase(t)
	leader := d.leadUpdates(d.store())
	start := ledger.Offset(l.End())
	require.NoError(t, leader.Start(t.Context(), "participant::1", storetest.Scope, start, false))
	l.Grow(100)
	require.NoError(t, leader.Append(t.Context(), storetest.Scope, []ledger.Page{simulated(t, l, sandbox.ACSDelta, start)}))
	a := &activity{testDB: d, store: leader.store}
	a.at, a.entries = simulatedSnapshot(t, l)
	require.Empty(t, a.compareActive("SELECT 1"))
	require.Contains(t, kinds(a.compareActive("DELETE FROM indexer.active_contracts")), "missing active_contracts")
}

// A creation that is damaged is reported, and not the interface views whose viewers follow from its stakeholders; views
// that are damaged themselves are.
func TestViewsOfADamagedCreation(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	a := newActivity(t, sandbox.ACSDelta)
	const viewed = `(c.ledger_offset, c.node_id) IN (SELECT v.ledger_offset, v.node_id FROM indexer.interface_views v WHERE v.seen_by_ref IS NOT NULL)
		AND c.contract_id IN (SELECT x.contract_id FROM indexer.active_contracts x)`
	for name, c := range map[string]struct {
		statement string
		columns   []string
	}{
		"stakeholders": {"UPDATE indexer.created c SET stakeholders_ref = NULL WHERE " + viewed, []string{"created stakeholders_ref"}},
		"missing":      {"DELETE FROM indexer.created c WHERE " + viewed, []string{"created "}},
		"a view":       {"UPDATE indexer.interface_views SET seen_by_ref = NULL", []string{"interface_views seen_by_ref"}},
	} {
		var found []string
		for _, d := range a.compareActive(c.statement) {
			found = append(found, d.Relation+" "+d.Column)
		}
		slices.Sort(found)
		require.Equal(t, c.columns, slices.Compact(found), name)
	}
}
