package config

import (
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const secret = "correct-horse-battery"

// FuzzArguments parses any command line, its arguments one a line. What holds a password is refused, and not repeated.
func FuzzArguments(f *testing.F) {
	const database = "--database-url=postgres://localhost/x\n"
	for _, line := range []string{
		"", "run", "run\n" + database + "--ledger-url=http://localhost", "run\n" + database + "--ledger-url=http://joe:" + secret + "@localhost",
		"run\n--database-url\npostgres://joe:" + secret + "@h/x", "run\n--database-url=host=h password=" + secret, "--help", "run\n--start=99999999999999999999",
		"run\n" + database + "--ledger-url=http://localhost\n--templates=a,,b", "migrate\n" + database, "run\n--\n" + secret + "\n--shape=x", "\x00", "run\n--no-blobs",
		"run\n" + database + "--ledger-url=http://localhost\n--ledger-token-file=x.eyJzdWIiOiJqb2UifQ." + secret, "postgres://joe:" + secret + "@ser ver",
		"run\n--packages-interval=1x\n--lookup-rate=1e9", "run\n" + database + "--ledger-url=http://localhost\n--ledger-oauth-token-url=http://joe:" + secret + "@x",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		var args []string
		if lines != "" {
			args = strings.Split(lines, "\n")
		}
		for _, grammar := range []any{&daemonFlags{}, &jobFlags{}} {
			_, err := parse(grammar, "test", "A test.", args, nil, io.Discard)
			for _, arg := range args {
				if hasPassword(arg) && !strings.HasPrefix(arg, "-") {
					require.Error(t, err)
				}
			}
			if err == nil {
				continue
			}
			require.NotEmpty(t, err.Error())
			if refuseSecrets(args) != nil {
				require.NotContains(t, err.Error(), secret)
			}
			var printed strings.Builder
			require.Contains(t, []int{ExitDone, ExitFailed, ExitUsage, ExitProblem}, exitCode("test", err, &printed))
			require.False(t, strings.ContainsFunc(printed.String(), func(r rune) bool { return r != '\n' && unicode.IsControl(r) }), "%q", printed.String())
		}
	})
}

// FuzzEnvironment gives settings by their environment variables, where passwords are allowed: none is printed.
func FuzzEnvironment(f *testing.F) {
	for _, text := range []string{
		"", "postgres://joe:" + secret + "@localhost/x", "http://joe:" + secret + "@localhost", "http://joe:" + secret + "@ser ver", "host=h password=" + secret,
		"postgres://joe:" + secret + "/x@localhost/x?sslmode=what", "password='" + secret, "://" + secret + "@", "a,b", "genesis", "\xff", "10m",
	} {
		f.Add(text, "http://localhost", "genesis", "a:b:c")
		f.Add("postgres://localhost/x", text, text, text)
	}
	f.Fuzz(func(t *testing.T, database, ledgerURL, start, templates string) {
		if strings.Contains(database+ledgerURL+start+templates, "\x00") {
			return // no variable can hold it
		}
		environ := []string{
			"INDEXER_DATABASE_URL=" + database, "INDEXER_LEDGER_URL=" + ledgerURL, "INDEXER_START=" + start, "INDEXER_TEMPLATES=" + templates,
		}
		var flags daemonFlags
		_, err := parse(&flags, "test", "A test.", []string{"run"}, environ, io.Discard)
		if err != nil {
			if !strings.Contains(start+templates, secret) { // these are no secrets, and are repeated
				require.NotContains(t, err.Error(), secret)
			}
			return
		}
		require.Equal(t, database, flags.Run.DatabaseURL)
		require.Equal(t, ledgerURL, flags.Run.LedgerURL)
		for _, name := range flags.Run.Templates {
			require.NoError(t, checkIdentifier(name))
		}
	})
}

// FuzzVariables looks for a name in the environment that is neither taken nor refused.
func FuzzVariables(f *testing.F) {
	for _, entry := range []string{"INDEXER_LEDGER_URL=x", "INDEXER_LEGDER_URL=x", "INDEXER_PORT=tcp://1.2.3.4:5", "indexer_x=1", "INDEXER_", "", "=", "INDEXER_SERVICE_HOST=1",
		"INDEXER_LEGDER_URL=" + strings.Repeat("x", 101), "INDEXER_LEDGER_URL=" + strings.Repeat("\xff", 101)} {
		f.Add(entry)
	}
	known, err := variables()
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, entry string) {
		name, value, _ := strings.Cut(entry, "=")
		taken := false
		for _, k := range known {
			taken = taken || k == name
		}
		err := refuseUnknown([]string{entry})
		require.Equal(t, strings.HasPrefix(name, envPrefix) && !taken && !ofService(name, value) || taken && !utf8.ValidString(value), err != nil)
		if err != nil && value != "" && len(value) > 100 {
			require.NotContains(t, err.Error(), value)
		}
	})
}

// FuzzShellWord reads a word back as a shell does.
func FuzzShellWord(f *testing.F) {
	for _, text := range []string{"", "plain", "it's", "$(x) `y` \\ \" *", "a\nb", "\xff", "''"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var read strings.Builder
		quoted := false
		for word := ShellWord(text); word != ""; {
			switch {
			case word[0] == '\'':
				quoted, word = !quoted, word[1:]
			case !quoted && word[0] == '\\':
				read.WriteByte(word[1])
				word = word[2:]
			default:
				require.True(t, quoted || plainWord.MatchString(word[:1]), "%q", word)
				read.WriteByte(word[0])
				word = word[1:]
			}
		}
		require.False(t, quoted)
		require.Equal(t, text, read.String())
		shown := harmless(text)
		require.True(t, utf8.ValidString(shown))
		require.Equal(t, shown, harmless(shown))
	})
}
