package check

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// parties gives a participant GET /v2/parties/{party}, which the simulator does not have: it hosts those that are true.
func parties(inner http.Handler, known map[string]bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, found := strings.CutPrefix(r.URL.Path, "/v2/parties/")
		if !found || path == "participant-id" {
			inner.ServeHTTP(w, r)
			return
		}
		if len(r.RequestURI) > 2048 { // as servers do
			w.WriteHeader(http.StatusRequestURITooLong)
			return
		}
		details := []map[string]any{}
		for _, party := range append(r.URL.Query()["parties"], path) {
			if local, ok := known[party]; ok {
				details = append(details, map[string]any{"party": party, "isLocal": local})
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"partyDetails": details})
	})
}

func TestRightsAndScopes(t *testing.T) {
	t.Parallel()
	const alice, bob, carol = "alice::1220", "bob::1220", "it's $HOME, carol"
	for _, opts := range []sandbox.ServerOptions{{Version: "3.4"}, {Version: "3.6"}, {StrictInterface: true}} {
		a, url, _ := guarded(t, opts)
		a.SetUser(sandbox.User{ID: "reader", Rights: []sandbox.Right{sandbox.CanReadAs(bob), sandbox.CanActAs(alice), sandbox.CanReadAs(carol)}})
		a.SetUser(sandbox.User{ID: "nobody"})
		told := !opts.StrictInterface // then the server tells what the user may do
		for name, c := range map[string]struct {
			user  string
			scope ledger.Scope
			level Level
			says  string
			paste []string
		}{
			"any party":                     {"indexer", anyParty, OK, "", nil},
			"one party of any":              {"indexer", scopeOf(alice), OK, "", nil},
			"its parties":                   {"reader", scopeOf(alice, bob), OK, "", nil},
			"any party, and may not":        {"reader", anyParty, Problem, "", []string{"--parties=" + alice + "," + bob}},
			"any party, and may nothing":    {"nobody", anyParty, Problem, "", nil},
			"one party too many":            {"reader", scopeOf("zoe", alice, "yan"), Problem, "yan", nil},
			"a party, and may nothing":      {"nobody", scopeOf(alice), Problem, "", nil},
			"effects, blobs and interfaces": {"reader", ledger.Scope{Parties: []string{alice}, Shape: ledger.ShapeLedgerEffects, Blobs: true}, OK, "", nil},
		} {
			report := look(t, Config{LedgerURL: url, LedgerAccess: tokenFile(t, a.Token(c.user)), Scope: c.scope})
			f := find(t, report, GroupScope, "reading")
			require.Equal(t, c.level, f.Level, "%s: %s", name, f.Text)
			require.Contains(t, f.Text, c.says, name)
			require.NotContains(t, f.Text, "403", "the server's message does not mention rights")
			if c.level == Problem && told {
				require.Equal(t, c.paste, nonEmpty(f.Paste), name)
			}
			require.Equal(t, c.level == Problem, report.Problems == 1, name)
		}
	}
}

// A refusal that does not come of a right that is missing: granting one would not help.
func TestRefusalsOfWhoHasTheRight(t *testing.T) {
	t.Parallel()
	for body, c := range map[string]struct{ says, do string }{
		"<html>closed":  {"not as a participant does", "see what stands between here and --ledger-url"}, // to a user without rights too
		"<html>blocked": {"not as a participant does", "see what stands between here and --ledger-url"},
		`{"code": "NA", "cause": "A security-sensitive error has been received"}`: {"who has the right that is needed", "see whether the user was deactivated"},
	} {
		for _, scope := range []ledger.Scope{anyParty, ofAlice} {
			l := grown(20)
			a := sandbox.NewAuthority(sandbox.AuthorityOptions{ParticipantID: l.ParticipantID()})
			a.SetUser(sandbox.User{ID: "indexer", Rights: []sandbox.Right{sandbox.CanReadAsAnyParty()}})
			if body == "<html>closed" {
				a.SetUser(sandbox.User{ID: "indexer"})
			}
			inner := sandbox.NewServer(l, sandbox.ServerOptions{Authority: a})
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/v2/updates") {
					http.Error(w, body, http.StatusForbidden)
					return
				}
				inner.ServeHTTP(w, r)
			})).URL
			f := find(t, look(t, Config{LedgerURL: url, LedgerAccess: tokenFile(t, a.Token("indexer")), Scope: scope}), GroupScope, "reading")
			require.Equal(t, Problem, f.Level)
			require.Contains(t, f.Text, c.says)
			require.Contains(t, f.Do, c.do)
			require.Empty(t, f.Paste)
		}
	}
}

func TestUnknownTemplates(t *testing.T) {
	t.Parallel()
	for version, wrongID := range map[string]string{"3.4": "#bank:Main:Nothing", "3.5": "0123:Main:Account", "3.6": "#nowhere:Main:Account"} {
		scope := anyParty
		scope.Templates = []string{wrongID}
		report := look(t, Config{LedgerURL: simulated(t, grown(20), sandbox.ServerOptions{Version: version}), Scope: scope})
		f := find(t, report, GroupScope, "reading")
		require.Equal(t, Problem, f.Level, version)
		require.Contains(t, f.Do, "--templates", version)
		require.Equal(t, 1, report.Problems)
		require.Contains(t, find(t, report, GroupScope, "scope").Text, "templates "+wrongID)
	}
}

func TestHosting(t *testing.T) {
	t.Parallel()
	inner := sandbox.NewServer(grown(20), sandbox.ServerOptions{})
	url := serve(t, parties(inner, map[string]bool{"alice": true, "a b::c": true, "bob": false})).URL
	readable := []string{"ok scope/scope", "ok scope/left out", "ok scope/reading"}
	for name, c := range map[string]struct {
		parties []string
		want    []string
	}{
		"hosted":         {[]string{"alice", "a b::c", "alice"}, []string{"ok scope/parties"}},
		"not hosted":     {[]string{"alice", "bob"}, []string{"warning scope/parties"}},
		"unknown":        {[]string{"zoe"}, []string{"warning scope/parties"}},
		"of either sort": {[]string{"bob", "zoe"}, []string{"warning scope/parties", "warning scope/parties"}},
	} {
		report := look(t, Config{LedgerURL: url, Scope: scopeOf(c.parties...)})
		require.Equal(t, slices.Concat(readable, c.want), of(report, GroupScope), name)
	}
	// Nothing is asked where no party is named, and too many don't make a path too long.
	require.Equal(t, readable, of(look(t, Config{LedgerURL: url}), GroupScope))
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("party-%d::1220%s", i, strings.Repeat("ab", 32)))
	}
	report := look(t, Config{LedgerURL: url, Scope: scopeOf(many...)})
	require.Equal(t, Warning, find(t, report, GroupScope, "parties").Level)
	for _, f := range report.Findings {
		require.Less(t, len(f.Text), 2000)
	}
}

func TestPartiesToPaste(t *testing.T) {
	t.Parallel()
	require.Equal(t, "--parties=a::1220,b::1220", partiesFlag([]string{"a::1220", "b::1220"}))
	require.Equal(t, `--parties='it'\''s,a b,$HOME'`, partiesFlag([]string{"it's", "a b", "$HOME", "a,b", " a", "\x1b[2J", ""}))
	require.Equal(t, "--parties=-a::1220", partiesFlag([]string{"-a::1220"}), "which is no flag")
	require.Empty(t, partiesFlag([]string{"a,b"}))
	require.Empty(t, partiesFlag(nil))
}

func TestPositions(t *testing.T) {
	t.Parallel()
	database := throwaway.Database(t) // stays empty
	pruned := grown(60)
	require.NoError(t, pruned.Prune(pruned.End()/2))
	empty := sandbox.NewLedger(sandbox.Options{Seed: 1})
	for name, c := range map[string]struct {
		history sandbox.History
		wrong   []string
		next    []string
	}{
		"new":    {grown(20), nil, []string{"indexer run"}},
		"pruned": {pruned, []string{"note position/pruned"}, []string{"backfill", "indexer run"}},
		"empty":  {empty, []string{"note position/end"}, []string{"indexer run"}},
	} {
		url := serve(t, sandbox.NewServer(c.history, sandbox.ServerOptions{})).URL
		report := look(t, Config{LedgerURL: url, DatabaseURL: database})
		var found []string
		for _, line := range of(report, GroupPosition) {
			if !strings.HasPrefix(line, "ok ") {
				found = append(found, line)
			}
		}
		require.Equal(t, c.wrong, found, name)
		require.Equal(t, c.next, report.Next, name)
		require.Contains(t, levels(report), "ok scope/reading")
	}
}

// Where a daemon is to begin counts in a database that is empty, and in no other.
func TestStarts(t *testing.T) {
	t.Parallel()
	l := grown(60)
	end := l.End()
	require.NoError(t, l.Prune(end/2))
	for name, c := range map[string]struct {
		start string
		opts  sandbox.ServerOptions
		wrong string // empty: nothing
		next  []string
	}{
		"genesis":               {"genesis", sandbox.ServerOptions{}, "", []string{"backfill", "indexer run"}},
		"latest":                {"latest", sandbox.ServerOptions{}, "note position/start", []string{"indexer run"}},
		"the pruned offset":     {fmt.Sprint(end / 2), sandbox.ServerOptions{}, "note position/start", []string{"indexer run"}},
		"below":                 {fmt.Sprint(end/2 - 1), sandbox.ServerOptions{}, "problem position/start", nil},
		"beyond the end":        {fmt.Sprint(end + 1), sandbox.ServerOptions{}, "problem position/start", nil},
		"an end that is untold": {"latest", sandbox.ServerOptions{StrictInterface: true}, "problem position/start", nil},
	} {
		start, err := ingest.ParseStart(c.start)
		require.NoError(t, err)
		cfg := Config{LedgerURL: simulated(t, l, c.opts), DatabaseURL: throwaway.Database(t), Start: start}
		report := look(t, cfg)
		found := ""
		for _, line := range wrong(report) {
			if strings.HasSuffix(line, "position/start") {
				found = line
			}
		}
		require.Equal(t, c.wrong, found, name)
		require.Equal(t, c.next, nonEmpty(report.Next), name)
	}

	begun := throwaway.Migrated(t, migrate)
	require.NoError(t, leading(t, begun).Start(t.Context(), l.ParticipantID(), anyParty, ledger.Offset(end/2), false))
	beyond, err := ingest.ParseStart(fmt.Sprint(end + 1))
	require.NoError(t, err)
	report := look(t, Config{LedgerURL: simulated(t, l, sandbox.ServerOptions{}), DatabaseURL: begun, Start: beyond})
	require.NotContains(t, strings.Join(levels(report), "\n"), "position/start")
}

// A daemon that is not to migrate refuses what is not its schema.
func TestSchemaThatIsToStay(t *testing.T) {
	t.Parallel()
	for _, url := range []string{throwaway.Database(t), throwaway.Migrated(t, migrate)} {
		report := look(t, Config{LedgerURL: simulated(t, grown(5), sandbox.ServerOptions{}), DatabaseURL: url})
		migrated := find(t, report, GroupDatabase, "schema").Text != "none yet: the first start makes it"
		report = look(t, Config{LedgerURL: simulated(t, grown(5), sandbox.ServerOptions{}), DatabaseURL: url, NoMigrate: true})
		require.Equal(t, migrated, !slices.Contains(wrong(report), "problem database/schema"))
	}
}

func TestConnectedToNothing(t *testing.T) {
	t.Parallel()
	inner := sandbox.NewServer(grown(20), sandbox.ServerOptions{})
	for body, level := range map[string]Level{
		`{"connectedSynchronizers": []}`: Warning, `{}`: Warning, `"\u001b"`: Note, `{"connectedSynchronizers": [{"synchronizerId": "a\u001b::1"}]}`: OK,
	} {
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v2/state/connected-synchronizers" {
				inner.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(body))
		})).URL
		report := look(t, Config{LedgerURL: url})
		require.Equal(t, level, find(t, report, GroupPosition, "synchronizers").Level, body)
	}
}
