package jsonhttp

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// reply is what a server answers.
type reply struct {
	status     int
	kind, body string
}

// moody answers what it is told. Each request has a connection of its own: time would not pass in a bubble where one is
// waited on.
func moody(t *testing.T, told *atomic.Pointer[reply]) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		now := told.Load()
		w.Header().Set("Content-Type", now.kind)
		w.WriteHeader(now.status)
		_, _ = io.WriteString(w, now.body)
	}))
	server.Config.SetKeepAlivesEnabled(false)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// An answer that is no JSON may pass, unless it is all that comes to a question for ten minutes.
func TestTheSameBytesForTenMinutes(t *testing.T) {
	t.Parallel()
	for kind, says := range map[string]string{
		"text/html":        `the answer has content type "text/html" instead of application/json; is --ledger-url the base of the JSON API?`,
		"application/json": `the answer is not JSON, though its content type is "application/json", at byte 0: invalid character '<' at start of value`,
	} {
		page := reply{200, kind, "<html>please log in</html>"}
		var told atomic.Pointer[reply]
		told.Store(&page)
		server := moody(t, &told)
		synctest.Test(t, func(t *testing.T) {
			counted := map[string]int{}
			c := client(t, server+"/api", func(cfg *Config) { cfg.NotJSON = func(operation string) { counted[operation]++ } })
			askOf := func(path string, from int) error {
				a, err := c.Do(t.Context(), Request{Operation: "things", Path: path, Query: url.Values{"limit": {"1"}},
					Body: map[string]int{"from": from}, MaxBytes: 1000, SilenceTimeout: time.Minute})
				if err != nil || a.Status != http.StatusOK {
					return err
				}
				return c.Unusable(a)
			}
			ask := func(from int) error { return askOf("/v2/things", from) }
			strange := func() (e *NotJSONError) {
				require.ErrorAs(t, ask(1), &e)
				return e
			}
			passes := func() {
				for range 10 {
					require.False(t, strange().Stays)
					time.Sleep(SameBytes / 10)
				}
			}
			passes()
			e := strange()
			require.True(t, e.Stays)
			require.Equal(t, "POST /api/v2/things", e.Asked)
			require.ErrorContains(t, e, says)
			require.Equal(t, map[string]int{"things": 11}, counted)
			time.Sleep(SameBytes)
			require.True(t, strange().Stays, "it has not changed")

			// Anything else in between says that it passes.
			for _, other := range []reply{
				{200, "application/json", `{"a":1}`}, {200, kind, "<html>another page</html>"}, {503, kind, page.body},
				{404, kind, page.body}, {200, "application/json", `{"a":`},
			} {
				told.Store(&other)
				_ = ask(1)
				told.Store(&page)
				passes()
				require.True(t, strange().Stays)
			}
			time.Sleep(3 * SameBytes) // nobody asked: nobody knows what would have come
			passes()

			require.False(t, errors.As(askOf("/v2/others", 1), &e) && e.Stays, "another path")
			require.True(t, errors.As(ask(2), &e) && e.Stays, "another question, to a path of which nothing else comes")
			for n := range 11 { // such as the ledger's end, which grows
				require.ErrorAs(t, askOf("/v2/others", 2+n), &e)
				require.Equal(t, n == 10, e.Stays, n)
				time.Sleep(SameBytes / 10)
			}
			for from := range 1000 {
				_ = ask(from)
				time.Sleep(SameBytes / 10)
			}
			require.Less(t, len(c.notJSONs.seen), 30, "what is not asked any more is forgotten")
		})
	}
}
