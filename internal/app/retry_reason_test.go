package app

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// Errors of real servers are told apart by what an operator looks at.
func TestReasonsOfRetries(t *testing.T) {
	t.Parallel()
	askAs := func(url, tokenFile string) error {
		of := config.Ledger{LedgerURL: url, LedgerAccess: access.Config{TokenFile: tokenFile}}
		from, err := newParticipantSource(of, config.RequestLimits{MaxRequests: 1}, defaultScope().Domain(), testLogger(t), observation{})
		require.NoError(t, err)
		defer from.Close()
		if tokenFile != "" { // it is emptied after the start
			require.NoError(t, os.Truncate(tokenFile, 0))
		}
		_, err = from.identify(t.Context())
		return err
	}
	ask := func(url string) error { return askAs(url, "") }
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("opaque"), 0o600))
	l := sandbox.NewLedger(sandbox.Options{Seed: 11})
	answers := func(status int, kind string) string {
		return serve(t, l, sandbox.ServerOptions{Fault: func(*http.Request) *sandbox.Fault {
			return &sandbox.Fault{Status: status, ContentType: kind, Body: "back soon"}
		}})
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	conn, err := pgx.Connect(t.Context(), throwaway.Database(t))
	require.NoError(t, err)
	_, refused := conn.Exec(t.Context(), "SELECT 1/0")
	_, ended := conn.Exec(t.Context(), "SELECT pg_terminate_backend(pg_backend_pid())")
	_, closed := conn.Exec(t.Context(), "SELECT 1")
	_, unreached := pgx.Connect(t.Context(), "postgres://nobody@127.0.0.1:1/nowhere")
	for _, c := range []struct {
		err  error
		want string
	}{
		{ask(gone.URL), "no_answer"},
		{ask(answers(http.StatusServiceUnavailable, "text/plain")), "status_503"},
		{ask(answers(http.StatusOK, "text/html")), "unusable_answer"},
		{askAs(gone.URL, token), "token"},
		{refused, "database"}, {ended, "database"}, {closed, "database"}, {unreached, "database"},
		{store.ErrNotLeader, "lead_lost"},
		{errors.New("another history"), "other"},
	} {
		require.Error(t, c.err)
		require.Equal(t, c.want, retryReason(fmt.Errorf("tried: %w", c.err)), c.err)
	}
}
