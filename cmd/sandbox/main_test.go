package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ledgerindexer/internal/tools/brief"
	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(throwaway.Tests(m)) }

// start runs the command until stop is called, which returns what run returned.
func start(t *testing.T, args ...string) (line, url string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"--listen", "127.0.0.1:0"}, args...), in)
		in.CloseWithError(io.EOF)
		done <- err
	}()
	buf := make([]byte, 4096)
	n, err := out.Read(buf)
	if err != nil {
		cancel()
		require.NoError(t, <-done)
	}
	line = string(buf[:n])
	url = regexp.MustCompile(`https?://\S+`).FindString(line)
	return line, url, func() error { cancel(); return <-done }
}

func get(t *testing.T, url, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return send(t, r, nil)
}

func TestServesUntilStopped(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("secret\n"), 0o600))
	line, url, stop := start(t, "--updates", "50", "--seed", "9", "--release", "3.6", "--token-file", token, "--rate", "100", "--prune-at", "10")
	require.Contains(t, line, "serving ")
	require.Contains(t, line, "seed 9, as release 3.6, pruned up to 10, growing by 100 updates a second on http://127.0.0.1:")
	status, _ := get(t, url+"/v2/state/ledger-end", "")
	require.Equal(t, http.StatusUnauthorized, status)
	_, body := get(t, url+"/v2/state/latest-pruned-offsets", "secret")
	require.Contains(t, body, `"participantPrunedUpToInclusive":10`)
	require.NoError(t, stop())
	require.Equal(t, exitDone, exitCode(nil, io.Discard))
}

func TestReplays(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "updates.json")
	require.NoError(t, os.WriteFile(file, []byte(`[{"update":{"OffsetCheckpoint":{"value":{"offset":4,"synchronizerTimes":[]}}}}]`), 0o600))
	line, url, stop := start(t, "--replay", file)
	require.Contains(t, line, "replaying 1 recorded updates (ledger end 1) and 0 active contracts")
	_, body := get(t, url+"/v2/state/ledger-end", "")
	require.JSONEq(t, `{"offset":1}`, body)
	require.NoError(t, stop())
}

func TestUsageAndFailures(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"unknown flag":    {[]string{"--nonsense"}, exitUsage, "unknown flag --nonsense"},
		"unknown release": {[]string{"--release", "2.9"}, exitUsage, "must be one of"},
		"no token":        {[]string{"--token-file", empty}, exitFailed, "it is empty"},
		"pruned too far":  {[]string{"--updates", "5", "--prune-at", "1000"}, exitFailed, "the ledger ends at"},
		"bad address":     {[]string{"--listen", "256.0.0.1:1"}, exitFailed, "listen for clients"},
		"live recording":  {[]string{"--replay", empty, "--rate", "1"}, exitFailed, "for a grown ledger"},
		"two lengths":     {[]string{"--restored-at", "3", "--state", empty + ".state"}, exitFailed, "leave out --restored-at"},
		"bad recording":   {[]string{"--replay", empty}, exitFailed, "load the recording"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			require.Equal(t, c.code, exitCode(run(context.Background(), c.args, &out), &errs))
			require.Contains(t, errs.String(), c.says)
		})
	}
	var out bytes.Buffer
	require.Equal(t, exitDone, exitCode(run(context.Background(), []string{"--help"}, &out), io.Discard))
	require.Contains(t, out.String(), "$SANDBOX_STRICT_INTERFACE")
	out.Reset()
	require.Equal(t, exitDone, exitCode(run(context.Background(), []string{"--version"}, &out), io.Discard))
	require.Regexp(t, `^sandbox \S+, commit \S+, schema \d+, go1\S*\n$`, out.String())
}

func TestFlagsFromTheEnvironment(t *testing.T) {
	t.Setenv("SANDBOX_UPDATES", "7")
	t.Setenv("SANDBOX_STRICT_INTERFACE", "true")
	f, err := parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 7, f.Updates)
	require.True(t, f.StrictInterface)
}

// The demo shows the whole product, on a PostgreSQL that it finds or starts, and leaves nothing running.
func TestDemo(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 3, Believable: true})
	l.Grow(100)
	records := len(sandbox.NewScan(l, sandbox.ScanOptions{}).EventIDs())
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"--all", "--once", "--seed", "3", "--updates", "100", "--listen", "127.0.0.1:0"}, &out))
	for _, part := range []string{
		"starting PostgreSQL", "simulated participant", "backfill: stored", "indexer: caught up",
		"FROM ledger.active_contracts", "simulated Scan service: release ", "RELATION", "ledger.created_events", "FROM network.party_transfers", "done",
	} {
		require.Contains(t, out.String(), part)
	}
	require.Regexp(t, `network\.transactions +`+strconv.Itoa(records)+`\n`, out.String(), "every record of the service")
}

// The queries of the README answer in the demo, with something, and what they show is to be believed.
func TestQueriesOfTheReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	database := throwaway.Database(t)
	require.NoError(t, run(t.Context(), []string{"--all", "--once", "--listen", "127.0.0.1:0", "--database-url", database}, io.Discard))
	conn, err := (&demo{database: database}).connect(t.Context())
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	ran := 0
	for _, found := range regexp.MustCompile(`(?ms)^    SELECT .*?;`).FindAllString(string(text), -1) {
		rows, err := conn.Query(t.Context(), found)
		require.NoError(t, err, found)
		some := rows.Next()
		rows.Close()
		require.NoError(t, rows.Err(), found)
		require.True(t, some, found)
		ran++
	}
	require.Greater(t, ran, 7)
	// Who offers a transfer locks what is offered for himself, in records of real services too.
	for what, condition := range map[string]string{
		"amounts": "EXISTS (SELECT FROM ledger.holding_totals WHERE amount NOT BETWEEN 0 AND 10000000 OR locked_amount NOT BETWEEN 0 AND amount)",
		"limits":  `EXISTS (SELECT FROM typed.bank_account WHERE "limit" NOT BETWEEN 0 AND 10000000)`,
		"senders": "EXISTS (SELECT FROM network.transfers t JOIN network.transfer_receivers r USING (seq) WHERE r.party = t.sender AND t.transfer_kind IS DISTINCT FROM 'create_transfer_instruction')",
		"movers":  "EXISTS (SELECT FROM network.party_transfers WHERE party = ANY (counterparties) AND transfer_kind IS DISTINCT FROM 'create_transfer_instruction')",
		"names":   "EXISTS (SELECT FROM ledger.holding_totals WHERE owner LIKE 'party-%' OR instrument = '')",
	} {
		var odd bool
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT "+condition).Scan(&odd), what)
		require.False(t, odd, what)
	}
}

// The demo reads, and has its users read, as the role that the documents describe.
func TestDemoReadsAsTheDocumentsSay(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	var options []string
	for _, setting := range regexp.MustCompile(`ALTER ROLE analyst SET (\w+) = '?(\w+)'?;`).FindAllStringSubmatch(string(text), -1) {
		options = append(options, "-c "+setting[1]+"="+setting[2])
	}
	require.Equal(t, strings.Join(options, " "), readerOptions)
}

// Without --once it follows the live ledger until it is stopped, and without the service it has neither its records nor
// the questions about them.
func TestDemoFollows(t *testing.T) {
	t.Parallel()
	brief.Long(t, "runs the whole product, with a database server of its own")
	database := throwaway.Database(t)
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"--all", "--no-scan", "--updates", "50", "--rate", "50", "--listen", "127.0.0.1:0", "--database-url", database}, in)
		in.CloseWithError(io.EOF)
		done <- err
	}()
	lines := bufio.NewScanner(out)
	page, said := "", ""
	for lines.Scan() && !regexp.MustCompile(`everything up to offset \d+ is here`).MatchString(lines.Text()) {
		said += lines.Text() + "\n"
		if found := regexp.MustCompile(`status page on (http://\S+/);`).FindStringSubmatch(lines.Text()); found != nil {
			page = found[1]
		}
	}
	require.NotEmpty(t, page)
	require.Contains(t, said, "FROM ledger.holding_totals")
	require.Contains(t, said, "    PGOPTIONS='"+readerOptions+"' psql 'postgres")
	require.NotContains(t, said, "Scan")
	require.NotContains(t, said, "FROM network.")
	require.Eventually(t, func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, http.NoBody)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return false // the indexer does not listen yet
		}
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}, 5*time.Minute, 50*time.Millisecond)
	stop()
	_, err := io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.NoError(t, <-done)
}
