package sandbox

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/recorded"
)

// replayed are the operations that a replay of exchanges answers as they were recorded.
var replayed = map[string]bool{
	"/v2/version": true, "/v2/parties/participant-id": true, "/v2/state/ledger-end": true,
	"/v2/state/latest-pruned-offsets":   true,
	"/v2/state/connected-synchronizers": true, "/v2/updates": true, "/v2/updates/flats": true,
	"/v2/updates/get-updates-page": true,
	"/v2/updates/update-by-id":     true, "/v2/state/active-contracts": true, "/v2/state/active-contracts-page": true,
	"/v2/contracts/contract-by-id": true, "/v2/package-vetting/list": true,
}

// A replay of exchanges answers what was asked as the participant did: every member of every answer.
func TestReplayOfExchanges(t *testing.T) {
	t.Parallel()
	exchanges := recorded.Exchanges(t)
	var all []Exchange
	for _, e := range exchanges {
		all = append(all, Exchange(e))
	}
	r, err := ReplayExchanges(all, recorded.Packages(t))
	require.NoError(t, err)
	server := NewServer(r, ServerOptions{Version: recorded.Release})
	tokens := map[string]string{} // of the replay, by those that were recorded
	answered := map[string]int{}
	for i, e := range exchanges {
		path, _, _ := strings.Cut(e.Path, "?")
		ofAParty := strings.Contains(e.Request, `"nobody::`) // a replay shows everything to every party
		if !replayed[path] || e.Status != 200 || ofAParty {
			continue
		}
		request := e.Request
		for was, is := range tokens {
			request = strings.ReplaceAll(request, was, is)
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), e.Method, e.Path, strings.NewReader(request)))
		require.Equal(t, http.StatusOK, w.Code, "exchange %d: %s", i, w.Body)
		var want, got any
		require.NoError(t, json.Unmarshal([]byte(e.Answer), &want))
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		requireAlike(t, want, got, tokens)
		require.Equal(t, want, got, "exchange %d, %s", i, e.Path)
		answered[path]++
	}
	require.Len(t, answered, len(replayed))
}

// requireAlike takes out of two answers what differs from server to server, tokens and the times of checkpoints, and
// remembers the tokens.
func requireAlike(t *testing.T, want, got any, tokens map[string]string) {
	t.Helper()
	switch want := want.(type) {
	case []any:
		got, ok := got.([]any)
		require.True(t, ok && len(got) == len(want), "%v", got)
		for i := range want {
			requireAlike(t, want[i], got[i], tokens)
		}
	case map[string]any:
		got, ok := got.(map[string]any)
		require.True(t, ok, "%v", got)
		if _, isCheckpoint := want["synchronizerTimes"]; isCheckpoint {
			for _, side := range []map[string]any{want, got} {
				for _, at := range side["synchronizerTimes"].([]any) {
					delete(at.(map[string]any), "recordTime")
				}
			}
		}
		for name := range want {
			was, texts := want[name].(string)
			if is, _ := got[name].(string); texts && strings.HasSuffix(name, "Token") && was != "" && is != "" {
				tokens[was] = is
				delete(want, name)
				delete(got, name)
				continue
			}
			requireAlike(t, want[name], got[name], tokens)
		}
	}
}
