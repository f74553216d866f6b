package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/check"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	l := grown(30)
	authority := sandbox.NewAuthority(sandbox.AuthorityOptions{ParticipantID: l.ParticipantID()})
	authority.SetUser(sandbox.User{ID: "indexer", Rights: []sandbox.Right{sandbox.CanReadAs("al ice"), sandbox.CanReadAs("bob")}})
	url := participantOf(t, l, sandbox.ServerOptions{Authority: authority})
	tokens := filepath.Join(t.TempDir(), "it's a token")
	token := authority.Token("indexer")
	require.NoError(t, os.WriteFile(tokens, []byte(token), 0o600))
	environ := map[string]string{"INDEXER_DATABASE_URL": throwaway.Database(t), "INDEXER_LEDGER_TOKEN_FILE": tokens}

	// What may not be read is a problem, and what may be is there to paste.
	code, stdout, stderr := command(t, environ, "check", "--ledger-url", url)
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stdout, "What to do: ")
	require.Contains(t, stdout, "    --parties='al ice,bob'\n")
	require.Regexp(t, `\n1 problem[^.]*\.\n$`, stdout, "what to do is said once, with the error")
	require.Equal(t, "indexer: the check found what keeps the indexer from running\nWhat to do: do what stands beneath each problem, and run the check again.\n", stderr)
	require.NotContains(t, stdout+stderr, token)

	// With it the command to go on with has the flags of the command line, and what is in the environment stays there.
	scan := httptest.NewServer(sandbox.NewScan(l, sandbox.ScanOptions{}))
	defer scan.Close()
	args := []string{"--log-level", "debug", "check", "--json", "--ledger-url=" + url, "--parties", "al ice,bob", "--no-topology", "--blobs=false", "--scan-url", scan.URL}
	code, stdout, stderr = command(t, environ, args...)
	require.Equal(t, config.ExitDone, code, stdout)
	require.Empty(t, stderr)
	var report check.Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &report))
	require.Zero(t, report.Problems)
	require.NotEmpty(t, report.Findings)
	require.Equal(t, []string{"indexer run --log-level=debug --ledger-url=" + url + " --parties='al ice,bob' --topology=false --blobs=false --scan-url=" + scan.URL}, report.Next)
	require.NotContains(t, stdout, token)

	// It can be pasted.
	environ["INDEXER_LISTEN"] = ""
	code, _, stderr = command(t, environ, "run", "--until-current", "--ledger-url="+url, "--parties", "al ice,bob", "--topology=false", "--blobs=false", "--scan-url="+scan.URL)
	require.Equal(t, config.ExitDone, code, stderr)
	require.Equal(t, true, statusOf(t, environ)["network"])
	require.NotContains(t, statusOf(t, environ), "transactions")
	code, stdout, stderr = command(t, environ, "status")
	require.Zero(t, code, stderr)
	require.Contains(t, squeezed(stdout), "network its updates are stored too, in schema network: `indexer status --network` shows how far")
	code, stdout, stderr = command(t, environ, "status", "--network", "--ledger-url="+url) // as in the daemon's environment
	require.Zero(t, code, stderr)
	require.Contains(t, squeezed(stdout), "network of "+l.DSO())
	require.NotContains(t, stdout, "another participant")
}

// A password that cuts a proxy's URL off is not taken for host and port, which are shown; and a URL that can't be parsed
// does not mean that there is no proxy, also on the way to the tokens.
func TestCheckShowsNoPasswordOfAProxy(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("s3cret"), 0o600))
	tokens := []string{"--ledger-url=" + participantOf(t, sandbox.NewLedger(sandbox.Options{}), sandbox.ServerOptions{}),
		"--ledger-oauth-token-url=http://issuer.invalid/token", "--ledger-oauth-client-id=c", "--ledger-oauth-client-secret-file=" + secret}
	for proxy, flags := range map[string][]string{
		"http://joe:1/hunter2@proxy.invalid:3128":  {"--ledger-url=http://participant.invalid"},
		"http://joe:hunter2%zz@proxy.invalid:3128": {"--ledger-url=http://participant.invalid"},
		"http://joe:hunter2%zz@proxy.invalid":      tokens,
	} {
		p := start(t, map[string]string{"HTTP_PROXY": proxy}, append([]string{"check"}, flags...)...)
		require.Equal(t, config.ExitProblem, p.wait())
		require.Contains(t, p.text(), "characters such as @ / ? # in a password are written as", proxy)
		require.NotContains(t, p.text(), "joe")
		require.NotContains(t, p.text(), "hunter2")
	}
}

// What is written late can be seen to be late, by everything that starts.
func TestATokenThatIsNotThereYet(t *testing.T) {
	t.Parallel()
	missing := "--ledger-token-file=" + filepath.Join(t.TempDir(), "token")
	for _, args := range [][]string{{"run", "--listen="}, {"check"}, {"packages", "list"}} {
		args = append(args, missing, "--ledger-url=http://127.0.0.1:1")
		if args[0] == "run" {
			args = append(args, "--database-url=postgres://127.0.0.1:1/d")
		}
		code, stdout, stderr := command(t, nil, args...)
		require.Equal(t, config.ExitProblem, code, stderr)
		require.Contains(t, stdout+stderr, "there is no token to begin with: --ledger-token-file: ")
		require.Contains(t, stdout+stderr, "What to do: put the token into the file, or correct --ledger-token-file")
	}
}

// The check takes every flag of run, with the same values and defaults, so that the flags of a daemon can be put behind
// it.
func TestCheckTakesTheFlagsOfRun(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&grammar{}, kong.DefaultEnvars("INDEXER"))
	require.NoError(t, err)
	flags := func(command string) map[string]*kong.Flag {
		named := map[string]*kong.Flag{}
		for _, node := range parser.Model.Children {
			if node.Name == command {
				for _, flag := range node.Flags {
					named[flag.Name] = flag
				}
			}
		}
		return named
	}
	taken := flags("check")
	require.NotEmpty(t, flags("run"))
	for name, flag := range flags("run") {
		require.Contains(t, taken, name)
		for _, same := range [][2]any{
			{flag.Target.Type(), taken[name].Target.Type()}, {flag.Default, taken[name].Default}, {flag.Enum, taken[name].Enum},
			{flag.Envs, taken[name].Envs}, {flag.Tag.Negatable, taken[name].Tag.Negatable},
		} {
			require.Equal(t, same[0], same[1], name)
		}
	}
}

// Each command that is proposed has the flags that it takes.
func TestCheckWithTheFlagsOfADaemon(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l := grown(60)
	require.NoError(t, l.Prune(l.End()/2))
	environ := map[string]string{"INDEXER_DATABASE_URL": throwaway.Database(t)}
	daemon := []string{
		"--ledger-url=" + participantOf(t, l, sandbox.ServerOptions{}), "--blobs", "--listen=127.0.0.1:0", "--lookup-rate=0", "--verify-rate=0", "--packages-interval=0s",
		"--max-requests=2", "--max-rate=1000", "--until-current", "--pprof=127.0.0.1:0", "--log-format=json",
	}
	stdout, _ := printed(t, config.ExitDone, environ, append([]string{"check", "--json"}, daemon...)...)
	var report check.Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &report))
	require.Equal(t, []string{
		"backfill " + daemon[0] + " --blobs --max-requests=2 --max-rate=1000 --pprof=127.0.0.1:0 --log-format=json",
		"indexer run " + strings.Join(daemon, " "),
	}, report.Next)

	code, _, stderr := command(t, environ, "check", daemon[0], "--start=then")
	require.Equal(t, config.ExitUsage, code)
	require.Contains(t, stderr, "--start")
}

// Nothing is required, and what can't be used is a finding rather than a wrong usage.
func TestCheckTakesWhatItGets(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t, nil, "check")
	require.Equal(t, config.ExitProblem, code, "there is nothing to read")
	require.Equal(t, 3, strings.Count(stdout, "not configured"))
	require.Contains(t, stderr, "the check found what keeps the indexer from running")

	code, stdout, _ = command(t, nil, "check", "--ledger-url=localhost:7575", "--scan-url=ftp://h", "--database-url=mysql://h")
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stdout, "3 problems")

	code, stdout, _ = command(t, map[string]string{"INDEXER_LEDGER_URL": "http://u:hunter2@127.0.0.1:1", "INDEXER_DATABASE_URL": "postgres://u:hunter2@127.0.0.1:1/d"}, "check", "--json")
	require.Equal(t, config.ExitProblem, code)
	require.NotContains(t, stdout, "hunter2")

	code, _, stderr = command(t, nil, "check", "--templates=Main")
	require.Equal(t, config.ExitUsage, code)
	require.Contains(t, stderr, "--templates")
}
