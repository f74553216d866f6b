package store

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// The package of an interface has the name that ledger.packages tells, or else the only one that was asked for.
func TestNamesOfInterfaces(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	ctx := t.Context()
	scope := storetest.Scope
	scope.Interfaces = []string{"#api:M.Sub:One", "#first:M:Two", "#second:M:Two", "pkg-3:M:Three", "#third:M:Three"}
	l := d.leadUpdates(d.store())
	require.NoError(t, l.Start(ctx, "participant::1", scope, 0, true))
	pages := storetest.OneCreation(0, 1)
	for _, id := range []string{"pkg-0:M.Sub:One", "pkg-2:M:Two", "pkg-3:M:Three", "pkg-4:M:One", "#by-name:M:One"} {
		pages[0].Updates[0].Created[0].InterfaceViews = append(pages[0].Updates[0].Created[0].InterfaceViews, ledger.InterfaceView{InterfaceID: id})
	}
	require.NoError(t, l.Append(ctx, scope, pages))
	names := func() []string {
		return d.Rows("SELECT interface_id, package_name, module_name, entity_name FROM ledger.interface_views ORDER BY ordinal")
	}
	require.Equal(t, []string{
		"pkg-0:M.Sub:One api M.Sub One", "pkg-2:M:Two <nil> M Two", "pkg-3:M:Three <nil> M Three", "pkg-4:M:One <nil> M One", "#by-name:M:One <nil> M One",
	}, names())

	vetted := vettedOn("sync::1", 1, "pkg-2", "pkg-3")
	vetted.Packages[0].PackageName, vetted.Packages[1].PackageName = "second", ""
	_, err := l.SaveVettedPackages(ctx, []ledger.VettedPackages{vetted})
	require.NoError(t, err)
	require.Equal(t, []string{"pkg-2:M:Two second M Two", "pkg-3:M:Three <nil> M Three"}, names()[1:3], "an empty name is none")
}

// An archival tells the choice that was its reason where the ledger did.
func TestChoicesOfArchivals(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	pages := storetest.EveryKind(0)
	pages[0].Updates[0].Exercised[0].ActingParties = []string{"bob", "alice"}
	require.NoError(t, d.started().Append(t.Context(), storetest.Scope, pages))
	require.Equal(t, []string{"2 Archive [bob alice]", "3 <nil> <nil>"}, d.Rows("SELECT node_id, choice, acting_parties FROM ledger.archived_events ORDER BY 1"))
}

// How far in time the data go is told by the last update that is shown and has a time.
func TestRecordTimeOfTheCheckpoint(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	reached := func() string {
		return d.Row("SELECT ledger_offset, (record_time AT TIME ZONE 'UTC')::text FROM ledger.stream_checkpoints WHERE stream = 'updates'")
	}
	require.Equal(t, "0 <nil>", reached())
	first, last := storetest.OneCreation(0, 10), storetest.OneCreation(10, 20)
	last[0].Updates[0].RecordTime = storetest.Time("2025-01-03T00:00:00Z")
	require.NoError(t, l.Append(t.Context(), storetest.Scope, append(first, last...)))
	require.Equal(t, "20 2025-01-03 00:00:00", reached())
	untimed := storetest.NewUpdate(25, "sync::1")
	untimed.Kind, untimed.RecordTime = ledger.KindUnknown, ledger.Time{}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: 20, To: 30, Updates: []ledger.Update{untimed}}}))
	require.Equal(t, "30 2025-01-03 00:00:00", reached())
	d.Exec("UPDATE indexer.checkpoints SET ledger_offset = 15 WHERE stream = 'updates'")
	require.Equal(t, "15 2025-01-02 03:04:05.123456", reached(), "nothing from beyond the watermark")
}

// The events of a contract are searched by its id, also where nothing was analyzed yet: reading all events before it
// for each one would take hours right after catching up.
func TestEventsAreFoundByContract(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	require.NoError(t, d.started().Append(t.Context(), storetest.Scope, append(storetest.EveryKind(0), storetest.OneCreation(4, 40_000)...)))
	d.Exec(`INSERT INTO indexer.created (ledger_offset, node_id, origin, contract_id, template_ref, acs_delta, payload)
		SELECT n, 0, 'transaction', 'c' || n, 1, true, to_jsonb(repeat('x', 700)) FROM generate_series(5, 39999) n`)
	for _, relation := range []string{"token_events", "token_transfers"} {
		plan := d.plan("SELECT * FROM ledger." + relation + " WHERE ledger_offset > 0 AND ledger_offset <= 100")
		require.Contains(t, plan, "created_p0_contract_id_idx", relation)
		require.NotRegexp(t, `using created_p0_pkey on .*\n +Filter`, plan, relation)
	}
	d.Exec(`INSERT INTO indexer.archived (ledger_offset, node_id, contract_id, template_ref)
		SELECT n, 1, 'c' || n, 1 FROM generate_series(5, 39999) n`)
	for _, query := range []string{
		"SELECT indexer.active_before('c' || n, 39999, 0) FROM generate_series(39000, 39199) n",
		"SELECT FROM indexer.missing_lookups(39799, 39999)",
		"SELECT archived_offset FROM ledger.contracts WHERE contract_id = ANY (ARRAY(SELECT 'c' || n FROM generate_series(39000, 39199) n))",
	} {
		plan := d.plan("(ANALYZE, BUFFERS) " + query)
		read := regexp.MustCompile(`Buffers: shared hit=(\d+)`).FindStringSubmatch(plan)
		require.Len(t, read, 2, plan)
		pages, err := strconv.Atoi(read[1])
		require.NoError(t, err)
		require.Less(t, pages, 200*40, "the index of all offsets has 80 pages and more: %s", plan)
	}
}

// Where a party's holdings begin and end is found without reading what moved for others: that would take the longer the
// more there is.
func TestMovementsOfAPartyReadItsUpdatesOnly(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	d.append(d.started(), 0, storetest.NewUpdate(1, "sync::1"))
	d.Exec(`INSERT INTO indexer.updates (ledger_offset, kind, record_time) SELECT n, 'transaction', '2026-01-01Z'::timestamptz + n * interval '1 second' FROM generate_series(2, 20000) n`)
	d.Exec("CREATE TABLE indexer.lifetimes_first PARTITION OF indexer.lifetimes FOR VALUES FROM (0) TO (20001)")
	d.Exec("INSERT INTO indexer.positions (position_id, owner, admin_signed) SELECT md5('p' || n)::uuid, 'p' || n, true FROM generate_series(1, 5000) n")
	d.Exec(`INSERT INTO indexer.lifetimes (deactivated_offset, activated_offset, activated_node_id, reassignment_counter, synchronizer_ref, template_ref, contract_id, position_id)
		SELECT n % 9000 + 1, 1, n, 0, 1, 1, 'c' || n, md5('p' || n % 5000)::uuid FROM generate_series(1, 50000) n`)
	d.Exec("UPDATE indexer.checkpoints SET ledger_offset = 20000")
	d.Exec("VACUUM ANALYZE")
	d.Exec("SELECT pg_stat_force_next_flush()") // else what it read may count below: PostgreSQL reports at most once a second
	tx, err := d.Conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	var moved, read int64
	require.NoError(t, tx.QueryRow(t.Context(), "SELECT count(*) FROM ledger.token_events_of('p77')").Scan(&moved))
	require.Zero(t, moved)
	require.NoError(t, tx.QueryRow(t.Context(), `SELECT sum(seq_tup_read + coalesce((SELECT sum(pg_stat_get_xact_tuples_returned(i.indexrelid)) FROM pg_index i WHERE i.indrelid = s.relid), 0))
		FROM pg_stat_xact_user_tables s WHERE relname ~ '^(lifetimes|updates)'`).Scan(&read))
	require.LessOrEqual(t, read, int64(100), "rows of lifetimes and updates that were read")
	require.Positive(t, read)
}

// A participant that lags on a synchronizer can process an assignment before the creation: the contract has one row.
func TestAnAssignmentBeforeTheCreation(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	up := d.started()
	assigned, created := storetest.NewUpdate(10, "sync::2"), storetest.NewUpdate(20, "sync::1")
	storetest.Assign(&assigned, 0, "contract", "sync::1", "sync::2", 1)
	created.Created = []ledger.CreatedEvent{storetest.Creation(0, "contract")}
	for _, u := range []ledger.Update{assigned, created} {
		origin := map[ledger.Offset]string{10: "assignment", 20: "transaction"}[u.Offset]
		require.NoError(t, up.Append(t.Context(), storetest.Scope, []ledger.Page{{From: u.Offset - 10, To: u.Offset, Updates: []ledger.Update{u}}}))
		require.Equal(t, []string{fmt.Sprint("contract ", origin, " ", u.Offset)}, d.Rows("SELECT contract_id, origin, first_offset FROM ledger.contracts"))
	}
}
