package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// requireError holds an error of the database against what it should say.
func (d *testDB) requireError(message, query string, args ...any) {
	d.T.Helper()
	_, err := d.Conn.Exec(d.T.Context(), query, args...)
	require.ErrorContains(d.T, err, message, query)
}

// Where the active set is not known there is no answer, which would be taken for an empty set.
func TestActiveAtRefusesWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	for _, call := range []string{
		"active_at(1)", "active_at()", "active_at(NULL)", "holdings_at(ledger.latest_offset())", "time_at(ledger.latest_offset())", "offset_at(now())",
		"balance_at_offset('p', 'i', ledger.latest_offset())",
	} {
		d.requireError("nothing has been indexed yet", "SELECT FROM ledger."+call)
	}
	d.seeded(storetest.ActiveEntry(2, 0, "c1", "sync::1", 0), storetest.ActiveEntry(3, 0, "c2", "sync::1", 0))
	d.requireError("from offset 100 on", "SELECT FROM ledger.active_at(99)")
	d.requireError("the latest is 101", "SELECT FROM ledger.active_at(102)")
	d.requireError("not NULL", "SELECT FROM ledger.active_at(NULL)")
	require.Equal(t, []string{"c1", "c2"}, storetest.Sorted(d.Rows("SELECT contract_id FROM ledger.active_at(100)")))
	require.Equal(t, []string{"c1", "c2", "contract-101"}, storetest.Sorted(d.Rows("SELECT contract_id FROM ledger.active_at()")), "now")
}

// Where indexing began in the middle the state floor is NULL, which must not pass for a range that nothing happened in.
func TestStatementsWhereNoStateIsKnown(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	require.NoError(t, l.Start(t.Context(), "participant::1", storetest.Scope, 10, false))
	require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.OneCreation(10, 20)))
	for _, call := range []string{
		"party_statement('p', ledger.state_floor(), ledger.latest_offset())", "active_at(ledger.state_floor())", "holdings_at(ledger.state_floor())", "holding_totals_at(ledger.state_floor())",
		"balance_at_offset('p', 'i', ledger.state_floor())",
	} {
		d.requireError("known at no offset", "SELECT FROM ledger."+call)
	}
}

// Conditions on what is active at an offset reach the tables: the function is planned as a part of the query.
func TestActiveAtIsInlined(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.EveryKind(0)))
	d.becomeAnalyst()
	plan := d.plan("SELECT count(*) FROM ledger.active_at(2) WHERE entity_name = 'Asset'")
	require.NotContains(t, plan, "Function Scan")
	require.NotContains(t, plan, "created", "what nobody asks for is not looked up")
	require.Contains(t, plan, "lifetimes")
}

// A contract has one row wherever it went, and a sum over contracts counts it once.
func TestContractsHaveOneRowEach(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	created, moved, back := storetest.NewUpdate(1, "sync::1"), storetest.NewUpdate(2, "sync::2"), storetest.NewUpdate(3, "sync::1")
	created.Created = []ledger.CreatedEvent{storetest.Creation(0, "moving"), storetest.Creation(1, "ended"), storetest.Creation(2, "left")}
	created.Exercised = []ledger.ExercisedEvent{storetest.Exercise(3, "ended", true, nil)}
	storetest.Unassign(&created, 4, "left", "sync::1", "sync::2", 1)
	storetest.Assign(&moved, 0, "moving", "sync::1", "sync::2", 1)
	storetest.Assign(&moved, 1, "arrived", "sync::1", "sync::2", 1)
	storetest.Unassign(&back, 0, "moving", "sync::1", "sync::2", 1)
	back.Archived = []ledger.ArchivedEvent{storetest.Archival(1, "unseen")}
	d.append(l, 0, created, moved, back)
	require.Equal(t, []string{"arrived assignment 2 1 <nil> [sync::2]", "ended transaction 1 1 1 []", "left transaction 1 2 <nil> []", "moving transaction 1 0 <nil> [sync::2]"},
		d.Rows("SELECT contract_id, origin, first_offset, first_node_id, archived_offset, synchronizer_ids FROM ledger.contracts ORDER BY 1"))
}

// An update's events are one query, each with the exercise that it is a consequence of.
func TestEventsAreATree(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	u := storetest.NewUpdate(1, "sync::1")
	around := func(node, last int32) ledger.ExercisedEvent {
		e := storetest.Exercise(node, fmt.Sprint("c", node), node == 1, nil)
		e.LastDescendantNodeID = last
		return e
	}
	u.Exercised = []ledger.ExercisedEvent{around(0, 6), around(1, 3), around(2, 2), around(5, 6), around(8, 8)}
	u.Created = []ledger.CreatedEvent{storetest.Creation(3, "a"), storetest.Creation(4, "b"), storetest.Creation(6, "c"), storetest.Creation(7, "d")}
	d.append(l, 0, u)
	require.Equal(t, []string{
		"0 <nil> exercised", "1 0 exercised", "2 1 exercised", "3 1 created", "4 0 created", "5 0 exercised", "6 5 created", "7 <nil> created", "8 <nil> exercised",
	}, d.Rows(`SELECT node_id, parent_node_id, kind FROM ledger.events
		WHERE ledger_offset = (SELECT ledger_offset FROM ledger.updates WHERE update_id = 'update-1') ORDER BY node_id`))
}

// A contract's history has every kind of event once, in the order of the ledger.
func TestContractHistoryFunction(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	first, second, third := storetest.NewUpdate(1, "sync::1"), storetest.NewUpdate(2, "sync::1"), storetest.NewUpdate(4, "sync::2")
	first.Created = []ledger.CreatedEvent{storetest.Creation(0, "c"), storetest.Creation(1, "other")}
	first.Exercised = []ledger.ExercisedEvent{storetest.Exercise(2, "c", false, nil)}
	storetest.Unassign(&second, 0, "c", "sync::1", "sync::2", 1)
	storetest.Assign(&third, 0, "c", "sync::1", "sync::2", 1)
	third.Exercised = []ledger.ExercisedEvent{storetest.Exercise(1, "c", true, nil)}
	d.append(l, 0, first, second, third)
	require.Equal(t, []string{"1 0 created <nil> sync::1", "1 2 exercised false sync::1", "2 0 unassigned <nil> sync::1", "4 0 assigned <nil> sync::2", "4 1 exercised true sync::2"},
		d.Rows("SELECT ledger_offset, node_id, kind, consuming, synchronizer_id FROM ledger.contract_history('c')"))
	require.Empty(t, d.Rows("SELECT FROM ledger.contract_history('nobody')"))
}

// The offset at a time is the last before the first later update of any synchronizer, or of the one that is named,
// wherever their times lie beside one another, and whether or not those of one synchronizer grow.
func TestOffsetAt(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "tries many random histories")
	d := newDatabase(t)
	d.requireError("nothing has been indexed yet", "SELECT ledger.offset_at(now())")
	l := d.started()
	d.append(l, 0, storetest.NewUpdate(1, "sync::1")) // one that no update names is refused
	begin := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(rt *rapid.T) {
		d.Exec("TRUNCATE indexer.updates, indexer.coverage")
		d.Exec("UPDATE indexer.checkpoints SET ledger_offset = 0")
		var updates []ledger.Update
		clocks, at := map[string]int{}, ledger.Offset(0)
		for range rapid.IntRange(1, 12).Draw(rt, "updates") {
			at += ledger.Offset(rapid.SampledFrom([]int{1, 1, 2, 500, 3000}).Draw(rt, "gap")) // bisecting ends at a thousand offsets
			synchronizer := rapid.SampledFrom([]string{"sync::1", "sync::1", "sync::2"}).Draw(rt, "synchronizer")
			clocks[synchronizer] += rapid.IntRange(-2, 3).Draw(rt, "seconds")
			u := storetest.NewUpdate(at, synchronizer)
			u.RecordTime = storetest.Time(begin.Add(time.Duration(clocks[synchronizer]) * time.Second).Format(time.RFC3339))
			updates = append(updates, u)
		}
		require.NoError(rt, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: 0, To: at, Updates: updates}}))
		require.Empty(rt, d.Rows(`SELECT second, synchronizer FROM generate_series(-1, 40) second, unnest(ARRAY[NULL, 'sync::1']) synchronizer,
			LATERAL (SELECT $1::timestamptz + second * interval '1 second' AS at) t
			WHERE ledger.offset_at(t.at, synchronizer) IS DISTINCT FROM coalesce((SELECT min(u.ledger_offset) - 1 FROM ledger.updates u
				WHERE u.record_time > t.at AND u.synchronizer_id LIKE coalesce(synchronizer, '') || '%'), ledger.latest_offset())`, begin))
	})
	d.requireError("no update names the synchronizer sync::9", "SELECT ledger.offset_at(now(), 'sync::9')")
	d.requireError("not NULL", "SELECT ledger.offset_at(NULL)")
}

// A synchronizer was away for long, and its updates come at once: the first one that is looked at is not later than the
// time, and far behind the first that is. Finding that reads few updates all the same.
func TestOffsetAtOfASynchronizerThatWasAway(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	d.append(l, 0, storetest.NewUpdate(1, "sync::1"), storetest.NewUpdate(2, "sync::2"))
	d.Exec(`INSERT INTO indexer.updates (ledger_offset, kind, synchronizer_ref, record_time)
		SELECT n, 'transaction', s.number, '2026-01-01Z'::timestamptz + CASE s.synchronizer_id WHEN 'sync::1' THEN n ELSE n / 1000 END * interval '1 second'
		FROM generate_series(3, 60000) n
		JOIN ledger.synchronizers s ON s.synchronizer_id = CASE WHEN n BETWEEN 29000 AND 31000 AND n % 2 = 0 THEN 'sync::2' ELSE 'sync::1' END`)
	d.Exec("UPDATE indexer.checkpoints SET ledger_offset = 60000")
	d.Exec("VACUUM ANALYZE indexer.updates")    // with it the block index has all of them
	d.Exec("SELECT pg_stat_force_next_flush()") // else what it read may count below: PostgreSQL reports at most once a second
	tx, err := d.Conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	var at, read int64
	require.NoError(t, tx.QueryRow(t.Context(), "SELECT ledger.offset_at('2026-01-01 01:00Z')").Scan(&at))
	require.EqualValues(t, 3600, at)
	require.NoError(t, tx.QueryRow(t.Context(), "SELECT sum(idx_tup_fetch + seq_tup_read) FROM pg_stat_xact_user_tables WHERE relname LIKE 'updates%'").Scan(&read))
	require.Positive(t, read)
	require.Less(t, read, int64(5000), "updates that were read")
}

// notices runs a query, and returns what the server has noticed.
func (d *testDB) notices(query string) (said []string) {
	d.T.Helper()
	config, err := pgx.ParseConfig(d.URL)
	require.NoError(d.T, err)
	config.RuntimeParams["timezone"] = "UTC"
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { said = append(said, n.Message) }
	conn, err := pgx.ConnectConfig(d.T.Context(), config)
	require.NoError(d.T, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(d.T.Context(), query)
	require.NoError(d.T, err)
	return said
}

func TestOffsetAtRefusesATimeBeforeWhatIsIndexed(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	d.snapshot(l, 100, storetest.ActiveEntry(2, 0, "c1", "sync::1", 0), storetest.ActiveEntry(3, 0, "c2", "sync::2", 0))
	refused := func(message, arguments string) {
		t.Helper()
		d.requireError(message, "SELECT ledger.offset_at("+arguments+")")
	}

	// Before there is an update.
	refused("is not known: there is no update after offset 100", "'2000-01-01Z'")
	refused("is not known: there is no update after offset 100", "now() - interval '1 second', 'sync::1'")
	require.Equal(t, "100 100", d.Row("SELECT ledger.offset_at(now()), ledger.offset_at(now() + interval '10 s', 'sync::1')"))
	for _, arguments := range []string{"now() + interval '1 day'", "now() + interval '1 day', 'sync::1'", "'infinity'"} {
		d.requireError("that is in the future", "SELECT ledger.offset_at("+arguments+")")
	}
	d.Exec("INSERT INTO indexer.offset_checkpoints (ledger_offset, ordinal, synchronizer_ref, record_time) SELECT 100, 0, number, '2000-01-02Z' FROM ledger.synchronizers WHERE synchronizer_id = 'sync::1'")
	refused("is not known: there is no update after offset 100", "'2000-01-01Z', 'sync::1'")
	refused("is not known: there is no update after offset 100", "'2000-01-02Z', 'sync::2'")
	require.Equal(t, "100", d.Row("SELECT ledger.offset_at('2000-01-02Z', 'sync::1')"))

	require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.OneCreation(100, 101)))
	refused("is not known: the first update after offset 100 is later", "'2000-01-01Z'")
	require.Equal(t, "101", d.Row("SELECT ledger.offset_at(now())"))
	require.Equal(t, "true", d.Row("SELECT ledger.time_at(101) = (SELECT record_time FROM ledger.updates)"))
	require.Empty(t, d.notices("SELECT ledger.offset_at(now())"))
	require.Empty(t, d.notices("SELECT ledger.offset_at(ledger.time_at(101))"))
	require.Equal(t, []string{"the ledger is indexed up to offset 101, and nothing of 2026-01-02 00:00:00+00 or later has come yet"},
		d.notices("SELECT ledger.offset_at('2026-01-02Z')"))
	d.Exec("UPDATE indexer.offset_checkpoints SET record_time = '2026-01-03Z'")
	require.Empty(t, d.notices("SELECT ledger.offset_at('2026-01-02Z')"))
	require.Equal(t, "<nil>", d.Row("SELECT ledger.time_at(100)"))
	d.requireError("is not between 100 and 101", "SELECT ledger.time_at(102)")
	d.requireError("is not between 100 and 101", "SELECT ledger.time_at(99)")

	// Updates of another synchronizer say nothing of one's own.
	refused("is not known: there is no update after offset 100", "'2000-01-01Z', 'sync::2'")
	d.append(l, 101, storetest.NewUpdate(150, "sync::2"))
	refused("is not known: the first update after offset 100 is later", "'2000-01-01Z', 'sync::2'")
	require.Equal(t, "150", d.Row("SELECT ledger.offset_at(now(), 'sync::2')"))
}

func TestIsComplete(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	require.Equal(t, "false", d.Row("SELECT ledger.is_complete(0, 1)"))
	d.append(d.seeded(storetest.ActiveEntry(2, 0, "c1", "sync::1", 0)), 101, storetest.NewUpdate(103, "sync::1"))
	require.Equal(t, "true true false false",
		d.Row("SELECT ledger.is_complete(100, 103), ledger.is_complete(101, 102), ledger.is_complete(99, 103), ledger.is_complete(100, 104)"))
}

// A program that writes to the ledger waits for what it wrote. It sees what is committed while it waits.
func TestWaitForOffset(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	require.Equal(t, "false", d.Row("SELECT ledger.wait_for_offset(1, '10 ms')"))
	waits := d.Connect()
	answer := make(chan error, 1)
	go func() {
		var here bool
		err := waits.QueryRow(t.Context(), "SELECT ledger.wait_for_offset(1, '10 min')").Scan(&here)
		if err == nil && !here {
			err = fmt.Errorf("it is not here")
		}
		answer <- err
	}()
	d.WaitFor("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep')")
	d.append(l, 0, storetest.NewUpdate(1, "sync::1"))
	require.NoError(t, <-answer)
	tx, err := d.Conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT ledger.wait_for_offset(2)")
	require.ErrorContains(t, err, "never sees an offset that comes later")
	require.NoError(t, tx.Rollback(t.Context()))
	d.requireError("not NULL", "SELECT ledger.wait_for_offset(NULL)")
}
