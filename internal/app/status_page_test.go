package app

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// getFrom gets a path of a server.
func getFrom(t *testing.T, address, path string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	require.NoError(t, err)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// The page of each of two daemons says where all streams stand, on an address of its own where it is given one, and
// names neither a party nor a contract of the ledger.
func TestTheStatusPage(t *testing.T) {
	t.Parallel()
	brief.Long(t, "runs two daemons, one of which takes over nothing")
	l := sandbox.NewLedger(sandbox.Options{Seed: 91})
	l.Grow(200)
	scan := sandbox.NewScan(l, sandbox.ScanOptions{})
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope())
	cfg.ScanURL, cfg.ScanHistory, cfg.Listen = []string{serveScan(t, scan)}, config.ScanTransactions, "127.0.0.1:0"
	var first, second journal
	leading := startLogged(t, cfg, first.logger())
	waitFor(t, database, lastUpdate(l))
	waitForHistory(t, database, scan)
	cfg.PageListen = "127.0.0.1:0"
	standing := startLogged(t, cfg, second.logger())
	eventuallyOf(t, standing, "two listeners", func() bool { return len(second.lines(t, "listening")) == 2 })
	probes, page := second.lines(t, "listening")[0]["address"].(string), second.lines(t, "listening")[1]["address"].(string)

	status, _ := getFrom(t, probes, "/")
	require.Equal(t, http.StatusNotFound, status, "the page has an address of its own")
	status, _ = getFrom(t, page, "/readyz")
	require.Equal(t, http.StatusNotFound, status)
	type stream struct {
		Stream, State string
		Offsets       *int64   `json:"lag_offsets"`
		Lag           *float64 `json:"lag_seconds"`
	}
	type data struct {
		Ready   bool
		Ledgers []struct {
			Name         string
			Streams      []struct{ Watermark int64 }
			Transactions struct{ Records int }
			Process      []stream
		}
	}
	read := func(address string) (d data) {
		t.Helper()
		status, body := getFrom(t, address, "/status.json")
		require.Equal(t, http.StatusOK, status)
		require.NoError(t, json.Unmarshal([]byte(body), &d))
		return d
	}
	nothing, none := 0.0, int64(0)
	eventuallyOf(t, standing, "its standing by, and a first measurement", func() bool {
		d := read(page)
		return d.Ready && d.Ledgers[0].Process[0].Offsets != nil
	})
	d := read(page)
	require.Len(t, d.Ledgers, 1)
	require.Equal(t, "ledger", d.Ledgers[0].Name)
	require.Equal(t, l.End(), d.Ledgers[0].Streams[0].Watermark)
	require.Equal(t, len(scan.EventIDs()), d.Ledgers[0].Transactions.Records)
	require.Equal(t, []stream{{"updates", "stands_by", &none, &nothing}, {"transactions", "stands_by", nil, nil}}, d.Ledgers[0].Process,
		"it asks the participant itself, and of the Scan service only the leader knows")
	for _, s := range read(first.wait(t, "listening")["address"].(string)).Ledgers[0].Process {
		require.Equal(t, "leads", s.State)
	}

	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), "SELECT contract_id FROM ledger.created_events")
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.NotEmpty(t, names)
	names = append(append(names, l.Parties()...), l.ParticipantID())
	for _, path := range []string{"/", "/status.json"} {
		_, body := getFrom(t, page, path)
		for _, name := range names {
			require.NotContains(t, body, name)
		}
	}
	require.NoError(t, standing.finish())
	require.NoError(t, leading.finish())
}

// An address that can't be listened on ends the start, and leaves nothing running.
func TestThePageNeedsItsAddress(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	cfg := indexerFor("postgres://nobody@127.0.0.1:1/nothing", "http://127.0.0.1:1", defaultScope())
	cfg.Listen, cfg.PageListen = "127.0.0.1:0", taken.Addr().String()
	requireProblem(t, RunIndexer(t.Context(), cfg, testLogger(t)), "--page-listen: listen tcp ", "a port that no other process")
}
