package sandbox

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorsByCategory(t *testing.T) {
	t.Parallel()
	for category, c := range map[int]struct {
		status, grpc    int
		redacted, retry bool
	}{
		1: {503, 14, false, true}, 2: {409, 10, false, true}, 3: {504, 4, false, true}, 4: {500, 13, true, false},
		5: {400, 3, false, false}, 6: {401, 16, true, false}, 7: {403, 7, true, false}, 8: {400, 3, false, false},
		9: {400, 9, false, false}, 10: {409, 6, false, false}, 11: {404, 5, false, false}, 12: {400, 11, false, true},
		14: {501, 12, false, false},
	} {
		status, body := CantonErrorBody(category, "SOME_CODE", "100% \"wrong\"", map[string]string{"why": "because"})
		require.Equal(t, c.status, status, category)
		var e map[string]any
		require.NoError(t, json.Unmarshal([]byte(body), &e))
		require.EqualValues(t, c.grpc, e["grpcCodeValue"], category)
		require.Equal(t, "because", e["context"].(map[string]any)["why"])
		require.Equal(t, c.retry, e["retryInfo"] == "1 second", category)
		if c.redacted {
			require.Equal(t, "NA", e["code"])
			require.EqualValues(t, -1, e["errorCategory"])
			require.NotContains(t, body, "wrong")
			continue
		}
		require.Equal(t, "SOME_CODE", e["code"])
		require.Equal(t, "100% \"wrong\"", e["cause"])
		require.EqualValues(t, category, e["errorCategory"])
		require.NotEmpty(t, e["context"].(map[string]any)["category"])
	}
	require.Panics(t, func() { CantonErrorBody(13, "", "", nil) })
}
