package statuspage

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ledgerindexer/internal/base/version"
	"ledgerindexer/internal/features/admin"
	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(throwaway.Tests(m)) }

func migrate(ctx context.Context, url string) error {
	db, err := store.Open(store.Config{URL: url})
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Migrate(ctx)
	return err
}

// The names that no page may show.
const (
	aParty    = "bob-1::1220aaaabbbbccccddddeeeeffff00001111222233334444555566667777888899990000"
	another   = "Alice Smith::1220aaaabbbbccccddddeeeeffff00001111222233334444555566667777888899990000" // quoted where it is told
	aContract = "00deadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefca021220"
)

// world is a page of a database that holds a bit of everything, and of two processes' states.
type world struct {
	page *Page
	conn *pgx.Conn
	db   *store.Store
	lag  admin.Lag
}

func newWorld(t *testing.T) *world {
	t.Helper()
	database := throwaway.Migrated(t, migrate)
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	w := &world{conn: conn, lag: admin.Lag{Leads: true, Known: true, End: 5000, Offsets: 1000, Seconds: 75}}
	w.db, err = store.Open(store.Config{URL: database})
	require.NoError(t, err)
	t.Cleanup(w.db.Close)
	w.exec(t, `
		INSERT INTO indexer.checkpoints (stream, ledger_offset) VALUES ('updates', 4000);
		INSERT INTO indexer.floors (stream, history_floor, state_floor) VALUES ('updates', 1000, 2000);
		INSERT INTO indexer.coverage (stream, scope, from_exclusive, to_inclusive) VALUES
			('updates', 's', 1000, 3000), ('updates', 's', 3000, 4000), ('updates', 's', 4500, 4600);
		INSERT INTO indexer.verifications (stream, from_exclusive, to_inclusive, verified_at, result, differences, digest) VALUES
			('updates', 1000, 3500, now(), 'equal', 0, sha256(''));
		INSERT INTO indexer.progress (stream, unit, began_at, from_exclusive, reached, to_inclusive, done, per_second, time_left, updated_at) VALUES
			('updates', 'updates', now(), 1000, 4000, 5000, 900, 21300.4, '00:04:00.5', now())`)
	_, err = conn.Exec(t.Context(), `INSERT INTO indexer.tasks (task, succeeded_at, failed_at, failure) VALUES ('updates', NULL, now() - interval '3 hours', $1),
		('pruning', NULL, now(), 'the export has stopped; what to do: see that it runs')`,
		`user "x" may not read as "`+another+`" <b>contract</b> `+aContract+`; what to do: grant CanReadAs for `+aParty)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "INSERT INTO indexer.participant (participant_id) VALUES ($1)", aParty)
	require.NoError(t, err)

	health := admin.NewHealth([]string{"updates", "transactions"})
	health.Set("updates", admin.Waits, false, "leading, trying again: no rights for "+aParty)
	health.Set("transactions", admin.StandsBy, true, "standing by: another process leads")
	journal := &Journal{}
	logger := slog.New(journal.Handler(slog.DiscardHandler))
	for range 3 {
		logger.Warn("trying again", "stream", "updates", "contract_id", aContract, "error", errors.New("no answer about "+aContract))
	}
	logger.Error("the stream can't continue", "stream", "updates", "error", &ledger.Problem{What: "no right for " + aParty, Do: "grant it to " + aParty})
	w.page = New(Config{
		Build: version.Build{Version: "v1.2.3", Commit: "0123456789abcdef", Schema: 15, Go: "go1.26"}, Holder: "host pid 1", Health: health, Journal: journal,
		Hosts: []string{"Indexer.example.com", "Proxy.example.com.:8443"},
		Ledgers: []Ledger{{Name: "ledger", Store: w.db, Sized: func(store.DiskUse) {}, Streams: []Stream{
			{Title: "updates", Kind: store.StreamUpdates, Source: "the participant", Lag: func() admin.Lag { return w.lag },
				Version: func(context.Context) string { return "3.5.1" }},
			{Title: "transactions", Kind: store.StreamTransactions, Source: "the Scan service", Lag: func() admin.Lag { return admin.Lag{} },
				Version: func(context.Context) string { return "" }},
		}}},
	})
	return w
}

func (w *world) exec(t *testing.T, sql string) {
	t.Helper()
	_, err := w.conn.Exec(t.Context(), sql)
	require.NoError(t, err)
}

// addRecords adds two records to the transaction history.
func (w *world) addRecords(t *testing.T) {
	t.Helper()
	leader, _, err := w.db.LeadTransactions(t.Context())
	require.NoError(t, err)
	defer leader.Close()
	require.NoError(t, leader.RecordNetwork(t.Context(), aParty))
	at, _, err := leader.TransactionsPosition(t.Context())
	require.NoError(t, err)
	records, err := ledger.DecodeTransactions([]byte(`{"transactions": [
		{"transaction_type": "devnet_tap", "event_id": "#1220aaaabbbbccccddddeeeeffff0000:1", "date": "2026-07-02T10:00:00Z", "domain_id": "d",
		 "tap": {"amulet_owner": "a", "amulet_amount": "1.0000000000"}},
		{"transaction_type": "devnet_tap", "event_id": "#1220aaaabbbbccccddddeeeeffff0000:2", "date": "2026-07-02T10:00:00Z", "domain_id": "d",
		 "tap": {"amulet_owner": "a", "amulet_amount": "1.0000000000"}}]}`))
	require.NoError(t, err)
	_, err = leader.AppendTransactions(t.Context(), at, nil, records)
	require.NoError(t, err)
}

// measure measures once, as if that had been so long ago.
func (w *world) measure(t *testing.T, ago time.Duration) {
	t.Helper()
	l, m := w.page.cfg.Ledgers[0], w.page.ledgers[0]
	w.page.measure(t.Context(), l, m)
	w.page.measureSize(t.Context(), l, m)
	w.page.release(t.Context(), l, m)
	m.headsAt = m.headsAt.Add(-ago)
	for _, s := range m.streams {
		s.samples[len(s.samples)-1].At = time.Now().UTC().Add(-ago)
	}
	m.sizes[len(m.sizes)-1].at = time.Now().Add(-ago)
}

// ask asks for a path by a host.
func (w *world) ask(t *testing.T, host, path string) *httptest.ResponseRecorder {
	t.Helper()
	mux := http.NewServeMux()
	w.page.Register(mux)
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	request.Host = host
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, request)
	return answer
}
