package torture

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/sandbox"
)

// ask asks the participant who it is, and returns the status and whether all of the answer came.
func ask(t *testing.T, x *participant) (status int, whole bool) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+x.address+"/v2/parties/participant-id", nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+x.authority.Token(tokenUser))
	response, err := client.Do(request)
	if err != nil {
		return 0, false
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.ReadAll(response.Body)
	return response.StatusCode, err == nil
}

func newParticipant(t *testing.T) *participant {
	t.Helper()
	ledger := sandbox.NewLedger(sandbox.Options{Seed: 1})
	ledger.Grow(10)
	x, err := startParticipant(t.Context(), plan{version: "3.5"}, ledger, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(x.close)
	return x
}

// Faults of HTTP are what they are called, hit one request, and count where they took effect.
func TestFrontFaults(t *testing.T) {
	t.Parallel()
	for kind, want := range map[faultKind]struct {
		status int
		whole  bool
	}{
		reset: {0, false}, truncate: {200, false}, stallBody: {200, true}, stallAnswer: {200, true},
		tooMany: {429, true}, unavailable: {503, true}, internalError: {500, true},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			x := newParticipant(t)
			took := make(chan bool, 1)
			go func() {
				effect, _ := x.strike(t.Context(), fault{kind: kind, long: ms, size: 4})
				took <- effect
			}()
			require.Eventually(t, func() bool {
				x.mu.Lock()
				defer x.mu.Unlock()
				return x.next != nil
			}, faultTimeout, ms)
			status, whole := ask(t, x)
			require.Equal(t, want.status, status)
			require.Equal(t, want.whole, whole)
			require.True(t, <-took)
			status, whole = ask(t, x)
			require.Equal(t, http.StatusOK, status)
			require.True(t, whole)
		})
	}
}

// What met no request, or an answer that is too short for it, is not counted. Both are waited for.
func TestFrontCountsNoFaultWithoutEffect(t *testing.T) {
	t.Parallel()
	t.Run("no request", func(t *testing.T) {
		t.Parallel()
		took, err := newParticipant(t).strike(t.Context(), fault{kind: reset})
		require.NoError(t, err)
		require.False(t, took)
	})
	t.Run("too short an answer", func(t *testing.T) {
		t.Parallel()
		x := newParticipant(t)
		done := make(chan bool, 1)
		go func() { done <- x.disturb(t.Context(), sandbox.Fault{Cut: 1 << 20}) }()
		require.Eventually(t, func() bool {
			x.mu.Lock()
			defer x.mu.Unlock()
			return x.next != nil
		}, faultTimeout, ms)
		_, whole := ask(t, x)
		require.True(t, whole)
		require.False(t, <-done)
	})
}

// A participant that restarts is at the same address, as the next release where that is its plan.
func TestFrontRestarts(t *testing.T) {
	t.Parallel()
	x := newParticipant(t)
	address := x.address
	took, err := x.strike(t.Context(), fault{kind: restartServer})
	require.NoError(t, err)
	require.True(t, took)
	status, _ := ask(t, x)
	require.Equal(t, http.StatusOK, status)
	x.plan.next = "3.6"
	require.NoError(t, x.upgrade(t.Context(), 0))
	require.Equal(t, address, x.address)
	require.Equal(t, "3.6", x.version)
	x.close()
	status, _ = ask(t, x)
	require.Zero(t, status)
}
