package config

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ledgerindexer/internal/base/access"
	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// daemonFlags and jobFlags are made of the settings as the two commands are.
type (
	daemonFlags struct {
		Run struct {
			Database
			Sources
			Scope
			Run
		} `cmd:""`
		Migrate struct{ Database } `cmd:""`
		Log
	}
	jobFlags struct {
		Snapshot struct {
			Database
			Ledger
			Scope
			Snapshot
		} `cmd:"" default:"withargs"`
		Log
	}
)

const (
	databaseFlag = "--database-url=postgres://reader@db/ledger"
	ledgerFlag   = "--ledger-url=https://participant.example.com/json"
)

func parseDaemon(t *testing.T, environ map[string]string, args ...string) (daemonFlags, error) {
	t.Helper()
	var flags daemonFlags
	err := parseInto(t, &flags, environ, args...)
	return flags, err
}

// parse parses one command line.
func parse(grammar any, name, description string, args, environ []string, stdout io.Writer) (*kong.Context, error) {
	parser, err := NewParser(grammar, name, description)
	if err != nil {
		return nil, err
	}
	return parser.Parse(args, environ, stdout)
}

// parseInto parses in an environment of these variables.
func parseInto(t *testing.T, flags any, environ map[string]string, args ...string) error {
	t.Helper()
	var list []string
	for name, value := range environ {
		list = append(list, name+"="+value)
	}
	_, err := parse(flags, "program", "Does things.", args, list, io.Discard)
	return err
}

func run(more ...string) []string {
	return append([]string{"run", databaseFlag, ledgerFlag}, more...)
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	flags, err := parseDaemon(t, nil, run()...)
	require.NoError(t, err)
	require.Equal(t, Scope{Shape: "ledger-effects", Reassignments: true, Topology: true}, flags.Run.Scope)
	require.Equal(t, Run{
		Start: "genesis", Timeout: 24 * time.Hour, Listen: "127.0.0.1:8080", Migrate: "auto", ScanHistory: "updates", LookupRate: 5, PackagesInterval: 10 * time.Minute, VerifyRate: 500,
	}, flags.Run.Run)
	require.Equal(t, Log{LogFormat: "text", LogLevel: "info"}, flags.Log)
	require.Equal(t, ledger.Scope{Shape: ledger.ShapeLedgerEffects, Reassignments: true, Topology: true}, flags.Run.Domain())
}

func TestFlags(t *testing.T) {
	t.Parallel()
	flags, err := parseDaemon(t, nil, run("--parties=alice::12,bob::34", "--parties", "carol::56", "--templates=#a:M.N:T,#b:M:U",
		"--interfaces=#i:M:I", "--shape=ledger-effects", "--blobs", "--no-reassignments", "--no-topology", "--migrate=check",
		"--start=17", "--until-current", "--listen=", "--lookup-rate=0", "--packages-interval=1h30m", "--verify-rate=0", "--log-format=json", "--log-level=debug")...)
	require.NoError(t, err)
	require.Equal(t, ledger.Scope{
		Parties: []string{"alice::12", "bob::34", "carol::56"}, Templates: []string{"#a:M.N:T", "#b:M:U"}, Interfaces: []string{"#i:M:I"},
		Shape: ledger.ShapeLedgerEffects, Blobs: true,
	}, flags.Run.Domain())
	require.Equal(t, Run{
		Start: "17", ScanHistory: "updates", UntilCurrent: true, Timeout: 24 * time.Hour, Migrate: "check", PackagesInterval: 90 * time.Minute,
	}, flags.Run.Run)
	require.Equal(t, Log{LogFormat: "json", LogLevel: "debug"}, flags.Log)
}

func TestEveryFlagHasAVariable(t *testing.T) {
	t.Parallel()
	environ := map[string]string{
		"INDEXER_DATABASE_URL": "postgres://reader:hunter2@db/ledger", "INDEXER_LEDGER_URL": "http://ledger",
		"INDEXER_LEDGER_TOKEN_FILE": "/run/token", "INDEXER_SCAN_URL": "https://scan", "INDEXER_SCAN_HISTORY": "transactions", "INDEXER_SCAN_CA_FILE": "/run/ca.pem", "INDEXER_PARTIES": "alice::12,bob::34", "INDEXER_TEMPLATES": "#a:M.N:T,#b:M:U",
		"INDEXER_INTERFACES": "#i:M:I", "INDEXER_SHAPE": "ledger-effects", "INDEXER_BLOBS": "true", "INDEXER_REASSIGNMENTS": "false",
		"INDEXER_TOPOLOGY": "false", "INDEXER_START": "latest", "INDEXER_UNTIL_CURRENT": "true", "INDEXER_LISTEN": "",
		"INDEXER_MIGRATE": "off", "INDEXER_LOOKUP_RATE": "100", "INDEXER_PACKAGES_INTERVAL": "0", "INDEXER_VERIFY_RATE": "250", "INDEXER_LOG_FORMAT": "json", "INDEXER_LOG_LEVEL": "warn",
		// The backfill's; the two share an environment.
		"INDEXER_AT_OFFSET": "17", "INDEXER_RESTART": "true",
	}
	flags, err := parseDaemon(t, environ, "run")
	require.NoError(t, err)
	require.Equal(t, "postgres://reader:hunter2@db/ledger", flags.Run.DatabaseURL)
	require.Equal(t, Sources{
		LedgerURL: "http://ledger", LedgerAccess: access.Config{TokenFile: "/run/token"}, ScanURL: []string{"https://scan"}, ScanAgree: 1, ScanAccess: access.Config{CAFile: "/run/ca.pem"},
	}, flags.Run.Sources)
	require.Equal(t, Scope{
		Contracts: Contracts{Parties: []string{"alice::12", "bob::34"}, Templates: []string{"#a:M.N:T", "#b:M:U"}, Interfaces: []string{"#i:M:I"}, Blobs: true},
		Shape:     "ledger-effects",
	}, flags.Run.Scope)
	require.Equal(t, Run{Start: "latest", ScanHistory: "transactions", UntilCurrent: true, Timeout: 24 * time.Hour, Migrate: "off", LookupRate: 100, VerifyRate: 250}, flags.Run.Run)
	require.Equal(t, Log{LogFormat: "json", LogLevel: "warn"}, flags.Log)

	var job jobFlags
	require.NoError(t, parseInto(t, &job, environ))
	require.EqualValues(t, 17, *job.Snapshot.Offset())
	require.True(t, job.Snapshot.Restart)
	require.Equal(t, flags.Run.Scope, job.Snapshot.Scope)

	// A flag goes before its variable, lists as a whole.
	flags, err = parseDaemon(t, environ, "run", "--parties=carol::56", "--no-blobs=false", "--start=5")
	require.ErrorContains(t, err, "--no-blobs", "only what is on by default can be negated")
	flags, err = parseDaemon(t, environ, "run", "--parties=carol::56", "--topology", "--start=5")
	require.NoError(t, err)
	require.Equal(t, []string{"carol::56"}, flags.Run.Parties)
	require.True(t, flags.Run.Topology)
	require.Equal(t, "5", flags.Run.Start)
}

func TestNoVariableMeansNoValue(t *testing.T) {
	t.Parallel()
	flags, err := parseDaemon(t, map[string]string{"INDEXER_PARTIES": "", "INDEXER_TEMPLATES": ""}, run()...)
	require.NoError(t, err)
	require.Empty(t, flags.Run.Parties)
	require.Empty(t, flags.Run.Templates)

	var job jobFlags
	require.NoError(t, parseInto(t, &job, nil, databaseFlag, ledgerFlag))
	require.Nil(t, job.Snapshot.Offset())
}

// The updates and the history can each be read alone. What is given for the other one, and would not be used, is
// refused.
func TestOneSourceIsEnough(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"updates": run("--scan-url="),
		"history": {"run", databaseFlag, "--scan-url=https://scan"},
		"both":    run("--scan-url=https://scan"),
	} {
		_, err := parseDaemon(t, nil, args...)
		require.NoError(t, err, name)
	}
	var usage *UsageError
	for _, flag := range []string{
		"token-file", "oauth-token-url", "oauth-client-id", "oauth-client-secret-file", "oauth-scopes", "oauth-audience", "ca-file", "cert-file", "key-file",
	} {
		_, err := parseDaemon(t, nil, run("--scan-"+flag+"=x", "--scan-url=")...)
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, "--scan-"+flag+" is given and --scan-url is not")
		_, err = parseDaemon(t, nil, "run", databaseFlag, "--scan-url=https://scan", "--ledger-"+flag+"=x")
		require.ErrorContains(t, err, "--ledger-"+flag+" is given and --ledger-url is not")
	}
	_, err := parseDaemon(t, map[string]string{"INDEXER_SCAN_URL": "", "INDEXER_SCAN_TOKEN_FILE": "x"}, run()...)
	require.ErrorContains(t, err, "the environment's INDEXER_SCAN_TOKEN_FILE counts too")
	_, err = parseDaemon(t, map[string]string{"INDEXER_SCAN_URL": "", "INDEXER_SCAN_TOKEN_FILE": ""}, run()...)
	require.NoError(t, err, "an empty value is none")

	var job jobFlags
	err = parseInto(t, &job, map[string]string{"INDEXER_SCAN_URL": "https://scan"}, databaseFlag)
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, "--ledger-url is missing", "a snapshot is of a participant")
}

// Validate of an embedded struct is called, whatever stands beside it.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args    []string
		environ map[string]string
		says    string
	}{
		"no command":              {nil, nil, `expected one of "run"`},
		"unknown command":         {[]string{"rum"}, nil, "rum"},
		"unknown flag":            {run("--party=x"), nil, "unknown flag --party"},
		"no database":             {[]string{"run", ledgerFlag}, nil, "--database-url is missing"},
		"an empty database":       {[]string{"run", ledgerFlag}, map[string]string{"INDEXER_DATABASE_URL": ""}, "--database-url is missing"},
		"a database that is none": {[]string{"run", "--database-url=nonsense", ledgerFlag}, nil, "--database-url must be of the form postgres://"},
		"an @ in a password": {[]string{"run", ledgerFlag}, map[string]string{"INDEXER_DATABASE_URL": "postgres://joe:hun@ter2@host/db"},
			"--database-url must be of the form postgres://"},
		"an @ and a # in a password": {[]string{"run", ledgerFlag}, map[string]string{"INDEXER_DATABASE_URL": "postgres://joe:hun@ter#2@host/db"},
			"--database-url must be of the form postgres://"},
		"an @ at the end of a password": {[]string{"run", ledgerFlag}, map[string]string{"INDEXER_DATABASE_URL": "postgres://joe:hunter2@@h1,h2/db?sslmode=disable"},
			"--database-url must be of the form postgres://"},
		"no database to migrate":    {[]string{"migrate"}, nil, "--database-url is missing"},
		"nothing to read":           {[]string{"run", databaseFlag}, nil, "--ledger-url and --scan-url are both missing"},
		"empty URLs":                {[]string{"run", databaseFlag}, map[string]string{"INDEXER_LEDGER_URL": "", "INDEXER_SCAN_URL": ""}, "both missing"},
		"a Scan that is none":       {run("--scan-url=scan:8080"), nil, "--scan-url must be of the form http://"},
		"one Scan twice":            {run("--scan-url=https://scan,https://scan"), nil, "--scan-url names one Scan service twice"},
		"one Scan in two ways":      {run("--scan-url=https://scan/api", "--scan-url=HTTPS://Scan/api/"), nil, "--scan-url names one Scan service twice"},
		"a second Scan is none":     {run("--scan-url=https://scan", "--scan-url=scan:8080"), nil, "--scan-url must be of the form http://"},
		"more agree than there are": {run("--scan-url=https://a,https://b", "--scan-agree=3"), nil, "--scan-agree must be from 1 to the number of services that --scan-url names, which is 2"},
		"a Scan's key alone":        {run("--scan-url=https://scan", "--scan-key-file=k"), nil, "--scan-cert-file is missing"},
		"a ledger that is none":     {[]string{"run", databaseFlag, "--ledger-url=participant:7575"}, nil, "--ledger-url must be of the form http://"},
		"a ledger without a host":   {[]string{"run", databaseFlag, "--ledger-url=https:///x"}, nil, "--ledger-url must be of the form http://"},
		"shape":                     {run("--shape=both"), nil, `--shape must be one of "acs-delta","ledger-effects" but got "both"`},
		"shape of the environment":  {run(), map[string]string{"INDEXER_SHAPE": "both"}, `--shape must be one of`},
		"log format":                {run("--log-format=xml"), nil, `--log-format must be one of "text","json"`},
		"log level":                 {run("--log-level=all"), nil, `--log-level must be one of "debug","info","warn","error"`},
		"start":                     {run("--start=beginning"), nil, `--start: start must be genesis, latest or an offset of at least 0, not "beginning"`},
		"template":                  {run("--templates=#a:M"), nil, `--templates: not an identifier of the form package:Module:Entity: "#a:M"`},
		"interface":                 {run("--interfaces=#a:M:I,b"), nil, `--interfaces: not an identifier`},
		"an empty party":            {run("--parties=a,,b"), nil, `--parties: there must be a name between two commas`},
		"a space before a party":    {run("--parties=a, b"), nil, `--parties: there must be a name between two commas and no space around it, not " b"`},
		"a space after a template":  {run("--templates=#a:M:T ,#a:M:U"), nil, `--templates: there must be`},
		"not a boolean":             {run(), map[string]string{"INDEXER_BLOBS": "maybe"}, "INDEXER_BLOBS"},
		"a lookup rate below none":  {run("--lookup-rate=-1"), nil, `--lookup-rate must be 0 to 100 a second, not -1`},
		"a lookup rate too high":    {run("--lookup-rate=101"), nil, `--lookup-rate must be 0 to 100`},
		"a lookup rate of nothing":  {run(), map[string]string{"INDEXER_LOOKUP_RATE": "some"}, `--lookup-rate`},
		"too short an interval":     {run("--packages-interval=10ms"), nil, `--packages-interval must be at least 1s, or 0 for never, not 10ms`},
		"no port":                   {run("--listen=foo"), nil, `--listen: address foo: missing port`},
		"a port that is none":       {run("--listen=:99999"), nil, `--listen: address :99999: `},
		"a negative interval":       {run("--packages-interval=-1m"), nil, `--packages-interval must be at least 1s`},
		"an interval without unit":  {run("--packages-interval=10"), nil, `--packages-interval`},
		"a verify rate below none":  {run("--verify-rate=-1"), nil, `--verify-rate must be 0 to 100000 a second, not -1`},
		"a verify rate too high":    {run("--verify-rate=100001"), nil, `--verify-rate must be 0 to 100000`},
		"an empty boolean":          {run(), map[string]string{"INDEXER_TOPOLOGY": ""}, "INDEXER_TOPOLOGY"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseDaemon(t, c.environ, c.args...)
			var usage *UsageError
			require.ErrorAs(t, err, &usage)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "(see program --help)")
		})
	}
	for name, value := range map[string]string{"negative": "-1", "not a number": "ten", "empty": "", "too large": "9223372036854775808"} {
		t.Run("offset, "+name, func(t *testing.T) {
			var job jobFlags
			err := parseInto(t, &job, map[string]string{"INDEXER_AT_OFFSET": value}, databaseFlag, ledgerFlag)
			var usage *UsageError
			require.ErrorAs(t, err, &usage)
			require.ErrorContains(t, err, "--at-offset")
		})
	}
}

func TestUnknownVariablesAreRefusedWithTheNearest(t *testing.T) {
	t.Parallel()
	_, err := parseDaemon(t, map[string]string{"INDEXER_PARTY": "top secret"}, run()...)
	var usage *UsageError
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, "environment variable INDEXER_PARTY is not a setting: did you mean INDEXER_PARTIES or INDEXER_")
	require.Equal(t, mostNearest, strings.Count(err.Error(), " or ")+1, err)
	require.NotContains(t, err.Error(), "top secret")

	_, err = parseDaemon(t, map[string]string{"INDEXER_PARTY": ""}, run()...)
	require.ErrorAs(t, err, &usage, "an empty one is misspelt too")
	_, err = parseDaemon(t, map[string]string{"INDEXER_SOMETHING_ELSE": "1"}, run()...)
	require.ErrorContains(t, err, "environment variable INDEXER_SOMETHING_ELSE is not a setting; `indexer config` lists the settings")
}

// A Kubernetes service called indexer, or indexer-something, brings variables of its own.
func TestVariablesOfAServiceAreNoSettings(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"INDEXER_SERVICE_HOST": "10.0.0.7", "INDEXER_SERVICE_PORT": "8080", "INDEXER_SERVICE_PORT_HTTP": "8080",
		"INDEXER_PORT": "tcp://10.0.0.7:8080", "INDEXER_PORT_8080_TCP": "tcp://10.0.0.7:8080", "INDEXER_PORT_8080_TCP_ADDR": "10.0.0.7",
		"INDEXER_PORT_8080_TCP_PORT": "8080", "INDEXER_PORT_8080_TCP_PROTO": "tcp", "INDEXER_DB_SERVICE_HOST": "10.0.0.8",
		"INDEXER_DB_PORT": "tcp://10.0.0.8:5432",
	} {
		require.NoError(t, refuseUnknown([]string{name + "=" + value}), name)
	}
	for _, entry := range []string{"INDEXER_PORT=8080", "INDEXER_LISTEN_PORT=8080", "INDEXER_SERVICE=x", "INDEXER_SERVICE_HOSTS=x"} {
		require.Error(t, refuseUnknown([]string{entry}), entry)
	}
	require.NoError(t, refuseUnknown([]string{"PATH=/bin", "INDEXERS=1", "=odd", ""}))
}

func TestAPasswordOnTheCommandLineIsRefusedAndNotRepeated(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"assigned":            {"run", "--database-url=postgres://u:hunter2@h/d", ledgerFlag},
		"separate":            {"run", "--database-url", "postgres://u:hunter2@h/d", ledgerFlag},
		"with a slash":        {"run", "--database-url=postgres://u:hunter2/x@h/d", ledgerFlag},
		"with a percent":      {"run", "--database-url=postgres://u:hunter2%zz@h/d", ledgerFlag},
		"with a space":        {"run", "--database-url=postgres://u:hunter2 x@h/d", ledgerFlag},
		"as a parameter":      {"run", "--database-url=postgres://u@h/d?password=hunter2", ledgerFlag},
		"for a key":           {"run", "--database-url=postgres://u@h/d?sslpassword=hunter2", ledgerFlag},
		"as a keyword":        {"run", "--database-url=host=h password=hunter2", ledgerFlag},
		"as a spaced keyword": {"run", "--database-url", "host=h PASSWORD = 'hunter2'", ledgerFlag},
		"for the ledger":      {"run", databaseFlag, "--ledger-url=https://u:hunter2@h"},
		"for the Scan":        {"run", databaseFlag, "--scan-url", "https://u:hunter2@h"},
		"cut off, a port":     {"run", ledgerFlag, "--database-url=postgres://u:1/hunter2@h/d"},
		"cut off, a query":    {"run", ledgerFlag, "--database-url=postgres://u:1?hunter2@h/d"},
		"cut off, a fragment": {"run", ledgerFlag, "--database-url=postgres://u:#hunter2@h/d"},
		"for the ledger, cut": {"run", databaseFlag, "--ledger-url=https://u:1/hunter2@h"},
		"a flag forgotten":    {"run", ledgerFlag, "postgres://u:hunter2@h/d"},
		"a flag misspelt":     {"run", ledgerFlag, "--database-ulr=postgres://u:hunter2@h/d"},
		"a hyphen forgotten":  {"run", ledgerFlag, "-database-url=postgres://u:hunter2@h/d"},
		"no command":          {"postgres://u:hunter2@h/d"},
	} {
		var flags daemonFlags
		_, err := parse(&flags, "program", "", args, nil, io.Discard)
		var usage *UsageError
		require.ErrorAs(t, err, &usage, name)
		require.ErrorContains(t, err, "has a password in it", name)
		variable := map[string]string{"for the ledger": "INDEXER_LEDGER_URL", "for the ledger, cut": "INDEXER_LEDGER_URL", "for the Scan": "INDEXER_SCAN_URL"}[name]
		require.ErrorContains(t, err, "give the URL in "+variable, name)
		require.Equal(t, variable == "", strings.Contains(err.Error(), "INDEXER_DATABASE_URL"), name)
		require.NotContains(t, err.Error(), "hunter2", name)
	}
	for _, text := range []string{"postgres://u@h/d", "host=h user=u", "https://h/a@b", "https://h:7575/a", "alice::1220ab", "#a:M:T", "/run/token", "http://[::1]:7575"} {
		require.False(t, hasPassword(text), text)
	}
}

// Not even where the variable that holds it is what is wrong.
func TestAPasswordInTheEnvironmentIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		"postgres://u:hunter2@h:port/d", "postgres://u:hunter2%zz@h/d", "postgres://u:hunter2/x@h/d", "host=h password=hunter2 port=x",
		"postgres://u:1/hunter2@h/d", "postgres://u:p@q/hunter2@h/d", "postgresq://u:hunter2@h/d", "hunter2",
	} {
		_, err := parseDaemon(t, map[string]string{"INDEXER_DATABASE_URL": value}, "run", ledgerFlag)
		require.ErrorContains(t, err, "--database-url must be of the form", value)
		require.NotContains(t, err.Error(), "hunter2", value)
		_, err = parseDaemon(t, map[string]string{"INDEXER_DATABASE_URL": "postgres://h/d", "INDEXER_LEDGER_URL": value}, "run")
		require.ErrorContains(t, err, "--ledger-url must be of the form", value)
		require.NotContains(t, err.Error(), "hunter2", value)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	_, err := parse(&daemonFlags{}, "program", "Does things.", []string{"run", "--help"}, nil, &out)
	require.ErrorIs(t, err, ErrHelp)
	for _, text := range []string{"Default: genesis", "Default: 127.0.0.1:8080", "--database-url=URL", "$INDEXER_DATABASE_URL", "--[no-]topology", "$INDEXER_UNTIL_CURRENT"} {
		require.Contains(t, strings.Join(strings.Fields(out.String()), " "), text)
	}
}

func TestOnlyTheEnvironmentThatIsGivenCounts(t *testing.T) {
	t.Setenv("INDEXER_START", "latest")
	t.Setenv("INDEXER_SHAPE", "odd")
	t.Setenv("INDEXER_TOPOLOGY", "odd")
	flags, err := parseDaemon(t, map[string]string{"INDEXER_PARTIES": "", "INDEXER_LOOKUP_RATE": "7"}, run()...)
	require.NoError(t, err)
	require.Equal(t, "genesis", flags.Run.Start)
	require.True(t, flags.Run.Topology)
	require.Equal(t, 7, flags.Run.LookupRate)
	require.Nil(t, flags.Run.Parties)
	_, err = parseDaemon(t, map[string]string{"INDEXER_LOOKUP_RATE": "odd"}, run("--lookup-rate=7")...)
	require.ErrorContains(t, err, `--lookup-rate: `, "also where it does not count")
	require.ErrorContains(t, err, `(from envar INDEXER_LOOKUP_RATE="odd")`)
}

// A parser has nothing left of the command line before.
func TestAParserParsesAgain(t *testing.T) {
	t.Parallel()
	var flags daemonFlags
	again, err := NewParser(&flags, "program", "Does things.")
	require.NoError(t, err)
	for _, c := range []struct{ args, environ []string }{
		{run("--parties=a,b", "--no-topology", "--blobs", "--log-level=debug"), []string{"INDEXER_START=latest", "INDEXER_LISTEN="}},
		{run(), nil}, {[]string{"run"}, nil}, {[]string{"run", "--help"}, nil}, {[]string{"--help"}, nil}, {run("--parties=c"), []string{"INDEXER_LOOKUP_RATE=odd"}},
		{[]string{"run"}, []string{"INDEXER_DATABASE_URL=postgres://h/d", "INDEXER_LEDGER_URL=http://h", "INDEXER_PARTIES=d,e"}}, {[]string{"run"}, nil},
		{[]string{"migrate"}, nil}, {[]string{"migrate", databaseFlag}, nil}, {[]string{"migrate"}, nil}, {nil, nil}, {run("--shape=odd"), nil}, {run("--start=5"), nil},
	} {
		var fresh daemonFlags
		var printed, printedAgain bytes.Buffer
		_, want := parse(&fresh, "program", "Does things.", c.args, c.environ, &printed)
		_, err := again.Parse(c.args, c.environ, &printedAgain)
		require.Equal(t, want == nil, err == nil, "%v: %v, %v", c.args, want, err)
		if want != nil {
			require.EqualError(t, err, want.Error())
		} else {
			require.Equal(t, fresh.Run, flags.Run)
			require.Equal(t, fresh.Migrate, flags.Migrate)
			require.Equal(t, fresh.Log, flags.Log)
		}
		require.Equal(t, printed.String(), printedAgain.String())
	}

	var required struct {
		Reset struct {
			ToOffset int64  `required:""`
			Why      string `arg:""`
		} `cmd:""`
	}
	again, err = NewParser(&required, "program", "Does things.")
	require.NoError(t, err)
	_, err = again.Parse([]string{"reset", "--to-offset=5", "why"}, nil, io.Discard)
	require.NoError(t, err)
	_, err = again.Parse([]string{"reset", "why"}, nil, io.Discard)
	require.ErrorContains(t, err, "missing flags: --to-offset")
	_, err = again.Parse([]string{"reset", "--to-offset=5"}, nil, io.Discard)
	require.ErrorContains(t, err, `expected "<why>"`)
}
