package check

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// tuned leaves out what depends on how the tests' own PostgreSQL is set up.
func tuned(list []string) []string {
	return slices.DeleteFunc(list, func(line string) bool {
		return strings.HasSuffix(line, "database/settings") || strings.HasSuffix(line, "database/tuning")
	})
}

func TestEveryRelease(t *testing.T) {
	t.Parallel()
	l := grown(40)
	for name, c := range map[string]struct {
		opts  sandbox.ServerOptions
		wrong []string
	}{
		"3.4.0":  {sandbox.ServerOptions{Version: "3.4"}, []string{"note ledger/updates", "note ledger/snapshot"}},
		"3.5.5":  {sandbox.ServerOptions{Version: "3.5.5"}, nil},
		"3.5.10": {sandbox.ServerOptions{Version: "3.5"}, nil},
		"3.6.0":  {sandbox.ServerOptions{Version: "3.6"}, nil},
		"interface.md alone": {sandbox.ServerOptions{StrictInterface: true}, []string{
			"note ledger/version", "note ledger/participant", "note ledger/updates", "note ledger/ledger-end", "note ledger/packages",
			"note ledger/snapshot",
			"note position/end", "note position/pruned",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := look(t, Config{
				LedgerURL: simulated(t, l, c.opts), DatabaseURL: throwaway.Migrated(t, migrate), Args: []string{"--blobs"},
			})
			require.Equal(t, append(c.wrong, "note scan/url"), tuned(wrong(report)))
			require.Equal(t, []string{"indexer run --blobs"}, report.Next)
			require.Contains(t, levels(report), "ok scope/reading")
			left := find(t, report, GroupScope, "left out").Text
			require.Contains(t, left, "exercises: choices, who acted, arguments, results and why tokens moved (--shape ledger-effects); ")
			require.Contains(t, left, "another database")
			if !c.opts.StrictInterface {
				require.Equal(t, "release "+name, find(t, report, GroupLedger, "version").Text)
				require.Equal(t, l.ParticipantID(), find(t, report, GroupLedger, "participant").Text)
			}
		})
	}
}

func TestNothingConfigured(t *testing.T) {
	t.Parallel()
	report := look(t, Config{})
	require.Equal(t, []string{"note ledger/url", "problem scan/url", "note database/url"}, levels(report))
	for _, f := range report.Findings {
		require.Contains(t, f.Text, "not configured")
	}
	require.Equal(t, "give --ledger-url, --scan-url or both", find(t, report, GroupScan, "url").Do, "as `indexer run` says")
	require.Empty(t, report.Next)
}

// What lists of a snapshot offer shows in one that is not empty.
func TestListsOfASnapshot(t *testing.T) {
	t.Parallel()
	var (
		missing = plainly(http.StatusNotFound, "no")
		dropped = func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				plainly(http.StatusBadRequest, "Invalid value for: body (exhausted input)")(w, r)
				return
			}
			plainly(http.StatusMethodNotAllowed, "Method Not Allowed")(w, r)
		}
	)
	for name, c := range map[string]struct {
		updates int
		release string
		pages   http.HandlerFunc
		scope   ledger.Scope
		level   Level
		says    []string
	}{
		"tokens": {40, "3.5", missing, anyParty, OK, []string{"in lists of up to 200", "with continuation tokens; an interrupted"}},
		"pages by GET": {40, "3.5", dropped, anyParty, OK,
			[]string{"with continuation tokens; an interrupted", "by GET with a body", "does not let that through", "exhausted input"}},
		"empty": {0, "3.5", missing, anyParty, Note,
			[]string{"whether they have continuation tokens is not known: at the ledger's end 0 no contract"}},
		"nothing of the scope": {40, "3.5", missing, scopeOf("nobody::1220"), Note, []string{"is not known: at the ledger's end", "shows nothing"}},
		"none":                 {40, "3.4", missing, anyParty, Note, []string{"in one answer", "http-list-max-elements-limit"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner := sandbox.NewServer(grown(c.updates), sandbox.ServerOptions{Version: c.release})
			report := look(t, Config{Scope: c.scope, LedgerURL: serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v2/state/active-contracts-page" {
					c.pages(w, r)
					return
				}
				inner.ServeHTTP(w, r)
			})).URL})
			f := find(t, report, GroupLedger, "snapshot")
			require.Equal(t, c.level, f.Level, f.Text)
			for _, part := range c.says {
				require.Contains(t, f.Text, part)
			}
		})
	}
}

func plainly(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, status) }
}

// An operation that fails is not one that is missing.
func TestWhatCouldNotBeFoundOut(t *testing.T) {
	t.Parallel()
	inner := sandbox.NewServer(grown(20), sandbox.ServerOptions{})
	for path, topic := range map[string]string{
		"/v2/updates/get-updates-page":    "updates",
		"/v2/state/active-contracts-page": "snapshot",
		"/v2/state/ledger-end":            "ledger-end",
		"/v2/contracts/contract-by-id":    "lookups",
		"/v2/package-vetting/list":        "packages",
	} {
		report := look(t, Config{LedgerURL: serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				http.Error(w, "busy", http.StatusServiceUnavailable)
				return
			}
			inner.ServeHTTP(w, r)
		})).URL})
		f := find(t, report, GroupLedger, topic)
		require.Equal(t, Warning, f.Level, path)
		require.Contains(t, f.Text, "is not known: ", path)
		require.Contains(t, f.Text, "503 Service Unavailable", path)
	}
}

// Findings of a group stand together, whenever they were made.
func TestFindingsAreGrouped(t *testing.T) {
	t.Parallel()
	report := look(t, Config{LedgerURL: simulated(t, grown(5), sandbox.ServerOptions{})})
	var order []string
	for _, f := range report.Findings {
		order = append(order, f.Group)
	}
	require.Equal(t, []string{GroupLedger, GroupToken, GroupScope, GroupPosition, GroupScan, GroupDatabase, GroupClocks}, slices.Compact(order))
}

// What the check sends changes nothing: reads, and requests for users and versions.
func TestOnlyReads(t *testing.T) {
	t.Parallel()
	l := grown(20)
	inner := sandbox.NewServer(l, sandbox.ServerOptions{})
	var mu sync.Mutex
	var asked []string
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.URL.Path)
		mu.Unlock()
		inner.ServeHTTP(w, r)
	})).URL
	database := throwaway.Migrated(t, migrate)
	// Nothing may be written by whoever connects, unless a statement asks for it.
	execute(t, database, "ALTER DATABASE "+quoted(nameOf(t, database))+" SET default_transaction_read_only = on")
	report := look(t, Config{LedgerURL: url, DatabaseURL: database, Scope: ofAlice, ScanURL: url})
	require.Contains(t, levels(report), "problem database/writable")
	allowed := []string{
		"GET /v2/version", "GET /version", "GET /v2/parties/participant-id", "GET /v2/parties/alice::1220",
		"GET /v2/state/ledger-end", "GET /v2/state/latest-pruned-offsets", "GET /v2/state/connected-synchronizers",
		"POST /v2/updates", "POST /v2/updates/flats", "POST /v2/updates/get-updates-page",
		"POST /v2/state/active-contracts", "POST /v2/state/active-contracts-page", "POST /v2/contracts/contract-by-id",
		"POST /v2/package-vetting/list", "POST /v0/transactions", "GET /v0/dso-party-id", "GET /v0/backfilling/status",
	}
	mu.Lock()
	defer mu.Unlock()
	require.Subset(t, allowed, asked)
	require.Contains(t, asked, "POST /v2/updates")
}

// A check beside a daemon takes nothing from it.
func TestTheLeaderGoesOn(t *testing.T) {
	t.Parallel()
	l := grown(20)
	database := throwaway.Migrated(t, migrate)
	leader := leading(t, database)
	require.NoError(t, leader.Start(t.Context(), l.ParticipantID(), anyParty, 0, true))
	for range 3 {
		report := look(t, Config{LedgerURL: simulated(t, l, sandbox.ServerOptions{}), DatabaseURL: database})
		require.Equal(t, []string{"note scan/url", "note database/leader"}, tuned(wrong(report)))
		require.Contains(t, find(t, report, GroupDatabase, "leader").Text, "the daemon leads")
	}
	require.NoError(t, leader.Err())
	require.NoError(t, leader.RecordIdentity(t.Context(), l.ParticipantID(), anyParty), "it still writes")
}

func leading(t *testing.T, database string) *store.UpdatesWriter {
	t.Helper()
	db, err := store.Open(store.Config{URL: database, Holder: "the daemon"})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	leader, ok, err := db.LeadUpdates(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	t.Cleanup(leader.Close)
	return leader
}

// What is not looked at says because of what.
func TestWhatIsSkippedSaysWhy(t *testing.T) {
	t.Parallel()
	_, url, _ := guarded(t, sandbox.ServerOptions{})
	for because, cfg := range map[string]Config{
		"there is no connection to the participant":   {LedgerURL: "http://127.0.0.1:1"},
		"the server requires a token that it accepts": {LedgerURL: url},
		"there is no token to ask with":               {LedgerURL: url, LedgerAccess: access.Config{TokenFile: "/nowhere"}},
		"the server offers no update stream":          {LedgerURL: serve(t, scanService(t, scanOptions{})).URL},
		"the scope is invalid":                        {LedgerURL: url, Scope: scopeOf("\xff"), LedgerAccess: tokenFile(t, "0paque")},
	} {
		report := look(t, cfg)
		require.Contains(t, find(t, report, GroupPosition, "ledger").Text, "not checked: "+because)
		require.Contains(t, find(t, report, GroupScope, "ledger").Text, "not checked: "+because)
		require.Equal(t, 1, report.Problems, because)
		require.Empty(t, report.Next)
	}
}

// Whoever gave no database is not told that all is right.
func TestTheSummarySaysThatNoDatabaseWasChecked(t *testing.T) {
	t.Parallel()
	ledgerOnly := []Finding{{Group: GroupLedger, Level: OK}, {Group: GroupDatabase, Topic: "url", Level: Note}}
	for want, r := range map[string]Report{
		"Nothing was checked.": {Findings: ledgerOnly[1:]},
		"Nothing is wrong with what was checked; the database was not checked.": {Findings: ledgerOnly},
		"No problem, 1 warning; the database was not checked.":                  {Findings: ledgerOnly, Warnings: 1},
		"1 problem; the database was not checked.":                              {Findings: ledgerOnly, Problems: 1},
		"Nothing is wrong with what was checked.":                               {Findings: append(ledgerOnly, Finding{Group: GroupDatabase, Level: OK})},
	} {
		require.Equal(t, want, r.Summary())
	}
}
