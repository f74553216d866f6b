package config

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fileFlags is a command line that has a configuration file.
type fileFlags struct {
	Run struct {
		Database
		Sources
		Scope
		Run
		RequestLimits
	} `cmd:""`
	File
	Log
}

// parseFile parses with a configuration file.
func parseFile(t *testing.T, text string, environ []string, args ...string) (*fileFlags, Settings, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	var flags fileFlags
	parser, err := NewParser(&flags, "program", "Does things.")
	require.NoError(t, err)
	parsed, err := parser.Parse(append([]string{"run", "--config", name}, args...), environ, io.Discard)
	if err != nil {
		var usage *UsageError
		require.ErrorAs(t, err, &usage)
		return nil, nil, err
	}
	settings := parser.settings(parsed)
	for i := range settings {
		settings[i].From = strings.ReplaceAll(settings[i].From, name, "FILE")
	}
	return &flags, settings, nil
}

// A flag wins over the environment, that over the file, and the file over the default.
func TestConfigurationFile(t *testing.T) {
	t.Parallel()
	flags, settings, err := parseFile(t, `
database-url: postgres://u:secret@host/db
ledger-url: http://participant
# a comment
parties: [a, "b,c"]
templates: "#p:M:T,#q:M:T"
interfaces: []
blobs: true
reassignments: false
max-rate: 2.5
lookup-rate: 7
verify-rate: 8
packages-interval: 90s
log-level: debug
at-offset: 5
`, []string{"INDEXER_VERIFY_RATE=9", "INDEXER_LOOKUP_RATE=10"}, "--lookup-rate=11")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b,c"}, flags.Run.Parties)
	require.Equal(t, []string{"#p:M:T", "#q:M:T"}, flags.Run.Templates)
	require.Nil(t, flags.Run.Interfaces)
	require.True(t, flags.Run.Blobs)
	require.False(t, flags.Run.Reassignments)
	require.Equal(t, "debug", flags.LogLevel)
	found := map[string]Setting{}
	for _, s := range settings {
		found[s.Name] = s
	}
	for _, want := range []Setting{
		{"lookup-rate", 11, "flag"}, {"verify-rate", 9, "INDEXER_VERIFY_RATE"}, {"max-rate", 2.5, "FILE:10"}, {"max-requests", 8, "default"},
		{"parties", []string{"a", "b,c"}, "FILE:5"}, {"interfaces", []string{}, "default"}, {"packages-interval", "1m30s", "FILE:13"},
		{"database-url", "postgres://u:xxxxx@host/db", "FILE:2"}, {"scan-history", "updates", "default"}, {"reassignments", false, "FILE:9"},
	} {
		require.Equal(t, want, found[want.Name])
	}
	require.NotContains(t, found, "at-offset", "it is another command's")
	require.NotContains(t, found, "config")
}

// What is in a file is a setting with a value, or an error that says what, where, and what to do.
func TestConfigurationFilesWithErrors(t *testing.T) {
	t.Parallel()
	const good = "database-url: postgres://u@host/db\nledger-url: http://participant\n"
	for name, c := range map[string]struct{ text, says string }{
		"a wrong name":            {good + "max-rat: 3", `line 3, has "max-rat", which is no setting: did you mean max-rate?`},
		"an underscore":           {good + "LOG_LEVEL: debug", `line 3, has "LOG_LEVEL", which is no setting: did you mean log-level?`},
		"a strange name":          {good + "colour: red", `line 3, has "colour", which is no setting; ` + "`indexer config` lists the settings"},
		"itself":                  {good + "config: x", `line 3, has "config", which is no setting`},
		"a flag without variable": {good + "json: true", `line 3, has "json", which is no setting`},
		"twice":                   {good + "max-rate: 3\nmax-rate: 4", `line 4, has max-rate again, which is on line 3`},
		"no value":                {good + "max-rate:", `line 3, gives max-rate no value: give one, or leave the line out`},
		"null in a list":          {good + "parties: [a, ~]", `line 3, gives parties no value`},
		"a mapping":               {good + "parties: {a: b}", `line 3, must give parties a text, a number`},
		"an alias":                {"ledger-url: &a http://p\nscan-url: *a", `line 2, must give scan-url a text`},
		"a wrong value":           {good + "max-rate: fast", `--max-rate: expected a float but got "fast" (string) (from file `},
		"a wrong value's line":    {good + "max-rate: fast", `c.yaml, line 3, max-rate: fast)`},
		"a list for one":          {good + "max-rate: [1, 2]", `line 3, gives max-rate a list, and it is one value`},
		"a list with a password":  {"database-url: [postgres://u:s3cret@host/db]", `line 1, gives database-url a list, and it is one value`},
		"an enumeration":          {good + "log-level: loud", `--log-level must be one of`},
		"out of range":            {good + "max-requests: 99", `--max-requests must be 1 to 32, not 99`},
		"a list":                  {"- a", `line 1, must have a setting and its value on each line`},
		"a text":                  {"hello", `line 1, must have a setting`},
		"nothing":                 {"", `c.yaml is empty: it may be half written. A file without settings is {}`},
		"comments only":           {"# later\n", `c.yaml is empty`},
		"half written":            {good + "parties: [a,", `c.yaml is no YAML: line 3: `},
		"half a key":              {good + "max-ra", `c.yaml is no YAML: line 3: `},
		"not UTF-8":               {good + "scan-url: \xff", `c.yaml is no YAML: `},
		"two documents":           {good + "---\n" + good, `c.yaml has more after its first document`},
		"too large":               {strings.Repeat("#", fileLimit+1), `is larger than 1024 kB`},
	} {
		_, _, err := parseFile(t, c.text, nil)
		require.ErrorContains(t, err, c.says, name)
		require.NotContains(t, err.Error(), "s3cret")
	}
	_, _, err := parseFile(t, "{}", nil, databaseFlag, ledgerFlag)
	require.NoError(t, err)
	for path, says := range map[string]string{"nowhere/c.yaml": "no such file or directory", ".": "is a directory"} {
		var flags fileFlags
		_, err := parse(&flags, "program", "Does things.", []string{"run"}, []string{"INDEXER_CONFIG=" + path}, io.Discard)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "--config: ")
	}
}

// What a wrong value says may be a secret.
func TestHidden(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"postgres://u@host/db": "postgres://u@host/db", "postgres://u:p@host/db": "postgres://u:xxxxx@host/db",
		"host=h password=p user=u": "host=h password=xxxxx user=u", "host=h password='p q' user=u": "host=h password=xxxxx user=u",
		"postgres://u@host/db?password=p&sslmode=disable": "postgres://u@host/db?password=xxxxx&sslmode=disable",
		"postgres://u:p/w@host/db":                        "xxxxx",
		"postgres://u:1/w@host/db":                        "xxxxx",
		"postgres://u:p@q/w@host/db":                      "xxxxx",
		"http://u:p@q/w@host":                             "xxxxx",
		"postgres://u:1#w@host/db":                        "xxxxx",
		"postgres://u@host/db?password=a b#c&x=d":         "postgres://u@host/db?password=xxxxx&x=d",
		`host=h password=a\ b&c user=u`:                   "host=h password=xxxxx user=u",
		`host=h password = 'a\' b`:                        "host=h password = xxxxx",
		"e30.eyJzdWIiOiJqb2UifQ.c2ln":                     "xxxxx",
		"postgres:/u:p@host/db":                           "xxxxx",
		"postgres//u:p@host/db":                           "xxxxx",
		"postgres//u:p%40host/db":                         "xxxxx",
		"postgresql:/u:p/db":                              "xxxxx",
		"u:p@host/db":                                     "xxxxx",
		"jdbc:postgresql://u:p@host/db":                   "xxxxx",
		"postgres:///u:p@host/db":                         "xxxxx",
		"postgres://u:p%40host/db":                        "xxxxx",
		"postgres://u:p/db":                               "xxxxx",
		"postgres://u:p@h1,h2:5433/db":                    "postgres://u:xxxxx@h1,h2:5433/db",
		"postgres://u:p@h1:5432,h2:5433/db":               "postgres://u:xxxxx@h1:5432,h2:5433/db",
		"postgres://u@h1:5432,h2:5433/db":                 "postgres://u@h1:5432,h2:5433/db",
		"postgres:///db?host=/run":                        "postgres:///db?host=/run",
		"postgres://u@host/db?pasword=p":                  "postgres://u@host/db?pasword=xxxxx",
		"host=h passwd=p user=u@tenant":                   "host=h passwd=xxxxx user=u@tenant",
		"passfile=/p host=h user=u":                       "passfile=/p host=h user=u",
		"alice::1220":                                     "alice::1220",
		"http://participant:7575/x":                       "http://participant:7575/x",
	} {
		require.Equal(t, want, hidden(text))
	}
}

// A setting may be written as YAML lets it be: a number may be a text to the program.
func TestSettingsAsYAMLLetsThemBeWritten(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"max-requests: 4": true, "max-rate: 2": true, "max-rate: 2.5": true, "max-requests: many": false, "max-requests: 2.5": false,
		"retain: 400d": true, "retain: 36h": true, "retain: 1h30m": true, "retain: 0": true, "retain: 400": false, "retain: a year": false,
		"packages-interval: 0": true, "packages-interval: 10m": true, "packages-interval: 10": false, "packages-interval: 1d": false,
		"start: 17": true, "start: genesis": true, "ledger-token-file: 12345": true, "admin-token-file: 1.5": true,
		"parties: [17, alice]": true, "parties: 17": true, "parties: [[a]]": false, "parties: {a: b}": false, "blobs: true": true, "blobs: maybe": false,
		"log-level: debug": true, "log-level: 3": false, "migrate: off": true, "at-offset: 5": true, "listen: 127.0.0.1:8080": true,
	} {
		_, _, err := parseFile(t, "database-url: postgres://u@host/db\nledger-url: http://participant\n"+line, nil)
		require.Equal(t, want, err == nil, "%s: %v", line, err)
	}
}
