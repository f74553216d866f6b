package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

type scanOptions struct {
	prefix    string
	records   []string // JSON
	noHistory bool     // as from Splice 0.7 on
	token     string   // that a proxy wants
	network   string   // that it tells; "none": it does not; default: DSO::1220
	partial   bool     // its history is not complete yet
}

// scanService is a Scan as far as a check looks at it, perhaps behind a proxy.
func scanService(t *testing.T, o scanOptions) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(status int, body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	mux.HandleFunc("GET "+o.prefix+"/version", answer(200, `{"version": "0.6.12", "commit_ts": "2026-07-01T00:00:00Z"}`))
	if o.network != "none" {
		mux.HandleFunc("GET "+o.prefix+"/v0/dso-party-id", answer(200, fmt.Sprintf(`{"dso_party_id": %q}`, cmp.Or(o.network, "DSO::1220"))))
	}
	mux.HandleFunc("GET "+o.prefix+"/v0/backfilling/status", answer(200, fmt.Sprintf(`{"complete": %t}`, !o.partial)))
	if !o.noHistory {
		mux.HandleFunc("POST "+o.prefix+"/v0/transactions", func(w http.ResponseWriter, r *http.Request) {
			var asked map[string]any
			if json.NewDecoder(r.Body).Decode(&asked) != nil || asked["sort_order"] != "desc" {
				answer(400, `{"error": "expected the newest records"}`)(w, r)
				return
			}
			answer(200, `{"transactions": [`+strings.Join(o.records, ",")+`]}`)(w, r)
		})
	}
	mux.HandleFunc("/", answer(404, `{"error": "The requested resource could not be found."}`))
	if o.token == "" {
		return mux
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+o.token {
			http.Error(w, "no token "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func transfer(date time.Time, changes string) string {
	return fmt.Sprintf(`{"transaction_type": "transfer", "event_id": "#1220:0", "date": %q, "domain_id": "d", "round": 1, "transfer": {
		"sender": {"party": "a"}, "receivers": [], "balance_changes": [%s]}}`, date.Format(time.RFC3339Nano), changes)
}

func tap(date time.Time) string {
	return fmt.Sprintf(`{"transaction_type": "devnet_tap", "event_id": "#1220:1", "date": %q, "domain_id": "d",
		"tap": {"amulet_owner": "a", "amulet_amount": "1.0000000000"}}`, date.Format(time.RFC3339Nano))
}

func TestScan(t *testing.T) {
	t.Parallel()
	now := time.Now()
	const change = `{"party": "a", "change_to_initial_amount_as_of_round_zero": "1.0", "change_to_holding_fees_rate": "0.0"}`
	for name, c := range map[string]struct {
		opts  scanOptions
		wrong []string
	}{
		"as it was until 2026":    {scanOptions{records: []string{transfer(now, change), tap(now)}}, nil},
		"without balance changes": {scanOptions{records: []string{tap(now), transfer(now, "")}}, []string{"note scan/balances"}},
		"without transfers":       {scanOptions{records: []string{tap(now)}}, []string{"note scan/balances"}},
		"nothing new":             {scanOptions{records: []string{transfer(now.Add(-72*time.Hour), change)}}, []string{"note scan/transactions"}},
		"empty":                   {scanOptions{}, []string{"note scan/transactions"}},
		"Splice 0.7":              {scanOptions{noHistory: true}, []string{"problem scan/transactions"}},
		"elsewhere":               {scanOptions{prefix: "/api/scan"}, []string{"problem scan/answer"}},
		"nowhere":                 {scanOptions{prefix: "/hidden"}, []string{"problem scan/answer"}},
		"behind a proxy":          {scanOptions{token: "s3cret"}, []string{"problem scan/token"}},
		"records of another kind": {scanOptions{records: []string{`{"date": "yesterday"}`}}, []string{"problem scan/transactions"}},
		"no records":              {scanOptions{records: []string{`"\u001b[2J"`}}, []string{"problem scan/transactions"}},
		"an amount that is none":  {scanOptions{records: []string{strings.Replace(tap(now), "1.0000000000", "1e", 1)}}, []string{"problem scan/transactions"}},
		"a record of a new kind":  {scanOptions{records: []string{`{"transaction_type": "new", "event_id": "#1220:2", "new": {}}`}}, []string{"note scan/transactions", "note scan/balances"}},
		"of no network":           {scanOptions{network: "none", records: []string{transfer(now, change)}}, []string{"note scan/network"}},
		"backfilling":             {scanOptions{partial: true, records: []string{transfer(now, change)}}, []string{"note scan/backfilling"}},
	} {
		report := look(t, Config{ScanURL: serve(t, scanService(t, c.opts)).URL, ScanHistory: "transactions"})
		var found []string
		for _, line := range wrong(report) {
			if strings.Contains(line, " scan/") {
				found = append(found, line)
			}
		}
		require.Equal(t, c.wrong, found, name)
	}
}

// What is to be read of a Scan is looked at, and nothing else.
func TestScanWhoseUpdatesAreRead(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 3})
	l.Grow(200)
	later := serve(t, sandbox.NewScan(l, sandbox.ScanOptions{Release: "0.7.1"})).URL
	earlier := serve(t, scanService(t, scanOptions{records: []string{tap(time.Now())}})).URL

	report := look(t, Config{ScanURL: later, ScanHistory: "updates"})
	require.NotContains(t, of(report, GroupScan), "transactions")
	f := find(t, report, GroupScan, "updates")
	require.Equal(t, OK, f.Level)
	require.Contains(t, f.Text, "the newest update of the network is of 2026-01-01T")

	other := sandbox.NewLedger(sandbox.Options{Seed: 4})
	other.Grow(100)
	report = look(t, Config{ScanURL: later, ScanHistory: "updates", ScanAgree: 4, OtherScans: []string{
		serve(t, sandbox.NewScan(l, sandbox.ScanOptions{})).URL, serve(t, sandbox.NewScan(other, sandbox.ScanOptions{})).URL,
	}})
	f = find(t, report, GroupScan, "networks")
	require.Equal(t, Problem, f.Level)
	require.Contains(t, f.Do, "the services of one network only")
	require.Equal(t, Problem, find(t, report, GroupScan, "agree").Level)

	waits := serve(t, sandbox.NewScan(l, sandbox.ScanOptions{Release: "0.7.1", Backfilling: true})).URL
	f = find(t, look(t, Config{ScanURL: waits, ScanHistory: "updates"}), GroupScan, "updates")
	require.Equal(t, Note, f.Level, "the daemon waits")
	require.Contains(t, f.Text, "has not yet replicated all data")

	f = find(t, look(t, Config{ScanURL: earlier, ScanHistory: "updates"}), GroupScan, "updates")
	require.Equal(t, Problem, f.Level)
	require.Contains(t, f.Text, "does not serve the updates of its network")
	require.Contains(t, f.Do, "--scan-history=transactions")
}

// What is no Scan is quoted, and the advice fits the answer.
func TestNoScan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, contentType string
		status            int
		topic, says, do   string
		body              string // default: a page
	}{
		"a proxy's page":                     {"/scan", "text/html", 404, "answer", "what answers does not speak as a Scan service", "/api/scan", ""},
		"a web page":                         {"/api/scan", "text/html", 200, "answer", `begins "<html>nginx</html>"`, "that it is the base of a Scan service", ""},
		"another service":                    {"/api/scan", "application/json", 200, "answer", "is not the one of this operation", "the right server", "[]"},
		"a service that is asked too much":   {"/api/scan", "text/plain", 429, "answer", "429 Too Many Requests", "wait a while", "slower"},
		"a proxy with nothing behind it yet": {"/api/scan", "text/html", 503, "answer", "503 Service Unavailable", "the right server", ""},
	} {
		server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.contentType)
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(cmp.Or(c.body, "<html>nginx</html>")))
		}))
		report := look(t, Config{ScanURL: server.URL + c.path})
		require.Contains(t, of(report, GroupScan), "problem scan/"+c.topic, name)
		f := find(t, report, GroupScan, c.topic)
		require.Equal(t, Problem, f.Level, name)
		require.Contains(t, f.Text, c.says, name)
		require.Contains(t, f.Do, c.do, name)
	}
}

func TestScanBehindAProxyThatWantsAToken(t *testing.T) {
	t.Parallel()
	url := serve(t, scanService(t, scanOptions{token: "s3cret", records: []string{tap(time.Now())}})).URL
	report := look(t, Config{ScanURL: url, ScanHistory: "transactions", ScanAccess: access.Config{TokenFile: file(t, "token", "s3cret")}})
	require.Equal(t, []string{"ok scan/url", "ok scan/version", "ok scan/network", "ok scan/transactions", "note scan/balances"}, of(report, GroupScan))
	requireNoSecret(t, report, "s3cret")

	report = look(t, Config{ScanURL: url, ScanHistory: "transactions", ScanAccess: access.Config{TokenFile: file(t, "token", "wr0ng")}})
	require.Equal(t, []string{"ok scan/url", "problem scan/token"}, of(report, GroupScan))
	requireNoSecret(t, report, "wr0ng") // which the proxy repeats

	report = look(t, Config{ScanURL: url, ScanHistory: "transactions", ScanAccess: access.Config{TokenFile: "/nowhere"}})
	require.Equal(t, []string{"ok scan/url", "problem scan/token"}, of(report, GroupScan))
}

// A Scan without the history that is asked for is a problem, also beside a participant: that stream would fail. It is
// said what answers the question instead.
func TestScanWithoutAHistory(t *testing.T) {
	t.Parallel()
	scanURL := serve(t, scanService(t, scanOptions{noHistory: true})).URL
	for _, ledgerURL := range []string{"", simulated(t, grown(20), sandbox.ServerOptions{})} {
		report := look(t, Config{
			LedgerURL: ledgerURL, ScanURL: scanURL, ScanHistory: "transactions", DatabaseURL: throwaway.Database(t),
			Args: []string{"--scan-url=" + scanURL},
		})
		f := find(t, report, GroupScan, "transactions")
		require.Equal(t, Problem, f.Level)
		require.Contains(t, f.Do, "ledger.holdings")
		require.Contains(t, f.Do, "leave out --scan-history=transactions")
		require.Empty(t, report.Next)
	}
}

// What comes next has the flags of the Scan service for the daemon, and not for the backfill, which knows none.
func TestNextWithAScan(t *testing.T) {
	t.Parallel()
	scanURL := serve(t, scanService(t, scanOptions{records: []string{tap(time.Now())}})).URL
	report := look(t, Config{ScanURL: scanURL, ScanHistory: "transactions", DatabaseURL: throwaway.Database(t), Args: []string{"--scan-url=" + scanURL}})
	require.Equal(t, []string{"indexer run --scan-url=" + scanURL}, report.Next)

	l := grown(50)
	require.NoError(t, l.Prune(l.Offset(20)))
	report = look(t, Config{
		LedgerURL: simulated(t, l, sandbox.ServerOptions{}), ScanURL: scanURL, ScanHistory: "transactions", DatabaseURL: throwaway.Database(t),
		Args: []string{"--blobs", "--scan-ca-file=ca", "--scan-url=" + scanURL}, BackfillArgs: []string{"--blobs"},
	})
	require.Equal(t, []string{"backfill --blobs", "indexer run --blobs --scan-ca-file=ca --scan-url=" + scanURL}, report.Next)
}

// The transaction history of one network is never mixed with another's.
func TestStoredHistory(t *testing.T) {
	t.Parallel()
	url := throwaway.Migrated(t, migrate)
	records := []string{tap(time.Now())}
	scanOf := func(network string) Config {
		return Config{DatabaseURL: url, ScanHistory: "transactions", ScanURL: serve(t, scanService(t, scanOptions{network: network, records: records})).URL}
	}
	require.Equal(t, OK, find(t, look(t, scanOf("DSO::1")), GroupDatabase, "history").Level)

	storeHistory(t, url, "DSO::1")
	report := look(t, scanOf("DSO::1"))
	require.Contains(t, find(t, report, GroupDatabase, "history").Text, "1 record of the transaction history")
	require.Equal(t, OK, find(t, report, GroupDatabase, "network").Level)
	f := find(t, look(t, scanOf("DSO::2")), GroupDatabase, "network")
	require.Equal(t, Problem, f.Level)
	require.Contains(t, f.Text, "DSO::1")
	require.Contains(t, f.Text, "DSO::2")
	require.Equal(t, Note, find(t, look(t, scanOf("none")), GroupDatabase, "network").Level)
	require.Equal(t, OK, find(t, look(t, Config{DatabaseURL: url}), GroupDatabase, "network").Level)

	// where the updates are read instead, beside a participant or alone, nothing is added to it any more
	without := scanOf("DSO::1")
	without.ScanHistory = "updates"
	beside := without
	beside.LedgerURL = simulated(t, grown(20), sandbox.ServerOptions{})
	leftBehind := func(cfg Config) Finding { return find(t, look(t, cfg), GroupDatabase, "history") }
	for _, cfg := range []Config{without, beside} {
		f := leftBehind(cfg)
		require.Equal(t, Warning, f.Level)
		require.Contains(t, f.Text, "1 record of a transaction history, the newest of 20")
		require.Contains(t, f.Do, "--scan-history=transactions")
	}
	db, err := store.Open(store.Config{URL: url, Holder: "another daemon"})
	require.NoError(t, err)
	defer db.Close()
	leader, _, err := db.LeadTransactions(t.Context())
	require.NoError(t, err)
	defer leader.Close()
	for _, cfg := range []Config{without, beside} {
		require.Contains(t, leftBehind(cfg).Text, ", which another daemon reads")
	}
}

// Without a ledger to read, whose updates are stored already, and in which scope, is no question.
func TestAScanForADatabaseWithUpdates(t *testing.T) {
	t.Parallel()
	url := throwaway.Migrated(t, migrate)
	db, err := store.Open(store.Config{URL: url, Holder: "the daemon"})
	require.NoError(t, err)
	defer db.Close()
	leader, _, err := db.LeadUpdates(t.Context())
	require.NoError(t, err)
	defer leader.Close()
	require.NoError(t, leader.Start(t.Context(), "PAR::1", ofAlice, 0, true))
	scanURL := serve(t, scanService(t, scanOptions{records: []string{tap(time.Now())}})).URL
	report := look(t, Config{DatabaseURL: url, ScanURL: scanURL, ScanHistory: "transactions"})
	f := find(t, report, GroupDatabase, "participant")
	require.Equal(t, OK, f.Level)
	require.Equal(t, "it holds the ledger of PAR::1", f.Text)
	require.Zero(t, report.Problems, levels(report))
}

// storeHistory stores a record of a network.
func storeHistory(t *testing.T, url, network string) {
	t.Helper()
	db, err := store.Open(store.Config{URL: url, Holder: "the daemon"})
	require.NoError(t, err)
	defer db.Close()
	leader, ok, err := db.LeadTransactions(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	defer leader.Close()
	require.NoError(t, leader.RecordNetwork(t.Context(), network))
	at, _, err := leader.TransactionsPosition(t.Context())
	require.NoError(t, err)
	records, err := ledger.DecodeTransactions([]byte(`{"transactions": [` + tap(time.Now()) + `]}`))
	require.NoError(t, err)
	_, err = leader.AppendTransactions(t.Context(), at, nil, records)
	require.NoError(t, err)
}

// The pair of schemas of a network's updates is checked where they are to be read, and the other one where something is
// to be read into it.
func TestThePairOfANetworkIsChecked(t *testing.T) {
	t.Parallel()
	brief.Long(t, "migrates a database from nothing, which takes a second or more")
	l := sandbox.NewLedger(sandbox.Options{Seed: 3})
	l.Grow(200)
	scan := serve(t, sandbox.NewScan(l, sandbox.ScanOptions{Release: "0.7.1"})).URL
	database := throwaway.Database(t)
	report := look(t, Config{LedgerURL: simulated(t, l, sandbox.ServerOptions{}), ScanURL: scan, DatabaseURL: database})
	require.Equal(t, "none yet: the first start makes it", find(t, report, GroupDatabase, "network's schema").Text)
	require.Equal(t, OK, find(t, report, GroupDatabase, "schema").Level)

	db, err := store.Open(store.Config{URL: database, Schemas: config.NetworkSchemas})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	_, err = db.Migrate(t.Context())
	require.NoError(t, err)
	of := Config{ScanURL: scan, ScanHistory: "updates", DatabaseURL: database}
	report = look(t, of)
	require.NotContains(t, levels(report), "ok database/schema", "nothing is to be read into it")
	require.Contains(t, find(t, report, GroupDatabase, "network's schema").Text, "version ")
	require.Equal(t, "none yet", find(t, report, GroupDatabase, "network's updates").Text)

	execute(t, database, "INSERT INTO network_indexer.participant (participant_id) VALUES ('DSO::other')")
	f := find(t, look(t, of), GroupDatabase, "network's updates")
	require.Equal(t, Problem, f.Level)
	require.Contains(t, f.Text, "they are of the network of DSO::other, and --scan-url leads to that of "+l.DSO())
	execute(t, database, "UPDATE network_indexer.participant SET participant_id = "+"'"+l.DSO()+"'")
	require.Contains(t, find(t, look(t, of), GroupDatabase, "network's updates").Text, "they are of this network")
}

// A service that fails keeps nothing from being read while enough others don't, whichever is the first.
func TestScanServicesThatFail(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 3})
	l.Grow(100)
	serves := serve(t, sandbox.NewScan(l, sandbox.ScanOptions{Release: "0.7.1"})).URL
	const down, gone = "http://127.0.0.1:1", "http://127.0.0.1:1/gone"
	for name, c := range map[string]struct {
		services []string
		agree    int
		wrong    []string
	}{
		"the first":    {[]string{down, serves}, 0, []string{"warning scan/connection"}},
		"another":      {[]string{serves, down}, 1, []string{"warning scan/url"}},
		"one of two":   {[]string{down, serves}, 2, []string{"problem scan/connection"}},
		"two of three": {[]string{serves, down, gone}, 2, []string{"problem scan/url", "problem scan/url"}},
		"all":          {[]string{down, gone}, 1, []string{"problem scan/connection", "problem scan/url"}},
	} {
		report := look(t, Config{ScanURL: c.services[0], OtherScans: c.services[1:], ScanAgree: c.agree, ScanHistory: "updates"})
		found := slices.DeleteFunc(wrong(report), func(line string) bool { return !strings.Contains(line, " scan/") })
		require.Equal(t, c.wrong, found, name)
		if slices.Contains(c.services, serves) {
			require.Equal(t, OK, find(t, report, GroupScan, "updates").Level, name)
		}
	}
}
