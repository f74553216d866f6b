package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
	"ledgerindexer/store/internal/tables"
)

// whole is a database that has a simulated ledger from its beginning on.
func (d *depths) whole(t *testing.T) (*testDB, *UpdatesWriter) {
	t.Helper()
	db := newDatabase(t)
	up := db.leadUpdates(db.store())
	require.NoError(t, up.Start(t.Context(), "participant::1", d.scope, 0, true))
	require.NoError(t, up.Append(t.Context(), d.scope, d.pages))
	return db, up
}

// prune prunes with a leader of its own.
func (d *testDB) prune(floor ledger.Offset) {
	d.T.Helper()
	l := d.leadPruning(d.store())
	require.NoError(d.T, l.Prune(d.T.Context(), floor))
	l.Close()
}

// A pruned database is what one is that began with a snapshot at the floor, and so it is if it is pruned again,
// wherever a contract is between two synchronizers; what was active from there on it says as before.
func TestAPrunedDatabaseIsAsBegunAtTheFloor(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "compares what was active at every offset of a ledger")
	w := newDepths(t, 500, ledger.ShapeACSDelta)
	for n := range w.snapshots { // what is of no contract is in snapshots only
		w.snapshots[n] = slices.DeleteFunc(w.snapshots[n], func(e ledger.ContractEntry) bool { return e.Active == nil && e.Unassigned == nil && e.Assigned == nil })
	}
	d, up := w.whole(t)
	for n, at := range w.at {
		plan, err := up.store.PlanPrune(t.Context(), PruneBefore{Offset: new(at + 1)})
		require.NoError(t, err)
		require.Equal(t, at, plan.Floor)
		require.Positive(t, plan.Rows())
		require.Positive(t, plan.Bytes())
		d.prune(at)
		require.Equal(t, fmt.Sprint(at, " ", at), d.Floors())
		require.Empty(t, d.differences(up.store))
		d.requireCarried(up.store, at, w.snapshots[n])
		for offset := at; offset <= ledger.Offset(w.ledger.End()); offset += 5 {
			require.Equal(t, w.active(offset), d.activeAt(offset), "at offset %d", offset)
		}
		reference, leader := w.begun(t, n, true)
		require.NoError(t, leader.Append(t.Context(), w.scope, w.between(at, ledger.Offset(w.ledger.End()))))
		got := d.shown()
		for relation, rows := range reference.shown() {
			require.Equal(t, rows, got[relation], relation)
		}
	}
	w.ledger.Grow(20)
	more := storetest.PagesOf(t, storetest.Reader(t, w.ledger, w.scope), w.pages[len(w.pages)-1].To, ledger.Offset(w.ledger.End()), 4)
	require.NoError(t, up.Append(t.Context(), w.scope, more), "the leader goes on")
	require.Empty(t, d.differences(up.store))
}

// pruning prunes until it waits for the readers of a table.
func (d *testDB) pruning(ctx context.Context, floor ledger.Offset, table string) (l *PruningWriter, pruned chan error) {
	d.T.Helper()
	l, pruned = d.leadPruning(d.store()), make(chan error, 1)
	go func() { pruned <- l.Prune(ctx, floor) }()
	d.WaitFor(`SELECT EXISTS (SELECT FROM pg_locks k
		JOIN pg_database d ON d.oid = k.database AND d.datname = current_database()
		WHERE k.mode = 'AccessExclusiveLock' AND NOT k.granted AND k.relation = ('indexer.' || $1::text)::regclass)`, table)
	return l, pruned
}

// Everything that an event of a contract that stays has with it stays, to the last byte, and nothing of what went.
func TestWhatBelongsToAContractStaysWithIt(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	up := d.leadUpdates(d.store())
	d.WriteEverything(up, d.leadTransactions(d.store()))
	at := storetest.EveryKind(100)
	end := at[len(at)-1].To
	strange := storetest.NewUpdate(end+1, "sync::1")
	stays, goes := storetest.Creation(0, "stays"), storetest.Creation(1, "goes")
	for _, c := range []*ledger.CreatedEvent{&stays, &goes} {
		c.Argument, c.ContractKey, c.Blob, c.Extra = ledger.JSON(`"\u0000"`), ledger.JSON(`"\u0000"`), []byte{7}, ledger.JSON(`{"new": "\u0000"}`)
		c.InterfaceViews = []ledger.InterfaceView{{InterfaceID: storetest.HoldingV1, Value: ledger.JSON(`"\u0000"`)}, {InterfaceID: "i:I:I", Value: ledger.JSON(`{}`)}}
	}
	strange.Created = []ledger.CreatedEvent{stays, goes}
	gone := storetest.NewUpdate(end+2, "sync::1")
	gone.Archived = []ledger.ArchivedEvent{storetest.Archival(0, "goes")}
	d.append(up, end, strange, gone)
	d.append(up, end+2, storetest.NewUpdate(end+5, "sync::1"))
	const contract = `SELECT to_jsonb(c) - '{origin,update_id,record_time,workflow_id}'::text[] || jsonb_build_object(
		'exact', (SELECT jsonb_agg(to_jsonb(x) - 'stream' ORDER BY field, interface_id) FROM ledger.exact_payloads x WHERE x.ledger_offset = c.ledger_offset AND x.node_id = c.node_id),
		'views', (SELECT jsonb_agg(to_jsonb(v) - '{update_id,record_time}'::text[] ORDER BY ordinal) FROM ledger.interface_views v WHERE v.ledger_offset = c.ledger_offset AND v.node_id = c.node_id))::text
		FROM ledger.created_events c JOIN ledger.active_contracts a ON a.activated_offset = c.ledger_offset AND a.activated_node_id = c.node_id ORDER BY c.ledger_offset, c.node_id`
	before := d.Rows(contract)
	require.Greater(t, len(before), 2)
	d.prune(end + 3)
	require.Equal(t, before, d.Rows(contract))
	require.Empty(t, d.differences(up.store))
	require.Equal(t, "true", d.Row("SELECT count(*) > 3 FROM indexer.created c JOIN ledger.exact_payloads x USING (ledger_offset, node_id) WHERE c.origin = 'snapshot'"))
	for _, table := range tables.All() {
		if table.Pruned && table.Snapshot == nil {
			require.Equal(t, "0", d.Row("SELECT count(*) FROM indexer."+table.Name+" s WHERE s."+table.Place+" <= $1", end+3), table.Name)
		}
	}
	require.Equal(t, "0", d.Row("SELECT count(*) FROM indexer.created WHERE ledger_offset <= $1 AND origin <> 'snapshot'", end+3))
	require.Equal(t, "0", d.Row("SELECT count(*) FROM indexer.unknown_elements WHERE ledger_offset < $1", end+3))
	require.Equal(t, "0", d.Row("SELECT count(*) FROM ledger.exact_payloads WHERE stream = 'updates' AND ledger_offset = $1 AND node_id = 1", end+1))
	require.NotEqual(t, "0", d.Row("SELECT count(*) FROM ledger.transactions"), "the transaction history is not pruned")
	require.Equal(t, []string{fmt.Sprint("updates 100 ", end+3, " pruned")},
		d.Rows("SELECT stream, from_exclusive, to_inclusive, reason FROM ledger.rewrites WHERE reason = 'pruned'"))
}

// Rows that lie at an offset that is pruned do not stay, but for those of snapshots, of what is active, and of seals.
func TestPruningLeavesNoTableOut(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	for _, table := range tables.All() {
		if table.Family == tables.Resynced || table.Family == tables.Records || table.Name == "active_contracts" {
			require.False(t, table.Pruned, table.Name)
			continue
		}
		columns := d.Columns(table.Name)
		require.Equal(t, table.Partitioned || columns["ledger_offset"] != "" && table.Name != "checkpoints", table.Pruned, table.Name)
		require.False(t, table.Pruned && table.Place == "", table.Name)
	}
}

func TestWhatIsNotPruned(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	refused := func(d *testDB, s *Store, before PruneBefore, what string) {
		t.Helper()
		_, err := s.PlanPrune(t.Context(), before)
		var problem *ledger.Problem
		require.ErrorAs(t, err, &problem)
		require.ErrorContains(t, err, what)
		if before.Offset != nil {
			l := d.leadPruning(s)
			defer l.Close()
			require.ErrorContains(t, l.Prune(t.Context(), *before.Offset-1), what)
		}
	}
	offset := func(at ledger.Offset) PruneBefore { return PruneBefore{Offset: &at} }
	d := newDatabase(t)
	s := d.store()
	refused(d, s, offset(5), "nothing has been indexed")
	refused(d, s, PruneBefore{Age: time.Hour}, "nothing has been indexed")
	d.append(d.seeded(storetest.ActiveEntry(2, 0, "c1", "sync::1", 0)), 101, storetest.NewUpdate(110, "sync::1"))
	refused(d, s, offset(111), "nothing would be left")
	refused(d, s, PruneBefore{Time: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}, "nothing would be left")
	for _, before := range []PruneBefore{offset(1), offset(101), {Time: time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)}, {Age: time.Hour}} {
		plan, err := s.PlanPrune(t.Context(), before)
		require.NoError(t, err)
		require.True(t, plan.Empty(), before)
	}
	d.prune(60)
	require.Equal(t, "100 100", d.Floors(), "nothing lies below")

	begun := newDatabase(t)
	plan, err := begun.started().store.PlanPrune(t.Context(), PruneBefore{Age: time.Hour})
	require.NoError(t, err, "nothing has been read")
	require.True(t, plan.Empty())

	unknown := newDatabase(t)
	up := unknown.leadUpdates(unknown.store())
	require.NoError(t, up.Start(t.Context(), "participant::1", storetest.Scope, 10, false))
	unknown.append(up, 10, storetest.NewUpdate(20, "sync::1"))
	refused(unknown, up.store, offset(15), "it is not known what is active")
}

// A time or an age chooses the updates that were recorded before; an age counts from the last update, or from now where
// that is earlier: no clock that is wrong makes anything older.
func TestPruneByTime(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	begin := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range ledger.Offset(10) {
		u := storetest.NewUpdate(10*(i+1), "sync::1")
		u.RecordTime = storetest.Time(begin.Add(time.Duration(i) * 24 * time.Hour).Format(time.RFC3339))
		d.append(l, 10*i, u)
	}
	for floor, before := range map[ledger.Offset]PruneBefore{
		29: {Time: begin.Add(48 * time.Hour)}, 39: {Time: begin.Add(49 * time.Hour)}, 69: {Age: 72 * time.Hour}, 79: {Age: 50 * time.Hour}, 9: {Age: 10 * 24 * time.Hour},
	} {
		plan, err := l.store.PlanPrune(t.Context(), before)
		require.NoError(t, err)
		require.Equal(t, floor, plan.Floor, before)
	}
	ahead := storetest.NewUpdate(110, "sync::2")
	ahead.RecordTime = storetest.Time("2900-01-01T00:00:00Z")
	d.append(l, 100, ahead)
	plan, err := l.store.PlanPrune(t.Context(), PruneBefore{Age: 100 * 365 * 24 * time.Hour})
	require.NoError(t, err)
	require.EqualValues(t, 9, plan.Floor, "a synchronizer's clock that is ahead makes nothing older")
	d.prune(29)
	require.Equal(t, []string{"30", "40"}, d.Rows("SELECT ledger_offset FROM ledger.updates ORDER BY 1 LIMIT 2"))
}

// A transaction that has read the floors keeps pruning waiting, and sees everything as it was until it ends. Meanwhile
// others read, and the leader of the updates writes: what it writes into a partition that is being replaced stays.
func TestReadersAndTheLeaderGoOnWhileOneIsPruned(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between two tries")
	w := newDepths(t, 510, ledger.ShapeACSDelta)
	d := newDatabase(t)
	up := d.leadUpdates(d.store())
	require.NoError(t, up.Start(t.Context(), "participant::1", w.scope, 0, true))
	require.NoError(t, up.Append(t.Context(), w.scope, w.between(0, w.at[1])))
	rest := w.between(w.at[1], ledger.Offset(w.ledger.End()))
	ahead := rest[len(rest)-1]
	require.NoError(t, up.WriteAhead(t.Context(), w.scope, []ledger.Page{ahead}), "what is stored and not shown yet lies in the partition too")
	reader := d.Connect()
	tx, err := reader.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	const everything = `SELECT (SELECT count(*) FROM ledger.updates) || ' ' || (SELECT count(*) FROM ledger.created_events)
		|| ' ' || (SELECT count(*) FROM ledger.active_at($1)) || ' ' || ledger.oldest_offset()`
	before := d.Row(everything, w.at[0])
	read := func() (counts string) {
		t.Helper()
		require.NoError(t, tx.QueryRow(t.Context(), everything, w.at[0]).Scan(&counts))
		return counts
	}
	var floor int64
	require.NoError(t, tx.QueryRow(t.Context(), "SELECT ledger.oldest_offset()").Scan(&floor), "it has read nothing else yet")
	_, pruned := d.pruning(t.Context(), w.at[0], "floors")
	require.Equal(t, before, read())
	for _, page := range rest[:len(rest)-1] {
		require.NoError(t, up.Append(t.Context(), w.scope, []ledger.Page{page}))
		require.Equal(t, "0 0", d.Floors(), "others read")
		require.Equal(t, before, read())
	}
	select {
	case err := <-pruned:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-pruned)
	require.Equal(t, fmt.Sprint(w.at[0], " ", w.at[0]), d.Floors())
	require.NoError(t, up.MoveWatermark(t.Context(), w.scope, ahead.From, ahead.To))
	require.Empty(t, d.differences(up.store))
	reference, leader := w.begun(t, 0, true)
	require.NoError(t, leader.Append(t.Context(), w.scope, w.between(w.at[0], ledger.Offset(w.ledger.End()))))
	want, got := reference.shown(), d.shown()
	for _, relation := range []string{"updates", "archived_events", "active_contracts", "indexer.lifetimes", "indexer.active_contracts", "coverage"} {
		require.Equal(t, want[relation], got[relation], relation)
	}
}

// A program that follows the ledger in one snapshot misses no row, although its turn begins with the watermark and not
// with the floors.
func TestAFollowerMissesNothingThatIsCopied(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between two tries")
	d := newDatabase(t)
	up := d.started()
	for at := ledger.Offset(1); at < 6; at++ {
		d.append(up, at-1, storetest.NewUpdate(at, "sync::1"))
	}
	tx, err := d.Connect().BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT ledger.latest_offset(), (SELECT max(rewrite) FROM ledger.rewrites)")
	require.NoError(t, err)
	pruned := make(chan error, 1)
	l := d.leadPruning(d.store())
	go func() { pruned <- l.Prune(t.Context(), 3) }()
	d.WaitFor(`SELECT EXISTS (SELECT FROM pg_locks k JOIN pg_database d ON d.oid = k.database AND d.datname = current_database() WHERE k.mode = 'AccessExclusiveLock' AND NOT k.granted AND k.relation = 'indexer.checkpoints'::regclass)
		OR EXISTS (SELECT FROM pg_class WHERE relname = 'updates_p4')`)
	var count int
	require.NoError(t, tx.QueryRow(t.Context(), "SELECT count(*) FROM ledger.updates WHERE ledger_offset > 3").Scan(&count))
	require.Equal(t, 2, count)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-pruned)
	require.Equal(t, "3 3", d.Floors())
}

// Rows that were copied before a reset don't come back: who prunes meanwhile is refused, and may prune again. That the
// leader has come as far again by then makes no difference.
func TestPruningBesideAReset(t *testing.T) {
	t.Parallel()
	d, up := pruneBeside(t, "was reset meanwhile", func(d *testDB, up *UpdatesWriter) {
		_, err := up.Reset(t.Context(), 5)
		require.NoError(t, err)
		for at := ledger.Offset(6); at < 12; at += 5 {
			d.append(up, at-1, storetest.NewUpdate(at+4, "sync::1"))
		}
	})
	d.prune(3)
	require.Equal(t, []string{"4", "5", "10", "15"}, d.Rows("SELECT ledger_offset FROM indexer.updates ORDER BY 1"))
	require.Empty(t, d.differences(up.store))
}

// Neither are lifetimes that end with the scope lost, which is changed at the watermark, up to which all had been
// copied.
func TestPruningBesideAChangeOfTheScope(t *testing.T) {
	t.Parallel()
	scope := storetest.Scope
	scope.Parties = []string{"bob"}
	d, up := pruneBeside(t, "its scope was changed", func(d *testDB, up *UpdatesWriter) {
		d.changeScope(up, scope)
	})
	ended := []string{"contract-4 9", "contract-5 9", "contract-6 9", "contract-7 9", "contract-8 9", "contract-9 9"}
	require.Subset(t, d.Rows("SELECT contract_id, deactivated_offset FROM indexer.lifetimes"), ended)
	d.prune(3)
	require.Subset(t, d.Rows("SELECT contract_id, deactivated_offset FROM indexer.lifetimes"), ended)
	require.Empty(t, d.differences(up.store))
	// Pruned up to the change, nothing is left of the scope before.
	require.NoError(t, up.Append(t.Context(), scope, []ledger.Page{{From: 9, To: 10}}))
	d.prune(9)
	require.Equal(t, []string{"1"}, d.Rows("SELECT count(*) FROM indexer.scopes"))
	require.Equal(t, []string{"true"}, d.Rows("SELECT changed_to IS NULL FROM indexer.floors"))
}

// What the leader writes into a table that had nothing up to the floor stays, in a partition that begins there.
func TestPruningBesideTheFirstRowsOfATable(t *testing.T) {
	t.Parallel()
	d, up := pruneBeside(t, "", func(d *testDB, up *UpdatesWriter) {
		u := storetest.NewUpdate(15, "sync::1")
		storetest.Unassign(&u, 0, "contract-9", "sync::1", "sync::2", 1)
		d.append(up, 9, u)
	})
	require.Equal(t, "3 3", d.Floors())
	require.Equal(t, []string{"15"}, d.Rows("SELECT ledger_offset FROM indexer.reassignments"))
	require.Empty(t, d.differences(up.store))
}

// pruneBeside does something while one waits for a reader at the end of pruning, who is refused then. why is part of
// the reason; empty: one is not refused.
func pruneBeside(t *testing.T, why string, do func(d *testDB, up *UpdatesWriter)) (*testDB, *UpdatesWriter) {
	t.Helper()
	brief.Long(t, "waits between two tries")
	d := newDatabase(t)
	up := d.started()
	for at := ledger.Offset(1); at < 10; at++ {
		u := storetest.NewUpdate(at, "sync::1")
		u.Created = []ledger.CreatedEvent{storetest.Creation(0, fmt.Sprint("contract-", at))}
		d.append(up, at-1, u)
	}
	reader := d.Connect()
	tx, err := reader.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT ledger.oldest_offset()")
	require.NoError(t, err)
	l, pruned := d.pruning(t.Context(), 3, "floors")
	do(d, up)
	require.NoError(t, tx.Commit(t.Context()))
	if err := <-pruned; why == "" {
		require.NoError(t, err)
		return d, up
	} else {
		storetest.RequireProblem(t, err, why)
	}
	l.Close()
	require.Equal(t, "0 0", d.Floors())
	return d, up
}

// A pruning that ends early leaves everything as it was, whoever pruned, and another one begins again.
func TestPruningThatEndsEarly(t *testing.T) {
	t.Parallel()
	w := newDepths(t, 511, ledger.ShapeACSDelta)
	d, up := w.whole(t)
	before := d.shown()
	reader := d.Connect()
	tx, err := reader.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM ledger.updates")
	require.NoError(t, err)
	for _, end := range []func(l *PruningWriter, cancel func()){
		func(_ *PruningWriter, cancel func()) { cancel() },
		func(*PruningWriter, func()) {
			d.Exec("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name LIKE 'ledgerindexer pruning epoch %' AND datname = current_database()")
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		l, pruned := d.pruning(ctx, w.at[1], "checkpoints")
		end(l, cancel)
		require.Error(t, <-pruned)
		cancel()
		l.Close()
		require.Equal(t, before, d.shown())
		require.Empty(t, d.differences(up.store))
	}
	require.NoError(t, tx.Rollback(t.Context()))
	d.prune(w.at[1])
	require.Equal(t, fmt.Sprint(w.at[1], " ", w.at[1]), d.Floors())
}

// The planner's statistics have values of rows: of what went none is left in them, of events as of carried rows.
func TestStatisticsForgetWhatWasPruned(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	var updates []ledger.Update
	for n := range ledger.Offset(12) { // one contract after the other, each archived six updates later
		u := storetest.NewUpdate(n+1, "sync::1")
		created := storetest.Creation(0, fmt.Sprint("contract-", n))
		created.Argument = ledger.JSON(fmt.Sprintf(`{"a": "said of %d"}`, n))
		u.Created = []ledger.CreatedEvent{created}
		if n >= 6 {
			u.Archived = []ledger.ArchivedEvent{storetest.Archival(1, fmt.Sprint("contract-", n-6))}
		}
		updates = append(updates, u)
	}
	d.append(l, 0, updates...)
	said := func() []string {
		return d.Rows(`SELECT DISTINCT v FROM pg_stats s, unnest(coalesce(s.histogram_bounds::text::text[], '{}') || coalesce(s.most_common_vals::text::text[], '{}')) v
			WHERE s.schemaname = 'indexer' AND s.attname = 'payload' ORDER BY 1`)
	}
	stored := func() []string {
		return d.Rows("SELECT payload::text FROM indexer.created ORDER BY 1")
	}
	d.Exec("ANALYZE")
	require.Len(t, said(), 12)
	d.prune(4)
	require.Subset(t, stored(), said())
	d.Exec("ANALYZE")
	d.prune(8)
	require.Len(t, stored(), 10)
	require.Equal(t, stored(), said())
}

// Which contracts lose their creation is told by the creations that stay: those that go, which can be nearly all, are
// not read.
func TestLookUpsAfterPruningReadWhatStays(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	later := storetest.OneCreation(4, 1_500_000)
	later[0].Updates[0].Archived = []ledger.ArchivedEvent{storetest.Archival(1, "contract-4")}
	require.NoError(t, d.started().Append(t.Context(), storetest.Scope, slices.Concat(storetest.EveryKind(0), later)))
	d.Exec("SET search_path = indexer; CREATE TEMP TABLE kept (LIKE created)")
	plan := d.plan(strings.NewReplacer("@created", "kept", "$1", "1000000", "$2", "1500000", "$3", "1000000").Replace(lookupsAfter))
	require.Contains(t, plan, "created_p1000000")
	require.NotRegexp(t, ` created_p0\b`, plan)
}

// A contract whose creation goes, although it was not active, and that has events that stay, is looked up.
func TestWhatLosesItsCreationIsLookedUp(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	witnessed, exercised := storetest.NewUpdate(1, "sync::1"), storetest.NewUpdate(5, "sync::1")
	witnessed.Created = []ledger.CreatedEvent{storetest.Creation(0, "witnessed")}
	witnessed.Created[0].ACSDelta = new(false)
	exercised.Exercised = []ledger.ExercisedEvent{storetest.Exercise(0, "witnessed", false, nil)}
	d.append(l, 0, witnessed, exercised, storetest.NewUpdate(6, "sync::1"))
	d.Exec("DELETE FROM indexer.lookups") // as when its turn comes: its creation is stored
	d.prune(3)
	require.Equal(t, []string{"witnessed 5 wanted"}, d.Rows("SELECT contract_id, ledger_offset, status FROM indexer.lookups"))
	require.Empty(t, d.differences(l.store))
	d.prune(5)
	require.Empty(t, d.Rows("SELECT FROM indexer.lookups"))
	require.Empty(t, d.differences(l.store))
}

// What was compared with files is not pruned where something of it changed after that.
func TestWhatChangedAfterItWasComparedIsNotPruned(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.append(d.seeded(), 101, storetest.NewUpdate(110, "sync::1"), storetest.NewUpdate(120, "sync::1"))
	l := d.leadPruning(d.store())
	defer l.Close()
	d.Exec("INSERT INTO indexer.rewrites (rewrite, stream, from_exclusive, to_inclusive, reason) VALUES (3, 'updates', 105, 106, 'repaired'), (4, 'updates', 110, 111, 'repaired')")
	for _, compared := range []ledger.Offset{110, 111} { // or in a range of which a part stays: an export may have removed all of its files
		var problem *ledger.Problem
		require.ErrorAs(t, l.PruneExported(t.Context(), 110, compared, int64(compared)-108), &problem)
		require.Contains(t, problem.What, "changed in database")
		require.Equal(t, "100", d.Row("SELECT ledger.oldest_offset()"))
	}
	require.NoError(t, l.PruneExported(t.Context(), 110, 110, 3), "what changed is not among it")
	require.Equal(t, "110", d.Row("SELECT ledger.oldest_offset()"))
}

// The answer to a look-up stays as long as an event of its contract does, also one that came while it was pruned: the
// participant may not have the contract any more.
func TestAnswersToLookUpsStay(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between two tries")
	d := newDatabase(t)
	l := d.started()
	exercise := func(at ledger.Offset, node int32, contract string) ledger.Update {
		u := storetest.NewUpdate(at, "sync::1")
		u.Exercised = []ledger.ExercisedEvent{storetest.Exercise(node, contract, false, nil)}
		return u
	}
	d.append(l, 0, exercise(1, 0, "used"), exercise(2, 3, "forgotten"), exercise(4, 0, "unknown"), exercise(6, 7, "used"), exercise(7, 0, "used"), exercise(8, 1, "unknown"))
	answer := func(contract string) ledger.Lookup {
		return ledger.Lookup{ContractID: contract, At: time.Now(), Status: ledger.LookupFound, Contract: &ledger.Contract{
			ContractID: contract, TemplateID: "pkg:Main:T", Argument: ledger.JSON(`"\u0000"`), Signatories: []string{"alice"},
		}}
	}
	require.NoError(t, l.SaveLookups(t.Context(), []ledger.Lookup{answer("used"), answer("forgotten"), {ContractID: "unknown", At: time.Now(), Status: ledger.LookupNotFound}}))
	const lookups = `SELECT contract_id, ledger_offset, node_id, status,
		(SELECT count(*) FROM ledger.exact_payloads x WHERE (x.ledger_offset, x.node_id) = (l.ledger_offset, l.node_id)) FROM indexer.lookups l ORDER BY ledger_offset`
	require.Equal(t, []string{"used 1 0 found 1", "forgotten 2 3 found 1", "unknown 4 0 not_found 0"}, d.Rows(lookups))
	d.prune(5)
	require.Equal(t, []string{"used 6 7 found 1", "unknown 8 1 not_found 0"}, d.Rows(lookups))
	require.Empty(t, d.differences(l.store))
	reader := d.Connect()
	tx, err := reader.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT ledger.oldest_offset()")
	require.NoError(t, err)
	b, pruned := d.pruning(t.Context(), 7, "floors")
	d.append(l, 8, exercise(9, 2, "used")) // the leader does not wait for whoever prunes
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-pruned)
	b.Close()
	require.Equal(t, []string{"unknown 8 1 not_found 0", "used 9 2 found 1"}, d.Rows(lookups))
	d.prune(8)
	require.Equal(t, []string{"used 9 2 found 1"}, d.Rows(lookups))
	require.Empty(t, d.differences(l.store))
	d.append(l, 9, storetest.NewUpdate(10, "sync::1"))
	d.prune(9)
	require.Empty(t, d.Rows(lookups))
	require.Empty(t, d.differences(l.store))
}

// What was compared before is not sealed after: the rows are other ones.
func TestASnapshotIsNotSealedAfterItWasPruned(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.seeded(storetest.ActiveEntry(2, 0, "c1", "sync::1", 0))
	d.append(l, 101, storetest.NewUpdate(110, "sync::1"))
	sealed, err := Audit.Stored(l.store).SealSnapshot(t.Context(), l.Leader, 100, func() { d.prune(105) })
	require.NoError(t, err)
	require.False(t, sealed)
}

// A verification that has decided what to read before something of it was pruned compares what is left.
func TestWhatIsPrunedMeanwhileIsNotCompared(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	updates := []ledger.Update{storetest.NewUpdate(2, "sync::1"), storetest.NewUpdate(5, "sync::1"), storetest.NewUpdate(8, "sync::1")}
	d.append(l, 0, updates...)
	compare := func(from, to ledger.Offset, updates ...ledger.Update) []Difference {
		t.Helper()
		list, err := Audit.Stored(l.store).Compare(t.Context(), ledger.Page{From: from, To: to, Updates: updates})
		require.NoError(t, err)
		return list
	}
	d.prune(4)
	require.Empty(t, compare(0, 3, updates[0]))
	require.Empty(t, compare(0, 8, updates...))
	require.NotEmpty(t, compare(0, 8, updates[0], updates[1]), "what is left is compared")
}

// Whoever begins to read while the floors are moved waits, and sees everything as it is then: its snapshot is not older
// than what it finds.
func TestWhoBeginsWhileOneIsPrunedSeesWhatIsLeft(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	updates := []ledger.Update{storetest.NewUpdate(2, "sync::1"), storetest.NewUpdate(5, "sync::1"), storetest.NewUpdate(8, "sync::1")}
	d.append(l, 0, updates...)
	// The end of pruning waits until somebody waits for it.
	d.Exec(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		WHILE NOT EXISTS (SELECT FROM pg_locks k JOIN pg_database d ON d.oid = k.database AND d.datname = current_database() WHERE NOT k.granted AND k.relation IN ('indexer.floors'::regclass, 'indexer.checkpoints'::regclass)) LOOP
			PERFORM pg_sleep(0.01);
		END LOOP;
		RETURN NEW;
	END $$`)
	d.Exec("CREATE TRIGGER waits BEFORE UPDATE ON indexer.floors FOR EACH ROW EXECUTE FUNCTION wait()")
	pruned := make(chan error, 1)
	back := d.leadPruning(d.store())
	go func() { pruned <- back.Prune(t.Context(), 4) }()
	d.WaitFor(`SELECT EXISTS (SELECT FROM pg_locks k JOIN pg_database d ON d.oid = k.database AND d.datname = current_database() WHERE k.mode = 'AccessExclusiveLock' AND k.granted AND k.relation = 'indexer.floors'::regclass)`)
	found, err := Audit.Stored(l.store).Compare(t.Context(), ledger.Page{From: 0, To: 8, Updates: updates})
	require.NoError(t, err)
	require.Empty(t, found)
	require.NoError(t, <-pruned)
	require.Equal(t, "4 4", d.Floors())
}
