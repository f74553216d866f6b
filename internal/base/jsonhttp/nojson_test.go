package jsonhttp

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An answer that is no JSON may pass, unless no usable one came before.
func TestWhatIsNotJSONAtFirst(t *testing.T) {
	t.Parallel()
	for kind, says := range map[string]string{
		"text/html":        `the answer has content type "text/html" instead of application/json; is --ledger-url the base of the JSON API?`,
		"application/json": `the answer is not JSON, though its content type is "application/json", at byte 0: invalid character '<' at start of value`,
	} {
		body, typed, status := "", kind, http.StatusOK
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", typed)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		defer server.Close()
		page := func() { body, typed, status = "<html>please log in</html>", kind, http.StatusOK }
		counted := map[string]int{}
		c := client(t, server.URL+"/api", func(cfg *Config) { cfg.NotJSON = func(operation string) { counted[operation]++ } })
		ask := func(c *Client) error {
			a, err := c.Do(t.Context(), Request{Operation: "things", Path: "/v2/things", Body: 1, MaxBytes: 1000, SilenceTimeout: time.Minute})
			if err != nil || a.Status != http.StatusOK {
				return err
			}
			return c.Unusable(a)
		}
		cure := func(c *Client) string {
			err := ask(c)
			require.ErrorIs(t, err, ErrNotJSON)
			require.ErrorContains(t, err, says)
			failure := Unusable("things", err)
			what, do, ok := c.Explain(&failure)
			require.True(t, ok)
			require.Equal(t, do != "", what == "the answer to POST /api/v2/things is not JSON, and none came before that is")
			return do
		}
		page()
		for range 2 {
			require.Contains(t, cure(c), "see what stands between here and --ledger-url, and that it is the base of ")
		}
		status = http.StatusServiceUnavailable
		require.NoError(t, ask(c))
		page()
		require.NotEmpty(t, cure(c), "no usable answer came yet")
		require.Empty(t, cure(client(t, server.URL+"/api", func(cfg *Config) { cfg.Reached = true })))

		body, typed = `{"a":1}`, "application/json"
		require.NoError(t, ask(c))
		page()
		for range 2 {
			require.Empty(t, cure(c), "a proxy stands in for the server")
		}
		require.Equal(t, map[string]int{"things": 5}, counted)
	}
}
