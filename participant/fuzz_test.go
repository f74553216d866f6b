package participant

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

const secret = "correct-horse-battery"

// FuzzError reads anything as a server's answer that is no success, and asks what it means.
func FuzzError(f *testing.F) {
	for _, body := range []string{
		"", `{}`, `{"code":"PARTICIPANT_PRUNED_DATA_ACCESSED","cause":"pruned","context":{"earliest_offset":"7"},"errorCategory":9,"grpcCodeValue":9}`,
		`{"code":"X","cause":"` + secret + `","context":{"` + secret + `":"` + secret + `","reason":"\u0000\n"},"resources":[["a","b"],["c"]],"retryInfo":"1 second"}`,
		`{"code":1,"cause":[],"context":[],"resources":{},"errorCategory":"9"}`, `{"errors":["a","b"],"status":404}`, `<html>` + secret, "\xff\x00",
		`{"code":"OFFSET_AFTER_LEDGER_END","code":"","errorCategory":1e99}`, `{"cause":"precedes pruned offset 99999999999999999999"}`,
	} {
		f.Add(400, []byte(body), int64(5))
		f.Add(200, []byte(body), int64(0))
	}
	c, err := New(Config{URL: "http://joe:" + secret + "@localhost"}, anyParty)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, status int, body []byte, at int64) {
		e := newError("test", jsonhttp.Answer{Status: 100 + (status&0xffff)%900, Body: body}, nil, c.redact)
		shown := e.Error()
		require.NotContains(t, shown, secret)
		require.True(t, utf8.ValidString(shown))
		require.Less(t, len(shown), 6000)
		require.GreaterOrEqual(t, e.Wait(), time.Duration(0))
		require.LessOrEqual(t, e.Wait(), 24*time.Hour)
		server := with35
		for _, about := range []subject{aboutServer, aboutUpdates, aboutSnapshot, aboutContract, aboutUpdate, aboutVetting, aboutUser} {
			said := c.explain(t.Context(), e, purpose{about: about, server: &server, offset: ledger.Offset(at)})
			require.Error(t, said)
			require.NotContains(t, said.Error(), secret)
			require.Less(t, len(said.Error()), 10_000)
			var p *ledger.Problem
			if errors.As(said, &p) {
				require.NotEmpty(t, p.What)
				require.NotEmpty(t, p.Do)
				require.NotContains(t, p.What+p.Do, secret)
			}
		}
	})
}

// FuzzTold reads anything as what a server tells of itself and of the user.
func FuzzTold(f *testing.F) {
	for _, body := range []string{
		`{"offset":7}`, `{"offset":-1}`, `{"offset":"7"}`, `{"version":"3.5.1"}`, `{"participantId":"p::1"}`, `{"participantId":"` + secret + `"}`,
		`{"participantPrunedUpToInclusive":3}`, `{"user":{"id":"joe","primaryParty":"a","isDeactivated":false}}`, `{"user":{"id":"` + secret + `"}}`,
		`{"rights":[{"kind":{"CanReadAs":{"value":{"party":"a"}}}},{"kind":{"CanReadAsAnyParty":{"value":{}}}},{"kind":{}}]}`, ``, `null`, `[]`, "\xff", `{"a":{`,
	} {
		f.Add([]byte(body))
	}
	var body []byte
	server := newFakeFor(f, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	})
	c, err := New(Config{URL: "http://joe:" + secret + "@" + strings.TrimPrefix(server, "http://")}, anyParty)
	require.NoError(f, err)
	f.Cleanup(c.Close)
	c.found.Store(&with35)
	f.Fuzz(func(t *testing.T, told []byte) {
		body = told
		check := func(err error) bool {
			if err == nil {
				return true
			}
			require.NotContains(t, err.Error(), secret)
			require.Less(t, len(err.Error()), 4000)
			return false
		}
		if end, err := c.LedgerEnd(t.Context()); check(err) {
			require.GreaterOrEqual(t, end, ledger.Offset(0))
		}
		if pruned, err := c.PrunedOffset(t.Context()); check(err) {
			require.GreaterOrEqual(t, pruned, ledger.Offset(0))
		}
		if version, err := c.text(t.Context(), "version", pathVersion, "version"); check(err) {
			require.NotEqual(t, secret, version)
		}
		if u, err := c.whoami(t.Context()); check(err) {
			require.NotEmpty(t, u.ID)
			if check(c.rightsOf(t.Context(), &u)) {
				require.IsIncreasing(t, append([]string{""}, u.ReadAs...))
			}
		}
	})
}

// FuzzUserSegment looks for a user's id that leads out of its place in a path.
func FuzzUserSegment(f *testing.F) {
	for _, id := range []string{"joe", "..", ".", "a/b", "a%2Fb", "?x=1", "#x", "a b", "\x00", "\u00e9", "a//..//b", "...", "@:"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		base, err := url.Parse("http://server/prefix")
		require.NoError(t, err)
		if id == "" {
			return // refused before
		}
		path := base.JoinPath(pathUsers + "/" + segment(id) + "/rights").EscapedPath()
		rest, found := strings.CutPrefix(path, "/prefix"+pathUsers+"/")
		require.True(t, found, path)
		part, found := strings.CutSuffix(rest, "/rights")
		require.True(t, found, path)
		require.NotContains(t, part, "/")
		back, err := url.PathUnescape(part)
		require.NoError(t, err)
		require.Equal(t, id, back)
	})
}

// newFakeFor is a server that answers every request alike.
func newFakeFor(f *testing.F, handle http.HandlerFunc) (url string) {
	f.Helper()
	server := httptest.NewServer(handle)
	f.Cleanup(server.Close)
	return server.URL
}
