package app

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/access"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/jsonhttp"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/participant"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// Errors of real servers are told apart by what an operator looks at.
func TestReasonsOfRetries(t *testing.T) {
	t.Parallel()
	ask := func(url string) error {
		from, err := newParticipantSource(config.Ledger{LedgerURL: url}, config.Pace{MaxRequests: 1}, defaultScope().Domain(), testLogger(t), observation{})
		require.NoError(t, err)
		defer from.Close()
		_, err = from.identify(t.Context())
		return err
	}
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
		{&participant.Error{Failure: jsonhttp.Failed("updates", jsonhttp.Answer{}, &access.TokenError{})}, "token"},
		{refused, "database"}, {ended, "database"}, {closed, "database"}, {unreached, "database"},
		{store.ErrNotLeader, "lead_lost"},
		{errors.New("another history"), "other"},
	} {
		require.Error(t, c.err)
		require.Equal(t, c.want, retryReason(fmt.Errorf("tried: %w", c.err)), c.err)
	}
}
