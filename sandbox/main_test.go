package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	_ "ledgerindexer/internal/tools/hermetic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client talks to a server under test.
type client struct {
	t   *testing.T
	url string
	get *http.Client
}

func serve(t *testing.T, h History, opts ServerOptions) *client {
	t.Helper()
	server := httptest.NewServer(NewServer(h, opts))
	t.Cleanup(server.Close)
	return &client{t: t, url: server.URL, get: server.Client()}
}

func grown(t *testing.T, opts Options, n int) *Ledger {
	t.Helper()
	l := NewLedger(opts)
	l.Grow(n)
	return l
}

// answer is a response with its body read.
type answer struct {
	t      *testing.T
	status int
	kind   string
	body   []byte
}

func (c *client) do(method, path, body string) answer {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	require.NoError(c.t, err)
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.get.Do(r)
	require.NoError(c.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	return answer{c.t, resp.StatusCode, resp.Header.Get("Content-Type"), b}
}

func (c *client) post(path, format string, args ...any) answer {
	c.t.Helper()
	return c.do(http.MethodPost, path, fmt.Sprintf(format, args...))
}

// list is the decoded array of a successful list response.
func (a answer) list() []map[string]any {
	a.t.Helper()
	require.Equal(a.t, http.StatusOK, a.status, "%s", a.body)
	var list []map[string]any
	require.NoError(a.t, json.Unmarshal(a.body, &list))
	for _, element := range list {
		sortSets(element)
	}
	return list
}

func (a answer) object() map[string]any {
	a.t.Helper()
	require.Equal(a.t, http.StatusOK, a.status, "%s", a.body)
	var o map[string]any
	require.NoError(a.t, json.Unmarshal(a.body, &o))
	sortSets(o)
	return o
}

// sortSets sorts the lists of parties in an answer, which come in any order.
func sortSets(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			sortSets(e)
		}
	case map[string]any:
		for _, name := range []string{"witnessParties", "signatories", "observers", "actingParties"} {
			if list, ok := v[name].([]any); ok {
				slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
		for _, e := range v {
			sortSets(e)
		}
	}
}

// refused checks an error of the participant and returns its context.
func (a answer) refused(status int, code string) map[string]any {
	a.t.Helper()
	var e map[string]any
	require.NoError(a.t, json.Unmarshal(a.body, &e), "%s", a.body)
	require.Equal(a.t, code, e["code"], "%s", a.body)
	require.Equal(a.t, status, a.status)
	return e["context"].(map[string]any)
}

// variant returns the one key of a sum type and its value.
func variant(t *testing.T, v any) (string, map[string]any) {
	t.Helper()
	o := v.(map[string]any)
	require.Len(t, o, 1)
	for name, body := range o {
		return name, body.(map[string]any)
	}
	return "", nil
}

// updateOf returns the kind and the value of an element of an updates response.
func updateOf(t *testing.T, element map[string]any) (string, map[string]any) {
	t.Helper()
	name, body := variant(t, element["update"])
	return name, body["value"].(map[string]any)
}
