package check

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// database looks at a database alone.
func database(t *testing.T, url string) Report {
	t.Helper()
	report := look(t, Config{DatabaseURL: url})
	require.Equal(t, []string{"note ledger/url"}, of(report, GroupLedger))
	return report
}

func TestDatabases(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url   func(t *testing.T) string
		wrong []string // of the database
		says  string
	}{
		"empty":                               {func(t *testing.T) string { return throwaway.Database(t) }, nil, ""},
		"migrated":                            {func(t *testing.T) string { return throwaway.Migrated(t, migrate) }, nil, ""},
		"no URL":                              {func(*testing.T) string { return "postgres://u:hunter2@host:port/d" }, []string{"problem database/url"}, "must be of the form"},
		"a URL that ends within the password": {func(*testing.T) string { return "postgres://u:1/hunter2@host/d" }, []string{"problem database/url"}, "%2F"},
		"no authorities": {func(*testing.T) string {
			return "postgres://u:hunter2@host/d?sslmode=verify-full&sslrootcert=/nowhere/ca.pem"
		},
			[]string{"problem database/url"}, "open /nowhere/ca.pem: no such file"},
		"nobody listens": {func(*testing.T) string { return "postgres://u:hunter2@127.0.0.1:1/d" },
			[]string{"problem database/connection"}, "refused"},
		"no such socket": {func(t *testing.T) string { return "postgres://u:hunter2@/d?host=" + t.TempDir() }, []string{"problem database/connection"}, ""},
		"no such database": {func(t *testing.T) string {
			url := throwaway.Database(t)
			return strings.Replace(url, nameOf(t, url), "no_such_database", 1)
		}, []string{"problem database/connection"}, "3D000"},
		"another encoding": {func(t *testing.T) string {
			url := throwaway.Database(t)
			name := nameOf(t, url)
			execute(t, url, "CREATE DATABASE "+quoted(name+"_latin")+" ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
			t.Cleanup(func() { executeAtLast(t, url, "DROP DATABASE "+quoted(name+"_latin")+" WITH (FORCE)") })
			return strings.Replace(url, name, name+"_latin", 1)
		}, []string{"problem database/encoding"}, "LATIN1"},
		"read-only": {func(t *testing.T) string {
			url := throwaway.Migrated(t, migrate)
			execute(t, url, "ALTER DATABASE "+quoted(nameOf(t, url))+" SET default_transaction_read_only = on")
			return url
		}, []string{"problem database/writable"}, "(database)"},
		"a stranger": {func(t *testing.T) string {
			_, url := throwaway.Login(t, throwaway.Migrated(t, migrate), "")
			return url
		}, []string{"problem database/rights", "note database/schema"}, "belongs to"},
		"may not make schemas": {func(t *testing.T) string {
			_, url := throwaway.Login(t, throwaway.Database(t), "")
			return url
		}, []string{"problem database/rights", "note database/schema"}, "may not make schemas"},
		"may make schemas": {func(t *testing.T) string {
			url := throwaway.Database(t)
			role, as := throwaway.Login(t, url, "")
			execute(t, url, "GRANT CREATE ON DATABASE "+quoted(nameOf(t, url))+" TO "+quoted(role))
			return as
		}, nil, ""},
		"a table of another": {func(t *testing.T) string {
			url := throwaway.Migrated(t, migrate)
			role, as := throwaway.Login(t, url, "")
			execute(t, url, "ALTER SCHEMA indexer OWNER TO "+quoted(role), "ALTER SCHEMA ledger OWNER TO "+quoted(role))
			t.Cleanup(func() {
				executeAtLast(t, url, "ALTER SCHEMA indexer OWNER TO CURRENT_USER", "ALTER SCHEMA ledger OWNER TO CURRENT_USER")
			})
			return as
		}, []string{"problem database/rights", "note database/schema"}, "does not own indexer."},
		"somebody else's schema": {func(t *testing.T) string {
			url := throwaway.Database(t)
			execute(t, url, "CREATE SCHEMA ledger", "CREATE TABLE ledger.accounts ()")
			return url
		}, []string{"warning database/rights"}, "not the indexer's"},
		"newer": {func(t *testing.T) string {
			url := throwaway.Migrated(t, migrate)
			execute(t, url, "INSERT INTO indexer.schema_version (version_id, is_applied) VALUES (999999, true)")
			return url
		}, []string{"problem database/schema"}, "999999"},
		"older": {func(t *testing.T) string {
			url := throwaway.Migrated(t, migrate)
			execute(t, url, "DELETE FROM indexer.schema_version WHERE version_id > 3")
			return url
		}, []string{"note database/schema"}, "version 3;"},
		"not what it says to be": {func(t *testing.T) string {
			url := throwaway.Migrated(t, migrate)
			execute(t, url, "DROP TABLE indexer.participant CASCADE")
			return url
		}, []string{"problem database/contents"}, `relation "participant" does not exist`},
		"few connections": {func(t *testing.T) string {
			url := throwaway.Database(t)
			role, as := throwaway.Login(t, url, "CONNECTION LIMIT 5")
			execute(t, url, "GRANT CREATE ON DATABASE "+quoted(nameOf(t, url))+" TO "+quoted(role))
			return as
		}, []string{"warning database/connections"}, "up to 11"},
		"one connection": {func(t *testing.T) string {
			url := throwaway.Database(t)
			role, as := throwaway.Login(t, url, "CONNECTION LIMIT 1")
			execute(t, url, "GRANT CREATE ON DATABASE "+quoted(nameOf(t, url))+" TO "+quoted(role))
			return as
		}, []string{"warning database/connections", "problem database/pooler"}, "a second session beside the first can't be opened"},
		"a pooler in session mode": {pooled(throwaway.PoolSessions), nil, "sessions live as long as connections"},
		"a pooler in transaction mode": {pooled(throwaway.PoolTransactions), []string{"problem database/pooler"},
			"another session with each transaction"},
		"a pooler in statement mode": {pooled(throwaway.PoolStatements), []string{"problem database/pooler"}, "each transaction or statement"},
		"what a pooler does not know": {func(t *testing.T) string { return pooled(throwaway.PoolSessions)(t) + "&options=-cjit%3Doff" },
			[]string{"problem database/connection"}, "unsupported startup parameter: options"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := c.url(t)
			report := database(t, url)
			var found []string
			text := ""
			for _, f := range report.Findings {
				text += f.Text + "\n"
			}
			for _, line := range tuned(wrong(report)) {
				if strings.Contains(line, " database/") {
					found = append(found, line)
				}
			}
			require.Equal(t, c.wrong, found)
			require.Contains(t, text, c.says)
			require.Empty(t, report.Next, "the ledger is not configured")
			for _, secret := range []string{"hunter2", "secret-of-a-test"} {
				requireNoSecret(t, report, secret)
			}
		})
	}
}

// pooled is an empty database behind PgBouncer.
func pooled(mode string) func(t *testing.T) string {
	return func(t *testing.T) string { return throwaway.PgBouncer(t, throwaway.Database(t), mode) }
}

func TestWhatIsStoredAgainstTheLedger(t *testing.T) {
	t.Parallel()
	l := grown(40)
	end := ledger.Offset(l.End())
	pruned := grown(40)
	require.NoError(t, pruned.Prune(pruned.End()-1))
	other := scopeOf("alice", "bob")
	other.Blobs = true
	for name, c := range map[string]struct {
		history     *sandbox.Ledger
		participant string
		scope       ledger.Scope // stored
		at          ledger.Offset
		wrong       string // one finding
		says        string
		next        []string
	}{
		"continues":           {l, l.ParticipantID(), anyParty, 7, "", "", []string{"indexer run"}},
		"up to date":          {l, l.ParticipantID(), anyParty, end, "", "", []string{"indexer run"}},
		"whose is not known":  {l, "", anyParty, 7, "note database/participant", "does not know whose", []string{"indexer run"}},
		"another participant": {l, "participant9::12", anyParty, 7, "problem database/participant", "participant9::12", nil},
		"another scope":       {l, l.ParticipantID(), other, 7, "problem database/scope", "it has --parties alice,bob --blobs=true, these have --parties (any) --blobs=false", nil},
		"beyond the end":      {l, l.ParticipantID(), anyParty, end + 1, "problem database/watermark", "above the ledger's end", nil},
		"pruned since":        {pruned, pruned.ParticipantID(), anyParty, 7, "problem database/watermark", "can't be had any more", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := throwaway.Migrated(t, migrate)
			leader := leading(t, url)
			require.NoError(t, leader.Start(t.Context(), c.participant, c.scope, c.at, false))
			leader.Close()
			report := look(t, Config{LedgerURL: simulated(t, c.history, sandbox.ServerOptions{}), DatabaseURL: url})
			require.Equal(t, c.next, nonEmpty(report.Next))
			if c.wrong == "" {
				require.Zero(t, report.Problems)
				return
			}
			require.Contains(t, wrong(report), c.wrong)
			_, place, _ := strings.Cut(c.wrong, " ")
			group, topic, _ := strings.Cut(place, "/")
			require.Contains(t, find(t, report, group, topic).Text, c.says)
		})
	}
}

// A participant that was restored from a backup may have come further since than it was: its end says nothing.
func TestARestoredParticipant(t *testing.T) {
	t.Parallel()
	was, restored := grown(40), grown(20)
	restored.Diverge(99)
	restored.Grow(60)
	reading, err := participant.New(participant.Config{URL: simulated(t, was, sandbox.ServerOptions{})}, anyParty)
	require.NoError(t, err)
	defer reading.Close()
	for name, c := range map[string]struct {
		upTo  ledger.Offset
		now   *sandbox.Ledger
		level Level
		says  string
	}{
		"as it was":           {ledger.Offset(was.End()), was, OK, "the ledger is 0 offsets ahead"},
		"before the backup":   {ledger.Offset(was.Offset(15)), restored, OK, "offsets ahead"},
		"from another future": {ledger.Offset(was.End()), restored, Problem, "the last offset at which they agree is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page, err := reading.ReadUpdates(t.Context(), 0, c.upTo)
			require.NoError(t, err)
			require.Equal(t, c.upTo, page.To)
			require.Less(t, int64(page.To), restored.End())
			url := throwaway.Migrated(t, migrate)
			leader := leading(t, url)
			require.NoError(t, leader.Start(t.Context(), was.ParticipantID(), anyParty, 0, true))
			require.NoError(t, leader.Append(t.Context(), anyParty, []ledger.Page{page}))
			leader.Close()
			report := look(t, Config{LedgerURL: simulated(t, c.now, sandbox.ServerOptions{}), DatabaseURL: url})
			f := find(t, report, GroupDatabase, "watermark")
			require.Equal(t, c.level, f.Level, f.Text)
			require.Contains(t, f.Text, c.says)
			require.Equal(t, c.level == OK, len(report.Next) > 0)
			if c.level == Problem {
				require.Contains(t, f.Do, "run `indexer reanchor`")
			}
		})
	}
}

// The daemon continues while a check looks: what it stored since may be above the end that was asked for first.
func TestTheLedgersEndIsAskedAgain(t *testing.T) {
	t.Parallel()
	l := grown(40)
	inner := sandbox.NewServer(l, sandbox.ServerOptions{})
	for name, c := range map[string]struct {
		later int64 // told when the database is looked at; 0: an error
		level Level
		says  string
	}{
		"moved on":   {l.End(), OK, "the ledger is 0 offsets ahead"},
		"did not":    {l.End() - 1, Problem, "above the ledger's end"},
		"can't tell": {0, Warning, "is not known"},
	} {
		var looked atomic.Bool
		server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.URL.Path == "/v2/state/connected-synchronizers": // the last that is asked before the database
				looked.Store(true)
			case r.URL.Path != "/v2/state/ledger-end":
			case !looked.Load():
				_, _ = fmt.Fprintf(w, `{"offset": %d}`, l.End()-1)
				return
			case c.later == 0:
				http.Error(w, "busy", http.StatusServiceUnavailable)
				return
			default:
				_, _ = fmt.Fprintf(w, `{"offset": %d}`, c.later)
				return
			}
			inner.ServeHTTP(w, r)
		}))
		url := throwaway.Migrated(t, migrate)
		leader := leading(t, url)
		require.NoError(t, leader.Start(t.Context(), l.ParticipantID(), anyParty, ledger.Offset(l.End()), false))
		leader.Close()
		f := find(t, look(t, Config{LedgerURL: server.URL, DatabaseURL: url}), GroupDatabase, "watermark")
		require.Equal(t, c.level, f.Level, "%s: %s", name, f.Text)
		require.Contains(t, f.Text, c.says)
	}
}

func nonEmpty(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

func TestAnUnfinishedSnapshot(t *testing.T) {
	t.Parallel()
	l := grown(40)
	url := throwaway.Migrated(t, migrate)
	leader := leading(t, url)
	_, err := leader.BeginSnapshot(t.Context(), l.ParticipantID(), anyParty, 11)
	require.NoError(t, err)
	leader.Close()
	cfg := Config{LedgerURL: simulated(t, l, sandbox.ServerOptions{}), DatabaseURL: url}
	report := look(t, cfg)
	require.Contains(t, wrong(report), "note database/watermark")
	require.Equal(t, []string{"backfill", "indexer run"}, report.Next)
	cfg.Scope = ofAlice
	require.Contains(t, wrong(look(t, cfg)), "problem database/scope")
}

// A role that was limited to parties, and was given one that sees everything, is named.
func TestAReaderThatSeesMoreByNow(t *testing.T) {
	t.Parallel()
	url := throwaway.Database(t)
	require.NoError(t, migrate(t.Context(), url))
	role, _ := throwaway.Login(t, url, "")
	db, err := store.Open(store.Config{URL: url})
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Grant(t.Context(), store.Reader{Role: role, Parties: []string{"alice::1"}})
	require.NoError(t, err)
	require.NotContains(t, wrong(database(t, url)), "warning database/readers")
	other := nameOf(t, url) + "_everything"
	execute(t, url, "CREATE ROLE "+quoted(other))
	t.Cleanup(func() { executeAtLast(t, url, "DROP OWNED BY "+quoted(other), "DROP ROLE "+quoted(other)) })
	_, err = db.Grant(t.Context(), store.Reader{Role: other, AllParties: true})
	require.NoError(t, err)
	execute(t, url, "GRANT "+quoted(other)+" TO "+quoted(role))
	report := database(t, url)
	require.Contains(t, find(t, report, GroupDatabase, "readers").Text, "role "+quoted(role)+" was changed since it was limited to parties")
}

// The updates of a network have a pool of their own beside the participant's, and the transaction history has none.
func TestConnectionsOfEachSource(t *testing.T) {
	t.Parallel()
	const participant, service = "http://participant", "http://scan"
	for _, c := range []struct {
		ledger, scan string
		history      config.ScanHistory
		want         int
	}{
		{"", "", "", 11}, {participant, "", "", 11}, {participant, service, "transactions", 18}, {participant, service, "updates", 29}, {"", service, "updates", 22},
	} {
		require.Equal(t, c.want, (&checker{cfg: Config{LedgerURL: c.ledger, ScanURL: c.scan, ScanHistory: c.history}}).connections(), "%+v", c)
	}
}

// With --change-scope another scope is a problem if a daemon would refuse it.
func TestAScopeThatIsToBeChanged(t *testing.T) {
	t.Parallel()
	l := grown(40)
	for name, c := range map[string]struct {
		stored ledger.Scope
		level  Level
		says   string
	}{
		"shows more":       {scopeOf("alice"), Note, "puts another scope in force than it holds"},
		"is shown already": {anyParty, OK, "it holds what these flags ask for"},
		"has another form": {func() ledger.Scope { s := anyParty; s.Blobs = true; return s }(), Problem, "in --blobs it has another form than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := throwaway.Migrated(t, migrate)
			leader := leading(t, url)
			require.NoError(t, leader.Start(t.Context(), l.ParticipantID(), c.stored, 0, true))
			require.NoError(t, leader.Append(t.Context(), c.stored, []ledger.Page{{To: 7}}))
			leader.Close()
			report := look(t, Config{LedgerURL: simulated(t, l, sandbox.ServerOptions{}), DatabaseURL: url, ChangeScope: true, Args: []string{"--change-scope"}})
			f := find(t, report, GroupDatabase, "scope")
			require.Equal(t, c.level, f.Level)
			require.Contains(t, f.Text, c.says)
		})
	}
}
