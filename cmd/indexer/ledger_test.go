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
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	slow "ledgerindexer/internal/brief"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/openapi"
	"ledgerindexer/sandbox"
)

// exchange is a request and its answer.
type exchange struct {
	path         string
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
		r.exchanges = append(r.exchanges, exchange{req.URL.Path, req.URL.Query(), string(body), answer.Body.String(), answer.Code})
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

// of are the exchanges of a path, but for the probe that finds out whether the server has it: for one update up to the
// first.
func of(asked []exchange, path string) []exchange {
	return slices.DeleteFunc(slices.Clone(asked), func(e exchange) bool {
		return e.path != path || e.query.Get("limit") == "1" && strings.Contains(e.body, `"beginExclusive":0,"endInclusive":`) && !strings.Contains(e.body, "descendingOrder")
	})
}

// sameLines requires that the lines that were printed are the elements of the answers, one a line, with nothing
// between.
func sameLines(t *testing.T, asked []exchange, stdout string) {
	t.Helper()
	var want []string
	for _, e := range asked {
		var elements []json.RawMessage
		require.Equal(t, http.StatusOK, e.status)
		require.NoError(t, json.Unmarshal([]byte(e.answer), &elements))
		for _, element := range elements {
			var line bytes.Buffer
			require.NoError(t, json.Compact(&line, element))
			want = append(want, strings.ReplaceAll(line.String(), "\u200d", `\u200d`))
		}
	}
	require.True(t, slices.Equal(want, strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")), "%d elements", len(want))
}

const (
	updatesPath   = "/v2/updates"
	contractsPath = "/v2/state/active-contracts"
	bankHolding   = "#bank:Bank.Cash:Holding"
)

// The filters that stand in requests.
const (
	anyContract = `{"identifierFilter":{"WildcardFilter":{"value":{"includeCreatedEventBlob":false}}}}`
	anyBlob     = `{"identifierFilter":{"WildcardFilter":{"value":{"includeCreatedEventBlob":true}}}}`
	bankOnly    = `{"identifierFilter":{"TemplateFilter":{"value":{"templateId":"` + bankHolding + `","includeCreatedEventBlob":false}}}}`
)

func ofAnyParty(filter string) string {
	return `"filtersByParty":{},"filtersForAnyParty":{"cumulative":[` + filter + `]}`
}

func formatOf(filter string) string { return `{` + ofAnyParty(filter) + `,"verbose":false}` }

func updateFormatOf(format, shape string) string {
	return `{"includeTransactions":{"eventFormat":` + format + `,"transactionShape":"TRANSACTION_SHAPE_` + shape + `"},"includeReassignments":` + format +
		`,"includeTopologyEvents":{"includeParticipantAuthorizationEvents":{"parties":[]}}}`
}

// Every option is in the request, and what the server answers is printed, line by line.
func TestLedgerUpdatesAsks(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l := grown(120)
	r := record(t, l, sandbox.ServerOptions{})
	end := l.Offset(40)
	to := fmt.Sprintf("--to=%d", end)
	all := updateFormatOf(formatOf(anyContract), "LEDGER_EFFECTS")
	inRange := fmt.Sprintf(`"beginExclusive":0,"endInclusive":%d,`, end)
	party := l.Parties()[0]
	view := `{"identifierFilter":{"InterfaceFilter":{"value":{"interfaceId":"` + sandbox.InterfaceNames()[0] + `","includeInterfaceView":true,"includeCreatedEventBlob":false}}}}`
	byParty := `{"filtersByParty":{"` + party + `":{"cumulative":[` + anyContract + `]}},"verbose":false}`
	for name, test := range map[string]struct {
		args  []string
		path  string
		query string
		body  string
	}{
		"a range":          {[]string{to, fmt.Sprintf("--from=%d", l.Offset(5))}, updatesPath, "limit=200", fmt.Sprintf(`{"beginExclusive":%d,"endInclusive":%d,"updateFormat":%s}`, l.Offset(5), end, all)},
		"to the present":   {nil, updatesPath, "limit=200", `{"beginExclusive":0,"updateFormat":` + all + `}`},
		"descending":       {[]string{to, "--descending"}, updatesPath, "limit=200", `{` + inRange + `"descendingOrder":true,"updateFormat":` + all + `}`},
		"limit":            {[]string{to, "--limit=7"}, updatesPath, "limit=7", `{` + inRange + `"updateFormat":` + all + `}`},
		"idle timeout":     {[]string{to, "--idle-timeout=1500us"}, updatesPath, "limit=200&stream_idle_timeout_ms=2", `{` + inRange + `"updateFormat":` + all + `}`},
		"shape":            {[]string{to, "--shape=acs-delta"}, updatesPath, "limit=200", `{` + inRange + `"updateFormat":` + updateFormatOf(formatOf(anyContract), "ACS_DELTA") + `}`},
		"template":         {[]string{to, "--templates=" + bankHolding}, updatesPath, "limit=200", `{` + inRange + `"updateFormat":` + updateFormatOf(formatOf(bankOnly), "LEDGER_EFFECTS") + `}`},
		"interface":        {[]string{to, "--interfaces=" + sandbox.InterfaceNames()[0]}, updatesPath, "limit=200", `{` + inRange + `"updateFormat":` + updateFormatOf(formatOf(anyContract+","+view), "LEDGER_EFFECTS") + `}`},
		"blobs":            {[]string{to, "--blobs"}, updatesPath, "limit=200", `{` + inRange + `"updateFormat":` + updateFormatOf(formatOf(anyBlob), "LEDGER_EFFECTS") + `}`},
		"verbose":          {[]string{to, "--verbose"}, updatesPath, "limit=200", `{` + inRange + `"updateFormat":` + strings.ReplaceAll(all, `"verbose":false`, `"verbose":true`) + `}`},
		"party":            {[]string{to, "--parties=" + party}, updatesPath, "limit=200", `{` + inRange + `"updateFormat":` + strings.Replace(updateFormatOf(byParty, "LEDGER_EFFECTS"), `"parties":[]`, `"parties":["`+party+`"]`, 1) + `}`},
		"no transactions":  {[]string{to, "--no-transactions"}, updatesPath, "limit=200", `{` + inRange + `"updateFormat":{` + all[strings.Index(all, `"includeReassignments"`):] + `}`},
		"no reassignments": {[]string{to, "--no-reassignments", "--no-topology"}, updatesPath, "limit=200", `{` + inRange + `"updateFormat":` + all[:strings.Index(all, `,"includeReassignments"`)] + `}}`},
		"deprecated":       {[]string{to, "--deprecated", "--shape=acs-delta"}, updatesPath, "limit=200", `{` + inRange + `"filter":{` + ofAnyParty(anyContract) + `},"verbose":false}`},
		"trees":            {[]string{to, "--trees", "--verbose"}, "/v2/updates/trees", "limit=200", `{` + inRange + `"filter":{` + ofAnyParty(anyContract) + `},"verbose":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, _, asked := r.ledger(t, config.ExitDone, append([]string{"updates"}, test.args...)...)
			asked = of(asked, test.path)
			requireAsked(t, asked, test.query, test.body, stdout)
		})
	}
}

// requireAsked requires that the first request was this one, and that what was answered was printed.
func requireAsked(t *testing.T, asked []exchange, query, body, stdout string) {
	t.Helper()
	require.NotEmpty(t, asked)
	require.Equal(t, query, asked[0].query.Encode())
	require.JSONEq(t, body, asked[0].body)
	require.NotEmpty(t, stdout)
	sameLines(t, asked, stdout)
}

func TestLedgerContractsAsks(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l := grown(120)
	r := record(t, l, sandbox.ServerOptions{})
	at := fmt.Sprintf("--at-offset=%d", l.End())
	stdout, _, _ := r.ledger(t, config.ExitDone, "contracts", at, "--limit=4")
	var fourth struct{ StreamContinuationToken string }
	require.NoError(t, json.Unmarshal([]byte(strings.Split(stdout, "\n")[3]), &fourth))
	require.NotEmpty(t, fourth.StreamContinuationToken)
	head := fmt.Sprintf(`{"activeAtOffset":%d,`, l.End())
	for name, test := range map[string]struct {
		args        []string
		query, body string
	}{
		"at the end": {nil, "limit=200", head + `"eventFormat":` + formatOf(anyContract) + `}`},
		"earlier": {[]string{fmt.Sprintf("--at-offset=%d", l.Offset(60))}, "limit=200",
			fmt.Sprintf(`{"activeAtOffset":%d,"eventFormat":%s}`, l.Offset(60), formatOf(anyContract))},
		"limit":        {[]string{at, "--limit=3"}, "limit=3", head + `"eventFormat":` + formatOf(anyContract) + `}`},
		"idle timeout": {[]string{at, "--idle-timeout=1s"}, "limit=200&stream_idle_timeout_ms=1000", head + `"eventFormat":` + formatOf(anyContract) + `}`},
		"template":     {[]string{at, "--templates=" + bankHolding}, "limit=200", head + `"eventFormat":` + formatOf(bankOnly) + `}`},
		"blobs":        {[]string{at, "--blobs"}, "limit=200", head + `"eventFormat":` + formatOf(anyBlob) + `}`},
		"verbose":      {[]string{at, "--verbose"}, "limit=200", head + `"eventFormat":{` + ofAnyParty(anyContract) + `,"verbose":true}}`},
		"deprecated":   {[]string{at, "--deprecated"}, "limit=200", head + `"filter":{` + ofAnyParty(anyContract) + `},"verbose":false}`},
		"after a token": {[]string{at, "--after-token=" + fourth.StreamContinuationToken}, "limit=200",
			head + `"eventFormat":` + formatOf(anyContract) + `,"streamContinuationToken":"` + fourth.StreamContinuationToken + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, _, asked := r.ledger(t, config.ExitDone, append([]string{"contracts"}, test.args...)...)
			asked = slices.DeleteFunc(of(asked, contractsPath), func(e exchange) bool { return strings.Contains(e.body, `"activeAtOffset":0`) })
			requireAsked(t, asked, test.query, test.body, stdout)
		})
	}
}

// What is asked for by each option fits the documents of the servers that have it.
func TestLedgerRequestsFitTheDocuments(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l := grown(60)
	to := fmt.Sprintf("--to=%d", l.End())
	for _, version := range []string{"3.4", "3.5", "3.6"} {
		document := openapi.Ledger(t, version)
		r := record(t, l, sandbox.ServerOptions{Version: version})
		commands := [][]string{
			{"updates", to}, {"updates", to, "--limit=3", "--idle-timeout=1s"}, {"updates", to, "--verbose", "--blobs", "--shape=ledger-effects"},
			{"updates", to, "--templates=" + bankHolding, "--interfaces=" + sandbox.InterfaceNames()[0], "--parties=" + l.Parties()[0]},
			{"updates", to, "--no-transactions"}, {"updates"}, {"contracts"}, {"contracts", "--blobs", "--limit=2", "--templates=" + bankHolding},
			{"update", l.UpdateID(20)}, {"update", l.UpdateID(20), "--verbose", "--no-topology"},
		}
		if version != "3.4" {
			commands = append(commands, []string{"updates", to, "--descending"})
		}
		if version == "3.5" { // whose document has the deprecated form beside the other
			commands = append(commands, []string{"updates", to, "--deprecated", "--shape=acs-delta"}, []string{"updates", to, "--trees"}, []string{"contracts", "--deprecated"})
		}
		for _, args := range commands {
			_, _, asked := r.ledger(t, config.ExitDone, args...)
			for _, e := range asked {
				if e.body != "" && document.Has(http.MethodPost, e.path) {
					require.NoError(t, document.CheckRequest(http.MethodPost, e.path, e.query, []byte(e.body)), "%s %s", version, args)
				}
			}
		}
	}
}

// The server's JSON is printed as it came: numbers, escapes, what nobody knows, what can't be indexed. Only space goes,
// and what a terminal would act on.
func TestLedgerChangesNothing(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l := grown(20)
	strange := "{ \"update\" :\n {\"New\":{\"value\":{\"offset\":%d,\"n\":1.50e+2, \"n\":-0.0,\"e\":\"\\u0041\\/ \u009b\\u009B\"}}} ,\"more\":[ ] }"
	const want = `{"update":{"New":{"value":{"offset":%d,"n":1.50e+2,"n":-0.0,"e":"\u0041\/ \u009b\u009B"}}},"more":[]}`
	r := record(t, l, sandbox.ServerOptions{Rewrite: func(e sandbox.Element) []byte { return fmt.Appendf(nil, strange, e.Offset) }})
	stdout, _, _ := r.ledger(t, config.ExitDone, "updates", fmt.Sprintf("--to=%d", l.Offset(2)), "--limit=2")
	first, second, _ := strings.Cut(strings.TrimSuffix(stdout, "\n"), "\n")
	var offset int64
	_, err := fmt.Sscanf(first, `{"update":{"New":{"value":{"offset":%d`, &offset)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf(want, offset), first)
	require.NotContains(t, second, "\u009b")
}

// One contract and one update are printed as they were answered; what the ledger does not have is an error.
func TestLedgerLooksUp(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l := grown(60)
	contract := l.Truth(sandbox.Scope{}, l.End())["active_contracts"][0]["contract_id"].(string)
	for _, version := range everyVersion {
		r := record(t, l, sandbox.ServerOptions{Version: version})
		for _, test := range []struct{ command, id, unknown, path, body string }{
			{"contract", contract, "00" + strings.Repeat("ab", 68), "/v2/contracts/contract-by-id", `{"contractId":"` + contract + `","queryingParties":[]}`},
			{"update", l.UpdateID(30), "1220" + strings.Repeat("ab", 32), "/v2/updates/update-by-id",
				`{"updateId":"` + l.UpdateID(30) + `","updateFormat":` + updateFormatOf(formatOf(anyContract), "LEDGER_EFFECTS") + `}`},
		} {
			stdout, _, asked := r.ledger(t, config.ExitDone, test.command, test.id)
			asked = of(asked, test.path)
			require.Len(t, asked, 1)
			require.JSONEq(t, test.body, asked[0].body)
			sameLines(t, []exchange{{answer: "[" + asked[0].answer + "]", status: asked[0].status}}, stdout)
			stdout, stderr, _ := r.ledger(t, config.ExitFailed, test.command, test.unknown)
			require.Empty(t, stdout)
			require.Contains(t, stderr, test.unknown)
		}
	}
	r := record(t, l, sandbox.ServerOptions{})
	_, _, asked := r.ledger(t, config.ExitDone, "contract", contract, "--parties", strings.Join(l.Parties(), ","))
	var sent struct{ QueryingParties []string }
	require.NoError(t, json.Unmarshal([]byte(asked[0].body), &sent))
	require.ElementsMatch(t, l.Parties(), sent.QueryingParties)
	_, _, asked = r.ledger(t, config.ExitDone, "update", l.UpdateID(30), "--no-reassignments", "--no-topology", "--blobs", "--verbose", "--shape=ledger-effects")
	require.JSONEq(t, `{"updateId":"`+l.UpdateID(30)+`","updateFormat":{"includeTransactions":{"eventFormat":{`+ofAnyParty(anyBlob)+
		`,"verbose":true},"transactionShape":"TRANSACTION_SHAPE_LEDGER_EFFECTS"}}}`, of(asked, "/v2/updates/update-by-id")[0].body)
}

func TestLedgerUsageErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"no ledger":                 {[]string{"updates", "--ledger-url="}, "--ledger-url is missing"},
		"no command":                {nil, "expected one of"},
		"from negative":             {[]string{"updates", "--from=-1"}, "--from must be at least 0, not -1"},
		"to below from":             {[]string{"updates", "--from=9", "--to=8"}, "--to must be at least --from, which is 9, not 8"},
		"descending without end":    {[]string{"updates", "--descending"}, "--descending needs --to"},
		"trees of templates":        {[]string{"updates", "--trees", "--templates=#a:B:C"}, "--trees goes without --templates"},
		"trees but topology":        {[]string{"updates", "--trees", "--no-topology"}, "go without --no-transactions, --no-reassignments and --no-topology"},
		"deprecated, no moves":      {[]string{"updates", "--deprecated", "--shape=acs-delta", "--no-reassignments"}, "--deprecated go without"},
		"deprecated, effects":       {[]string{"updates", "--deprecated"}, "give --shape acs-delta with it"},
		"nothing":                   {[]string{"updates", "--no-transactions", "--no-topology", "--no-reassignments"}, "leave nothing to ask for"},
		"nothing of an update":      {[]string{"update", "x", "--no-transactions", "--no-topology", "--no-reassignments"}, "leave nothing to ask for"},
		"limit":                     {[]string{"updates", "--limit=0"}, "--limit must be at least 1, not 0"},
		"limit of contracts":        {[]string{"contracts", "--limit=-3"}, "--limit must be at least 1, not -3"},
		"idle timeout":              {[]string{"updates", "--idle-timeout=16s"}, "--idle-timeout must be at most 15s, not 16s"},
		"idle timeout negative":     {[]string{"contracts", "--idle-timeout=-1s"}, "--idle-timeout must be at most 15s, not -1s"},
		"at a negative offset":      {[]string{"contracts", "--at-offset=-2"}, "--at-offset must be at least 0, not -2"},
		"after a token of anything": {[]string{"contracts", "--after-token=x"}, "--after-token needs --at-offset"},
		"a template that is none":   {[]string{"contracts", "--templates=Iou"}, "--templates"},
		"shape of contracts":        {[]string{"contracts", "--shape=acs-delta"}, "unknown flag --shape"},
		"parties of a contract":     {[]string{"contract", "00ab", "--parties=a,,b"}, "--parties"},
		"no contract":               {[]string{"contract", ""}, "the contract's id is empty"},
		"no update":                 {[]string{"update", ""}, "the update's id is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := command(t, map[string]string{"INDEXER_LEDGER_URL": "http://127.0.0.1:1"}, append([]string{"ledger"}, test.args...)...)
			require.Equal(t, config.ExitUsage, code, stderr)
			require.Contains(t, stderr, test.says)
			require.Empty(t, stdout)
		})
	}
}

// What the operator must do something about ends with 3 and its cure; what may pass with 1.
func TestLedgerProblems(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l := grown(60)
	beyond := fmt.Sprintf("--to=%d", l.End()+100)
	to := fmt.Sprintf("--to=%d", l.End())
	at := fmt.Sprintf("--at-offset=%d", l.End())
	for name, test := range map[string]struct {
		options sandbox.ServerOptions
		args    []string
		code    int
		says    string
	}{
		"above the end":             {sandbox.ServerOptions{}, []string{"updates", beyond}, config.ExitProblem, "give an offset up to the ledger end"},
		"descending on 3.4":         {sandbox.ServerOptions{Version: "3.4"}, []string{"updates", to, "--descending"}, config.ExitProblem, "leave out --descending"},
		"trees on 3.6":              {sandbox.ServerOptions{Version: "3.6"}, []string{"updates", to, "--trees"}, config.ExitProblem, "leave out --descending, --trees"},
		"a token on 3.4":            {sandbox.ServerOptions{Version: "3.4"}, []string{"contracts", at, "--after-token=anVuaw=="}, config.ExitProblem, "or --after-token"},
		"a token of something else": {sandbox.ServerOptions{}, []string{"contracts", at, "--after-token=anVuaw=="}, config.ExitProblem, "refuses the token"},
		"no tokens, and too long":   {sandbox.ServerOptions{Version: "3.4", ListLimit: 4}, []string{"contracts", at}, config.ExitProblem, "give --limit"},
		"no end told":               {sandbox.ServerOptions{StrictInterface: true}, []string{"contracts"}, config.ExitProblem, "give the offset with --at-offset"},
		"a token is wanted":         {sandbox.ServerOptions{Token: fileToken}, []string{"updates", to}, config.ExitProblem, "--ledger-token-file"},
		"the server is away":        {sandbox.ServerOptions{Fault: func(*http.Request) *sandbox.Fault { return &sandbox.Fault{Status: 503} }}, []string{"updates", to}, config.ExitFailed, "503"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, _ := record(t, l, test.options).ledger(t, test.code, test.args...)
			require.Contains(t, stderr, test.says)
			require.Equal(t, test.code == config.ExitProblem, strings.Contains(stderr, "What to do: "))
		})
	}
}

// Pages are printed as they come: what came before a failure is there. A token is not printed, whatever the server
// says.
func TestLedgerPrintsPagesAsTheyCome(t *testing.T) {
	t.Parallel()
	l := grown(300)
	var lists atomic.Int32
	r := record(t, l, sandbox.ServerOptions{Token: fileToken, Fault: func(req *http.Request) *sandbox.Fault {
		if req.URL.Path == updatesPath && req.URL.Query().Get("limit") == "200" {
			if lists.Add(1) == 2 {
				return &sandbox.Fault{Status: 500, ContentType: "text/plain", Body: "I got " + req.Header.Get("Authorization")}
			}
		}
		return nil
	}})
	file := secretFile(t, fileToken)
	stdout, stderr, _ := r.ledger(t, config.ExitFailed, "updates", fmt.Sprintf("--to=%d", l.End()), "--ledger-token-file", file)
	require.Equal(t, 200, strings.Count(stdout, "\n"))
	require.Contains(t, stderr, "I got ")
	require.NotContains(t, stdout+stderr, fileToken)
	broken := errors.New("the reader has gone")
	require.ErrorIs(t, jsonLines(config.Output{Writer: failing{broken}})([]byte(`{}`)), broken)
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
	examples := regexp.MustCompile(`(?m)^    bin/indexer ledger .*$`).FindAllString(string(text), -1)
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
