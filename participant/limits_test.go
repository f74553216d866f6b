package participant

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/jsonhttp"
)

// Each kind of answer has a limit of its own, and the error says which one was met.
func TestLimitsOfAnswers(t *testing.T) {
	t.Parallel()
	announced := func(length string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", length)
			w.WriteHeader(http.StatusOK)
		}
	}
	f := newFake(t, map[string]http.HandlerFunc{
		pathLedgerEnd: announced("4194305"), pathAuthenticatedUser: announced("4194305"), pathVettingList: announced("67108865"),
		pathUpdatesPage: announced("134217729"), pathSnapshot: announced("1073741825"),
	})
	c := newClient(t, f, with35, anyParty)
	_, err := c.LedgerEnd(t.Context())
	require.ErrorContains(t, err, "ledger-end: the answer is too large: its 4194305 bytes are more than the 4194304 that are read of it")
	_, err = c.whoami(t.Context())
	require.ErrorContains(t, err, "the 4194304 that are read of it")
	_, err = c.ListVettedPackages(t.Context(), VettingFilter{})
	require.Contains(t, problem(t, err), "the answer is larger than what is read of one")
	require.ErrorContains(t, err, "the 67108864 that are read of it")
	_, err = c.ReadUpdates(t.Context(), 3, 8)
	require.Contains(t, problem(t, err), "the update after offset 3 is larger than what is read of an answer")
	require.ErrorContains(t, err, "the 134217728 that are read of it")
	_, err = c.wholeSnapshot(t.Context(), 7)
	require.Contains(t, problem(t, err), "the snapshot has more entries than the server serves in one answer")
	require.ErrorContains(t, err, "the 1073741824 that are read of it")
}

// Of a server, or a way to it, that is too slow for a page a smaller one is asked for with the next try.
func TestASlowAnswerMakesTheNextPageSmaller(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesPage: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"updates":[`+strings.Repeat(" ", 1000))
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Millisecond)
		}
	}})
	c := newClient(t, f, with35, anyParty)
	c.longest = 50 * time.Millisecond
	_, err := c.ReadUpdates(t.Context(), 3, 8)
	_ = retryable(t, err)
	require.ErrorIs(t, err, jsonhttp.ErrSlow)
	require.Equal(t, updatesPageSize/2, c.updatesPage.Ask())
}
