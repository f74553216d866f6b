package check

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(throwaway.Tests(m)) }

// patience is long enough for whatever answers, and short where nothing does: tests of silence wait for it.
const (
	patience      = time.Minute
	shortPatience = time.Second
)

var (
	anyParty = ledger.Scope{Shape: ledger.ShapeACSDelta, Reassignments: true, Topology: true}
	ofAlice  = scopeOf("alice::1220")
)

func scopeOf(parties ...string) ledger.Scope {
	scope := anyParty
	scope.Parties = parties
	return scope
}

func migrate(ctx context.Context, url string) error {
	db, err := store.Open(store.Config{URL: url})
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Migrate(ctx)
	return err
}

// look runs a check, and requires that it says the same in both of its forms, without control characters.
func look(t *testing.T, cfg Config) Report {
	t.Helper()
	if cfg.Timeout == 0 {
		cfg.Timeout = patience
	}
	if cfg.Scope.Shape == "" {
		cfg.Scope = anyParty
	}
	report := Run(t.Context(), cfg)
	var text bytes.Buffer
	require.NoError(t, report.Print(&text))
	for _, f := range report.Findings {
		require.Contains(t, text.String(), f.Text)
		require.Contains(t, titles, f.Group)
		if f.Level == Warning || f.Level == Problem {
			require.NotEmpty(t, f.Do, f.Text)
		}
	}
	require.NotRegexp(t, `[\x00-\x09\x0b-\x1f\x7f]`, text.String())
	_, err := json.Marshal(report)
	require.NoError(t, err)
	return report
}

// wrong lists what is not as it should be: level, group and topic.
func wrong(report Report) (list []string) {
	for _, line := range levels(report) {
		if !strings.HasPrefix(line, string(OK)) {
			list = append(list, line)
		}
	}
	return list
}

func levels(report Report) (list []string) {
	for _, f := range report.Findings {
		list = append(list, string(f.Level)+" "+f.Group+"/"+f.Topic)
	}
	return list
}

// of lists the findings of some groups.
func of(report Report, groups ...string) (list []string) {
	for i, line := range levels(report) {
		for _, group := range groups {
			if report.Findings[i].Group == group {
				list = append(list, line)
			}
		}
	}
	return list
}

// find is the finding of a topic, of which there must be one at least.
func find(t *testing.T, report Report, group, topic string) Finding {
	t.Helper()
	for _, f := range report.Findings {
		if f.Group == group && f.Topic == topic {
			return f
		}
	}
	require.FailNow(t, "no finding", "%s/%s in %v", group, topic, levels(report))
	return Finding{}
}

// requireNoSecret looks through everything that a report says.
func requireNoSecret(t *testing.T, report Report, secrets ...string) {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, report.Print(&text))
	asJSON, err := json.Marshal(report)
	require.NoError(t, err)
	for _, secret := range secrets {
		require.NotEmpty(t, secret)
		require.NotContains(t, text.String(), secret)
		require.NotContains(t, string(asJSON), secret)
	}
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func grown(updates int) *sandbox.Ledger {
	l := sandbox.NewLedger(sandbox.Options{Seed: 7})
	l.Grow(updates)
	return l
}

// serve serves a handler until the test is done.
func serve(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func simulated(t *testing.T, l *sandbox.Ledger, opts sandbox.ServerOptions) string {
	t.Helper()
	return serve(t, sandbox.NewServer(l, opts)).URL
}

func execute(t *testing.T, database string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	for _, statement := range statements {
		_, err := conn.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

func nameOf(t *testing.T, database string) string {
	t.Helper()
	config, err := pgx.ParseConfig(database)
	require.NoError(t, err)
	return config.Database
}

// executeAtLast is execute for cleaning up.
func executeAtLast(t *testing.T, database string, statements ...string) {
	conn, err := pgx.Connect(context.Background(), database)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	for _, statement := range statements {
		_, err := conn.Exec(context.Background(), statement)
		require.NoError(t, err, statement)
	}
}
