package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/sandbox"
)

// exchange is a request and its answer.
type exchange struct {
	method, path string
	query        url.Values
	body, answer string
	status       int
}

// recorder stands before a simulated participant and keeps what passes.
type recorder struct {
	url string

	mu        sync.Mutex
	exchanges []exchange
}

func record(t *testing.T, l *sandbox.Ledger, options sandbox.ServerOptions) *recorder {
	t.Helper()
	options.IdleTimeout = time.Millisecond
	participant := sandbox.NewServer(l, options)
	r := &recorder{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the client has gone
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		participant.ServeHTTP(answer, req)
		r.mu.Lock() // before the client has the answer and looks
		r.exchanges = append(r.exchanges, exchange{req.Method, req.URL.Path, req.URL.Query(), string(body), answer.Body.String(), answer.Code})
		r.mu.Unlock()
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// ledger runs one of the commands, and returns what passed.
func (r *recorder) ledger(t *testing.T, code int, args ...string) (stdout, stderr string, asked []exchange) {
	t.Helper()
	got, stdout, stderr := command(t, nil, append(append([]string{"ledger"}, args...), "--ledger-url", r.url)...)
	require.Equal(t, code, got, stderr)
	r.mu.Lock()
	defer r.mu.Unlock()
	asked, r.exchanges = r.exchanges, nil
	return stdout, stderr, asked
}

// sameLines requires that the lines that were printed are the elements of the answers, one a line, with nothing
// between.
func sameLines(t *testing.T, asked []exchange, stdout string) {
	t.Helper()
	var want []string
	for _, e := range asked {
		require.Equal(t, http.StatusOK, e.status)
		elements := []json.RawMessage{json.RawMessage(e.answer)}
		if strings.HasPrefix(strings.TrimSpace(e.answer), "[") {
			require.NoError(t, json.Unmarshal([]byte(e.answer), &elements))
		}
		for _, element := range elements {
			var line bytes.Buffer
			require.NoError(t, json.Compact(&line, element))
			want = append(want, strings.ReplaceAll(line.String(), "\u200d", `\u200d`))
		}
	}
	require.True(t, slices.Equal(want, strings.Split(stdout, "\n")[:strings.Count(stdout, "\n")]), "%d elements", len(want))
}

const (
	updatesPath   = "/v2/updates"
	pagePath      = "/v2/updates/get-updates-page"
	contractsPath = "/v2/state/active-contracts"

	everything = `"updateFormat":{"includeTransactions":{"transactionShape":"TRANSACTION_SHAPE_ACS_DELTA",` +
		`"eventFormat":{"filtersByParty":{},"filtersForAnyParty":{"cumulative":[]}}}}`
	everyContract = `"eventFormat":{"filtersByParty":{},"filtersForAnyParty":{"cumulative":[]}}`
)

// The request is the one that was given, and what the server answers is printed, a list's elements line by line.
func TestLedgerGetAsks(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l := grown(120)
	for name, test := range map[string]struct {
		version, path, body string
		args                []string
		method              string
		lines               int
	}{
		"without a body":  {path: "/v2/state/ledger-end", method: "GET", lines: 1},
		"with a query":    {path: updatesPath + "?limit=7&stream_idle_timeout_ms=2", body: fmt.Sprintf(`{"beginExclusive":0,"endInclusive":%d,%s}`, l.End(), everything), method: "POST", lines: 7},
		"a GET of a body": {path: contractsPath + "-page", body: fmt.Sprintf(`{"activeAtOffset":%d,"maxPageSize":3,%s}`, l.End(), everyContract), args: []string{"--method=GET"}, method: "GET", lines: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t, l, sandbox.ServerOptions{Version: test.version})
			args := append([]string{"get", test.path}, test.args...)
			if test.body != "" {
				args = append(args, "--body", secretFile(t, test.body))
			}
			stdout, _, asked := r.ledger(t, config.ExitDone, args...)
			require.Len(t, asked, 1)
			require.Equal(t, test.method, asked[0].method)
			path, query, _ := strings.Cut(test.path, "?")
			require.Equal(t, path, asked[0].path)
			require.Equal(t, query, asked[0].query.Encode())
			if test.body != "" {
				require.JSONEq(t, test.body, asked[0].body)
			}
			sameLines(t, asked, stdout)
			require.Equal(t, test.lines, strings.Count(stdout, "\n"))
		})
	}
}

// With --pages it goes on by whatever token an answer has, and stops at the first that has none.
func TestLedgerGetFollowsPages(t *testing.T) {
	t.Parallel()
	l := grown(120)
	r := record(t, l, sandbox.ServerOptions{})
	for name, test := range map[string]struct{ path, body, member string }{
		"pages of updates":   {pagePath, fmt.Sprintf(`{"endOffsetInclusive":%d,"maxPageSize":30,%s}`, l.End(), everything), "pageToken"},
		"pages of contracts": {contractsPath + "-page", fmt.Sprintf(`{"activeAtOffset":%d,"maxPageSize":9,%s}`, l.End(), everyContract), "pageToken"},
		"a list":             {contractsPath + "?limit=9", fmt.Sprintf(`{"activeAtOffset":%d,%s}`, l.End(), everyContract), "streamContinuationToken"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, _, asked := r.ledger(t, config.ExitDone, "get", test.path, "--body", secretFile(t, test.body), "--pages")
			require.Greater(t, len(asked), 3)
			sameLines(t, asked, stdout)
			for i, e := range asked {
				require.Equal(t, i > 0, strings.Contains(e.body, `"`+test.member+`":`))
			}
			_, _, asked = r.ledger(t, config.ExitDone, "get", test.path, "--body", secretFile(t, test.body))
			require.Len(t, asked, 1)
		})
	}
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked = append(asked, req.URL.RawQuery)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"nextPageToken":%q}`, []string{"a&b", ""}[len(asked)-1])
	}))
	defer server.Close()
	code, _, stderr := command(t, nil, "ledger", "get", "/v2/parties?pageSize=1", "--pages", "--ledger-url", server.URL)
	require.Equal(t, config.ExitDone, code, stderr)
	require.Equal(t, []string{"pageSize=1", "pageSize=1&pageToken=a%26b"}, asked)
	asked = nil
	code, _, stderr = command(t, nil, "ledger", "get", "/v2/parties?pageToken=a%26b", "--pages", "--ledger-url", server.URL)
	require.Equal(t, config.ExitProblem, code, stderr)
	require.Contains(t, stderr, "the token that it was sent")
	require.Len(t, asked, 1)
}

// The server's JSON is printed as it came: numbers, escapes, what nobody knows, what can't be indexed. Only space goes,
// and what a terminal would act on.
func TestLedgerGetChangesNothing(t *testing.T) {
	t.Parallel()
	l := grown(20)
	strange := "{ \"update\" :\n {\"New\":{\"value\":{\"offset\":%d,\"n\":1.50e+2, \"n\":-0.0,\"e\":\"\\u0041\\/ \u009b\\u009B\"}}} ,\"more\":[ ] }"
	const want = `{"update":{"New":{"value":{"offset":%d,"n":1.50e+2,"n":-0.0,"e":"\u0041\/ \u009b\u009B"}}},"more":[]}`
	r := record(t, l, sandbox.ServerOptions{Rewrite: func(e sandbox.Element) []byte { return fmt.Appendf(nil, strange, e.Offset) }})
	body := secretFile(t, fmt.Sprintf(`{"beginExclusive":0,"endInclusive":%d,%s}`, l.Offset(2), everything))
	stdout, _, _ := r.ledger(t, config.ExitDone, "get", updatesPath+"?limit=2", "--body", body)
	first, second, _ := strings.Cut(strings.TrimSuffix(stdout, "\n"), "\n")
	var offset int64
	_, err := fmt.Sscanf(first, `{"update":{"New":{"value":{"offset":%d`, &offset)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf(want, offset), first)
	require.NotContains(t, second, "\u009b")
}

func TestLedgerGetUsageErrors(t *testing.T) {
	t.Parallel()
	object := secretFile(t, `{"beginExclusive":0}`)
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"no ledger":               {[]string{"get", "/v2/version", "--ledger-url="}, "--ledger-url is missing"},
		"no command":              {nil, "expected"},
		"another method":          {[]string{"get", "/v2/version", "--method=PUT"}, "--method"},
		"no such file":            {[]string{"get", updatesPath, "--body=/nowhere/there"}, "--body: open /nowhere/there"},
		"no JSON":                 {[]string{"get", updatesPath, "--body", secretFile(t, `{"a":`)}, "--body: unexpected end"},
		"a query that is none":    {[]string{"get", updatesPath + "?limit=%zz"}, "the query of the path"},
		"what changes":            {[]string{"get", "/v2/package-vetting/update", "--body", object}, "may change something"},
		"what changes, hidden":    {[]string{"get", updatesPath + "/../commands/submit-and-wait", "--body", object}, "may change something"},
		"what changes, and alike": {[]string{"get", "/v2/package-vetting/listing", "--body", object}, "may change something"},
		"a POST without a body":   {[]string{"get", "/v2/users", "--method=POST"}, "may change something"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := command(t, map[string]string{"INDEXER_LEDGER_URL": "http://127.0.0.1:1"}, append([]string{"ledger"}, test.args...)...)
			require.Equal(t, config.ExitUsage, code, stderr)
			require.Contains(t, stderr, test.says)
			require.Empty(t, stdout)
		})
	}
}

// What somebody must do something about ends with 3 and its cure; what may pass with 1, after some tries.
func TestLedgerGetProblems(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l := grown(60)
	beyond := fmt.Sprintf(`{"beginExclusive":0,"endInclusive":%d,%s}`, l.End()+100, everything)
	fault := func(status int, contentType, body string) sandbox.ServerOptions {
		return sandbox.ServerOptions{Fault: func(*http.Request) *sandbox.Fault {
			return &sandbox.Fault{Status: status, ContentType: contentType, Body: body}
		}}
	}
	for name, test := range map[string]struct {
		options    sandbox.ServerOptions
		path, body string
		code       int
		says       string
		asked      int
	}{
		"above the end":        {sandbox.ServerOptions{}, updatesPath, beyond, config.ExitProblem, "correct the path, its query or the body", 1},
		"not read by POST":     {sandbox.ServerOptions{}, "/v2/state/ledger-end", `{}`, config.ExitProblem, "docs/interface.md", 1},
		"an update of no one":  {sandbox.ServerOptions{}, updatesPath + "/update-by-id", `{"updateId":"1220` + strings.Repeat("ab", 32) + `",` + everything + `}`, config.ExitFailed, "UPDATE_NOT_FOUND", 1},
		"a token is wanted":    {sandbox.ServerOptions{Token: fileToken}, "/v2/state/ledger-end", "", config.ExitProblem, "--ledger-token-file", 1},
		"too long for the way": {fault(413, "text/plain", "too large"), "/v2/state/ledger-end", "", config.ExitProblem, "ask for less: with limit", 1},
		"no JSON":              {fault(200, "application/json", `{"a":`), "/v2/state/ledger-end", "", config.ExitFailed, "cut off", getTries},
		"the server is away":   {fault(503, "text/plain", ""), "/v2/state/ledger-end", "", config.ExitFailed, "503", getTries},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"get", test.path}
			if test.body != "" {
				args = append(args, "--body", secretFile(t, test.body))
			}
			_, stderr, asked := record(t, l, test.options).ledger(t, test.code, args...)
			require.Contains(t, stderr, test.says)
			require.Equal(t, test.code == config.ExitProblem, strings.Contains(stderr, "What to do: "))
			require.Len(t, asked, test.asked)
		})
	}
}

// Pages are printed as they come: what came before a failure is there. A token is not printed, whatever the server
// says.
func TestLedgerGetPrintsPagesAsTheyCome(t *testing.T) {
	t.Parallel()
	l := grown(120)
	r := record(t, l, sandbox.ServerOptions{Token: fileToken, Fault: func(req *http.Request) *sandbox.Fault {
		said := "I got " + req.Header.Get("Authorization")
		switch {
		case req.URL.Path == "/v2/version":
			return &sandbox.Fault{Status: 200, ContentType: "application/json", Body: `{"version":"` + said + `"}`}
		case req.URL.Query().Get("limit") == "2":
			return &sandbox.Fault{Status: 418, ContentType: "text/plain", Body: said}
		}
		return nil
	}})
	file := secretFile(t, fileToken)
	stdout, _, _ := r.ledger(t, config.ExitDone, "get", "/v2/version", "--ledger-token-file", file)
	require.Contains(t, stdout, "I got ")
	require.NotContains(t, stdout, fileToken)
	body := secretFile(t, fmt.Sprintf(`{"activeAtOffset":%d,%s}`, l.End(), everyContract))
	_, stderr, _ := r.ledger(t, config.ExitFailed, "get", contractsPath+"?limit=2", "--body", body, "--ledger-token-file", file)
	require.Contains(t, stderr, "I got ")
	require.NotContains(t, stderr, fileToken)

	var pages int
	r = record(t, l, sandbox.ServerOptions{Fault: func(*http.Request) *sandbox.Fault {
		if pages++; pages > 3 {
			return &sandbox.Fault{Status: 418}
		}
		return nil
	}})
	stdout, _, _ = r.ledger(t, config.ExitFailed, "get", contractsPath+"?limit=4", "--body", body, "--pages")
	require.Equal(t, 12, strings.Count(stdout, "\n"))
	broken := errors.New("the reader has gone")
	require.ErrorIs(t, jsonLines(failing{broken}, []byte(`{}`)), broken)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// The commands that docs/operations.md shows work as they are.
func TestLedgerExamples(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq is not installed")
	}
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	examples := regexp.MustCompile(`(?m)^    .*bin/indexer ledger .*$`).FindAllString(string(text), -1)
	require.GreaterOrEqual(t, len(examples), 3)
	dir := t.TempDir()
	program, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	require.NoError(t, os.Symlink(program, filepath.Join(dir, "bin", "indexer")))
	r := record(t, grown(1500), sandbox.ServerOptions{})
	for _, example := range examples {
		shell := exec.CommandContext(t.Context(), "sh", "-ec", example)
		var stdout, stderr bytes.Buffer
		shell.Dir, shell.Stdout, shell.Stderr = dir, &stdout, &stderr
		shell.Env = append(os.Environ(), asProgram+"=1", "INDEXER_LEDGER_URL="+r.url)
		require.NoError(t, shell.Run(), "%s\n%s", example, stderr.String())
		require.NotEmpty(t, strings.TrimSpace(stdout.String()), example)
		require.NotContains(t, stdout.String(), "null", example)
		require.NotContains(t, stderr.String(), "jq: ", example)
	}
}
