package store

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ledgerindexer/internal/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(throwaway.Tests(m)) }

func migrate(ctx context.Context, url string) error {
	s, err := Open(Config{URL: url})
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Migrate(ctx)
	return err
}

var testScope = ledger.Scope{Shape: ledger.ShapeACSDelta, Reassignments: true}

// testDB is a migrated database of one test, and a connection beside the store's to look into it.
type testDB struct {
	t    testing.TB
	url  string
	conn *pgx.Conn
}

func newDatabase(t testing.TB) *testDB {
	t.Helper()
	d := &testDB{t: t, url: throwaway.Migrated(t, migrate)}
	d.conn = d.connect()
	return d
}

func (d *testDB) connect() *pgx.Conn {
	d.t.Helper()
	config, err := pgx.ParseConfig(d.url)
	require.NoError(d.t, err)
	config.RuntimeParams["search_path"] = defaultSchemas.searchPath()
	conn, err := pgx.ConnectConfig(d.t.Context(), config)
	require.NoError(d.t, err)
	d.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// open opens a store on the database, or on another way to it.
func (d *testDB) open(url string, change func(*Config)) *Store {
	d.t.Helper()
	cfg := Config{URL: url, Holder: "test"}
	if change != nil {
		change(&cfg)
	}
	s, err := Open(cfg)
	require.NoError(d.t, err)
	d.t.Cleanup(s.Close)
	return s
}

func (d *testDB) store() *Store { return d.open(d.url, nil) }

// lead takes a role that has to be free.
func (d *testDB) lead(s *Store, role Role) *Leader {
	d.t.Helper()
	return leads(d, func(ctx context.Context) (*Leader, bool, error) { return s.lead(ctx, role) })
}

func (d *testDB) leadUpdates(s *Store) *UpdatesWriter { d.t.Helper(); return leads(d, s.LeadUpdates) }
func (d *testDB) leadTransactions(s *Store) *TransactionsWriter {
	d.t.Helper()
	return leads(d, s.LeadTransactions)
}
func (d *testDB) leadBackfill(s *Store) *BackfillWriter {
	d.t.Helper()
	return leads(d, s.LeadBackfill)
}

func leads[W interface{ Close() }](d *testDB, take func(context.Context) (W, bool, error)) W {
	d.t.Helper()
	l, ok, err := take(d.t.Context())
	require.NoError(d.t, err)
	require.True(d.t, ok)
	d.t.Cleanup(l.Close)
	return l
}

// started is a leader of the updates stream, which has begun at genesis.
func (d *testDB) started() *UpdatesWriter {
	d.t.Helper()
	l := d.leadUpdates(d.store())
	require.NoError(d.t, l.Start(d.t.Context(), "participant::1", testScope, 0, true))
	return l
}

// rows reads a query's rows as text, columns separated by a space.
func (d *testDB) rows(query string, args ...any) []string {
	d.t.Helper()
	rows, err := d.conn.Query(d.t.Context(), query, args...)
	require.NoError(d.t, err)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		values, err := row.Values()
		text := ""
		for i, v := range values {
			if i > 0 {
				text += " "
			}
			text += fmt.Sprint(v)
		}
		return text, err
	})
	require.NoError(d.t, err)
	return list
}

// row is the only row of a query.
func (d *testDB) row(query string, args ...any) string {
	d.t.Helper()
	list := d.rows(query, args...)
	require.Len(d.t, list, 1)
	return list[0]
}

func (d *testDB) exec(query string, args ...any) {
	d.t.Helper()
	_, err := d.conn.Exec(d.t.Context(), query, args...)
	require.NoError(d.t, err)
}

// How long an event is waited for that comes at once on a healthy machine, and soon on the busiest one, and how often it is looked for.
const (
	waitLimit = 5 * time.Minute
	waitTick  = 5 * time.Millisecond
)

// waitFor polls until a query answers true.
func (d *testDB) waitFor(query string, args ...any) {
	d.t.Helper()
	conn := d.connect()
	require.Eventually(d.t, func() bool {
		var done bool
		err := conn.QueryRow(d.t.Context(), query, args...).Scan(&done)
		return err == nil && done
	}, waitLimit, waitTick, query)
}

// factTables are those whose rows belong to an update.
var factTables = tables.Names(tables.In(tables.Facts))

// facts lists what is stored of an offset range: the rows of each fact table, by offset.
func (d *testDB) facts(from, to int64) []string {
	d.t.Helper()
	var list []string
	for _, table := range factTables {
		for _, row := range d.rows(fmt.Sprintf(
			"SELECT ledger_offset, count(*) FROM indexer.%s WHERE ledger_offset > $1 AND ledger_offset <= $2 GROUP BY 1 ORDER BY 1", table), from, to) {
			list = append(list, table+" "+row)
		}
	}
	return list
}

func (d *testDB) coverage() []string {
	d.t.Helper()
	return d.rows("SELECT from_exclusive, to_inclusive FROM indexer.coverage ORDER BY 1")
}

func (d *testDB) watermark() string {
	d.t.Helper()
	return d.row("SELECT ledger_offset FROM indexer.checkpoints WHERE stream = 'updates'")
}

// Made up input ------------------------------------------------------------------------------------------------

const testTemplate = "pkg-1:Main:Asset"

func ptr[T any](v T) *T { return &v }

func testTime(text string) ledger.Time {
	t, err := ledger.ParseTime(text)
	if err != nil {
		panic(err)
	}
	return t
}

func newUpdate(offset ledger.Offset, synchronizer string) ledger.Update {
	return ledger.Update{
		Offset: offset, Kind: ledger.KindTransaction, ID: fmt.Sprint("update-", offset), SynchronizerID: &synchronizer,
		RecordTime: testTime("2025-01-02T03:04:05.123456Z"),
	}
}

func creation(nodeID int32, contractID string) ledger.CreatedEvent {
	return ledger.CreatedEvent{
		NodeID: nodeID, Origin: ledger.OriginTransaction, ContractID: contractID, TemplateID: testTemplate, PackageName: "asset",
		Argument: ledger.JSON(`{"amount": "1.0"}`), Signatories: []string{"alice"}, CreatedAt: testTime("2025-01-02T03:04:05Z"),
		ACSDelta: ptr(true),
	}
}

func archival(nodeID int32, contractID string) ledger.ArchivedEvent {
	return ledger.ArchivedEvent{NodeID: nodeID, ContractID: contractID, TemplateID: "pkg-2:Main:Asset", PackageName: "asset"}
}

func exercise(nodeID int32, contractID string, consuming bool, acsDelta *bool) ledger.ExercisedEvent {
	return ledger.ExercisedEvent{
		NodeID: nodeID, ContractID: contractID, TemplateID: testTemplate, PackageName: "asset", Choice: "Transfer", Consuming: consuming,
		LastDescendantNodeID: nodeID, ACSDelta: acsDelta,
	}
}

// assign adds an assignment and the creation event inside it.
func assign(u *ledger.Update, nodeID int32, contractID, source, target string, counter int64) {
	c := creation(nodeID, contractID)
	c.Origin = ledger.OriginAssignment
	u.Kind = ledger.KindReassignment
	u.Created = append(u.Created, c)
	u.Assigned = append(u.Assigned, ledger.AssignedEvent{
		NodeID: nodeID, ContractID: contractID, TemplateID: testTemplate, PackageName: "asset", Source: source, Target: target,
		ReassignmentID: fmt.Sprint("r-", counter), ReassignmentCounter: counter,
	})
}

func unassign(u *ledger.Update, nodeID int32, contractID, source, target string, counter int64) {
	u.Kind = ledger.KindReassignment
	u.Unassigned = append(u.Unassigned, ledger.UnassignedEvent{
		Offset: u.Offset, NodeID: nodeID, ContractID: contractID, TemplateID: testTemplate, PackageName: "asset", Source: source, Target: target,
		ReassignmentID: fmt.Sprint("r-", counter), ReassignmentCounter: counter,
	})
}

// oneCreation is a page with one update that creates one contract.
func oneCreation(from, to ledger.Offset) []ledger.Page {
	u := newUpdate(to, "sync::1")
	u.Created = []ledger.CreatedEvent{creation(0, fmt.Sprint("contract-", to))}
	return []ledger.Page{{From: from, To: to, Updates: []ledger.Update{u}}}
}

// everyKind is a page whose updates have a row in each fact table.
func everyKind(from ledger.Offset) []ledger.Page {
	transaction := newUpdate(from+1, "sync::1")
	c := creation(0, fmt.Sprint("contract-", from))
	c.InterfaceViews = []ledger.InterfaceView{{InterfaceID: holdingV1, Value: ledger.JSON(`{"a": "\u0000"}`)}}
	transaction.Created = []ledger.CreatedEvent{c, creation(1, fmt.Sprint("transient-", from))}
	transaction.Archived = []ledger.ArchivedEvent{archival(3, "unseen")}
	transaction.Exercised = []ledger.ExercisedEvent{{
		NodeID: 2, ContractID: fmt.Sprint("transient-", from), TemplateID: testTemplate, PackageName: "asset", Choice: "Archive", Consuming: true,
		LastDescendantNodeID: 2, Argument: ledger.JSON(`{}`), Result: ledger.JSON(`{}`),
	}}
	reassignment := newUpdate(from+2, "sync::2")
	assign(&reassignment, 0, "arrived", "sync::1", "sync::2", 1)
	topology := newUpdate(from+3, "sync::1")
	topology.Kind = ledger.KindTopology
	topology.Topology = []ledger.TopologyEvent{{Kind: ledger.TopologyAdded, PartyID: ptr("alice"), ParticipantID: ptr("p"), Permission: ptr("Submission")}}
	unknown := newUpdate(from+4, "sync::1")
	unknown.Kind = ledger.KindUnknown
	unknown.Unknown = []ledger.UnknownElement{{Kind: "Novelty", Raw: ledger.JSON(`{"Novelty": {}}`)}}
	return []ledger.Page{{From: from, To: from + 4, Updates: []ledger.Update{transaction, reassignment, topology, unknown}}}
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
