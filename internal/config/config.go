// Package config turns flags, environment and a file into typed configuration, which the commands share. The variable
// of --ledger-url is INDEXER_LEDGER_URL. Secrets never come from a flag: tokens, client secrets and keys come from
// files, passwords from a URL's environment variable or a pgpass file.
package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/base/access"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// Database selects the database.
type Database struct {
	DatabaseURL string `required:"" placeholder:"URL" help:"PostgreSQL database, postgres://user@host/name. Put a password into the environment variable or a pgpass file, not on the command line." group:"Database:"`
	Schemas     `group:"Database:"`
}

// FromDatabase names the database from which a setup is copied.
type FromDatabase struct {
	FromDatabaseURL string `required:"" placeholder:"URL" help:"The database that has it, postgres://user@host/name, with the same --tables-schema and --views-schema. A password goes into its environment variable or a pgpass file." group:"Database:"`
}

// Schemas selects one of several ledgers in one database.
type Schemas struct {
	TablesSchema string `default:"indexer" placeholder:"NAME" help:"Schema of the indexer's tables in the database: each ledger in it has a pair of schemas of its own. Default: ${default}."`
	ViewsSchema  string `default:"ledger" placeholder:"NAME" help:"Schema of what analysts read, beside --tables-schema. Default: ${default}."`
	Network      bool   `env:"-" help:"The schemas of the updates of a network, network_indexer and network, in place of those two."`
}

// Domain returns the names as the store's type.
func (s Schemas) Domain() store.Schemas {
	if s.Network {
		return NetworkSchemas
	}
	return store.Schemas{Tables: s.TablesSchema, Views: s.ViewsSchema}
}

// OfNetwork reports whether they are the pair of the updates of a network.
func (s Schemas) OfNetwork() bool { return s.Domain().OfNetwork() }

// Store returns how this process opens the database.
func (d Database) Store(logger *slog.Logger) store.Config {
	return StoreOf(d.DatabaseURL, d.Schemas.Domain(), logger)
}

// Open opens a database whose schema is that of this program.
func (d Database) Open(ctx context.Context, logger *slog.Logger) (*store.Store, error) {
	db, err := store.Open(d.Store(logger))
	if err != nil {
		return nil, &UsageError{Err: err}
	}
	if err := db.CheckSchema(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// StoreOf returns how this process opens a pair of schemas.
func StoreOf(databaseURL string, schemas store.Schemas, logger *slog.Logger) store.Config {
	cfg := store.Config{URL: databaseURL, Schemas: schemas, Logger: logger, Holder: Holder()}
	if schemas == NetworkSchemas {
		cfg.OffsetsPerUpdate = networkOffsets
		cfg.Backfill = "backfill network"
	}
	return cfg
}

// Validate refuses names that a pair of schemas can't have.
func (s Schemas) Validate() error {
	if err := s.Domain().Validate(); err != nil {
		return fmt.Errorf("--tables-schema and --views-schema: %w", err)
	}
	return nil
}

// Ledger selects the participant.
type Ledger struct {
	LedgerURL    string        `required:"" placeholder:"URL" help:"Base URL of the participant's JSON Ledger API, such as https://participant.example.com:7575." group:"Participant:"`
	LedgerAccess access.Config `embed:"" prefix:"ledger-" group:"Participant:"`
}

// Admin holds the credentials to change the participant itself. The daemon never does.
type Admin struct {
	AdminTokenFile string `placeholder:"FILE" help:"File that holds the bearer token of a participant administrator, sent instead of the ledger's. Only the commands about packages use it." group:"Participant:"`
}

// Scan selects Scan services of one network. All get the same credentials.
type Scan struct {
	ScanURL    []string      `sep:"," placeholder:"URL" help:"Base URL of the Scan service, such as https://scan.example.com/api/scan. Several, separated by commas or in several flags, are alternatives." group:"Scan service:"`
	ScanAgree  int           `default:"1" placeholder:"N" help:"How many of the Scan services have to give the same answer before updates are used. Default: ${default}." group:"Scan service:"`
	ScanAccess access.Config `embed:"" prefix:"scan-" group:"Scan service:"`
}

// Sources selects what is read: a participant, a Scan service, or both.
type Sources struct {
	LedgerURL    string        `placeholder:"URL" help:"Base URL of the participant's JSON Ledger API, such as https://participant.example.com:7575; empty: no updates are read." group:"Participant:"`
	LedgerAccess access.Config `embed:"" prefix:"ledger-" group:"Participant:"`
	ScanURL      []string      `sep:"," placeholder:"URL" help:"Base URL of a Scan service, such as https://scan.example.com/api/scan; empty: nothing is read from one. Several, separated by commas or in several flags, are alternatives for the updates of a network." group:"Scan service:"`
	ScanAgree    int           `default:"1" placeholder:"N" help:"How many of the Scan services have to give the same answer before updates of a network are used. Default: ${default}." group:"Scan service:"`
	ScanAccess   access.Config `embed:"" prefix:"scan-" group:"Scan service:"`
}

// Ledger returns what concerns the participant.
func (s Sources) Ledger() Ledger { return Ledger{LedgerURL: s.LedgerURL, LedgerAccess: s.LedgerAccess} }

// Scan returns what concerns the Scan service.
func (s Sources) Scan() Scan {
	return Scan{ScanURL: s.ScanURL, ScanAgree: s.ScanAgree, ScanAccess: s.ScanAccess}
}

// NetworkSchemas are the pair of schemas of the updates of a network.
var NetworkSchemas = store.NetworkSchemas

// networkOffsets is about how many offsets go by from one update of a network to the next: they are microseconds.
const networkOffsets = 1_000_000

// Contracts selects the contracts to read.
type Contracts struct {
	Parties    []string `sep:"," placeholder:"PARTY" help:"Parties to read as. Default: any party, which needs the right to read as any." group:"What to read of the ledger:"`
	Templates  []string `sep:"," placeholder:"TEMPLATE" help:"Templates to read, #package-name:Module:Entity. Default: all." group:"What to read of the ledger:"`
	Interfaces []string `sep:"," placeholder:"INTERFACE" help:"Interfaces whose views are read, #package-name:Module:Entity." group:"What to read of the ledger:"`
	Blobs      bool     `help:"Read created-event blobs." group:"What to read of the ledger:"`
}

// Scope selects what to read of the ledger.
type Scope struct {
	Contracts     `group:"What to read of the ledger:"`
	Shape         string `enum:"acs-delta,ledger-effects" default:"ledger-effects" help:"Transaction shape: ledger-effects (exercises too: choices, who acted, results, why tokens moved) or acs-delta (creations and archivals only), which is smaller; another one later needs another database. Default: ${default}." group:"What to read of the ledger:"`
	Reassignments bool   `default:"true" negatable:"" help:"Read reassignments." group:"What to read of the ledger:"`
	Topology      bool   `default:"true" negatable:"" help:"Read topology events." group:"What to read of the ledger:"`
}

// Log holds the settings of the log, which goes to standard error.
type Log struct {
	LogFormat string `enum:"text,json" default:"text" help:"text or json."`
	LogLevel  string `enum:"debug,info,warn,error" default:"info" help:"debug, info, warn or error."`
}

// Run holds the settings of the daemon.
type Run struct {
	Start        string        `default:"genesis" placeholder:"WHERE" help:"Where to begin in a database without a checkpoint: genesis, latest or an offset. Default: ${default}." group:"Beginning and end:"`
	UntilCurrent bool          `help:"Stop when everything up to where each stream ended at the start is committed, and look-ups, packages, types, pruning and verification have done what that left them. Where another process leads, it ends with exit code 3." group:"Beginning and end:"`
	Timeout      time.Duration `default:"24h" placeholder:"TIME" help:"With --until-current: end after this time, with exit code 4 and what is missing; what is stored stays, and the next run continues. 0: no limit. Default: ${default}." group:"Beginning and end:"`
	Migrate      string        `enum:"auto,check,off" default:"auto" help:"An older schema of the database, at the start: auto (bring it up to date), check (refuse it) or off (wait until indexer migrate has brought it up to date). Default: ${default}." group:"Database:"`
	ChangeScope  bool          `help:"Put the scope of these flags in force where the database holds another one: it may add and take away parties, templates and interfaces." group:"What to read of the ledger:"`

	Listen     string   `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address of the status page, /healthz, /readyz and /metrics; empty: none. Default: ${default}." group:"Observing:"`
	PageListen string   `placeholder:"HOST:PORT" help:"Address of the status page, apart from --listen; empty: that one." group:"Observing:"`
	PageHosts  []string `sep:"," placeholder:"NAME" help:"Names of hosts by which the status page may be asked for, beside addresses and localhost." group:"Observing:"`

	ScanHistory ScanHistory `default:"updates" enum:"updates,transactions" help:"What is read from the Scan service: updates (those of the network, into the schema network) or transactions (the transaction history, of Splice up to 0.6). Default: ${default}." group:"Scan service:"`

	LookupRate       int           `default:"5" placeholder:"N" help:"Look up at most this many contracts from before the start per second; 0: none. Default: ${default}." group:"Beside the stream:"`
	PackagesInterval time.Duration `default:"10m" placeholder:"TIME" help:"How often the vetted packages are read; 0: never. Default: ${default}." group:"Beside the stream:"`
	Retention        `group:"Retention:"`
	VerifyRate       int `default:"500" placeholder:"N" help:"Read at most this many updates, and records of the transaction history, per second again and compare them with the stored rows; 0: none. Default: ${default}." group:"Beside the stream:"`
}

// Retention says what the daemon keeps.
type Retention struct {
	Retain                Age    `placeholder:"AGE" help:"Prune, once a day, the updates that were recorded this long before the last one, such as 400d; what was active then stays. Default: everything is kept."`
	RetainExported        string `placeholder:"DIR|URL" help:"With --retain: of the participant's updates prune only what the export in this folder, or at s3://bucket/prefix, holds, whose files are there with the sizes that their manifests say. Default: no export is asked."`
	RetainExportedNetwork string `placeholder:"DIR|URL" help:"The same for the updates of the network, with their own export. Where only one of both is given, the other updates are not pruned."`
}

// Validate refuses an export that is to be asked of nothing.
func (r Retention) Validate() error {
	if r.Retain == 0 && (r.RetainExported != "" || r.RetainExportedNetwork != "") {
		return errors.New("--retain-exported and --retain-exported-network say what --retain may prune: give --retain too")
	}
	return nil
}

// RequestLimits limits the requests of a program to the participant.
type RequestLimits struct {
	MaxRequests int     `default:"8" placeholder:"N" help:"Most requests to the participant in flight; waiting for news does not count. There are fewer while it is slow or refuses some. Default: ${default}." group:"Participant:"`
	MaxRate     float64 `default:"0" placeholder:"N" help:"Most requests to the participant per second; 0: no limit. Default: ${default}." group:"Participant:"`
}

// Profile holds the settings of the profiles for go tool pprof.
type Profile struct {
	Pprof string `placeholder:"HOST:PORT" help:"Loopback address of profiles for go tool pprof, such as 127.0.0.1:6060; empty: none." group:"Observing:"`
}

// Traces says where traces are sent.
type Traces struct {
	OTLPEndpoint string `name:"otlp-endpoint" env:"INDEXER_OTLP_ENDPOINT" placeholder:"URL" help:"Base URL of an OpenTelemetry collector, such as http://127.0.0.1:4318, which gets a trace of each batch by OTLP over HTTP; empty: none." group:"Observing:"`
}

// Snapshot holds the settings of the backfill of a snapshot.
type Snapshot struct {
	AtOffset *int64 `placeholder:"OFFSET" help:"Offset of the snapshot. Default: the ledger's end, or the offset of an unfinished snapshot."`
	Restart  bool   `help:"Drop an unfinished snapshot and begin again."`
}

// Files selects the bulk files of a network.
type Files struct {
	Files string `env:"-" placeholder:"DIR" help:"Read the updates from the bulk files in this folder, after downloading those that it lacks from the Scan service if --scan-url is given."`
}

// Verify holds the settings of a verification.
type Verify struct {
	All     bool   `env:"-" help:"Read everything again, from the lowest offset that the participant still serves."`
	From    *int64 `env:"-" placeholder:"OFFSET" help:"Read the updates after this offset again. Default: where the database begins, if --to is given."`
	To      *int64 `env:"-" placeholder:"OFFSET" help:"Read the updates up to this offset again. Default: the watermark, if --from is given."`
	Sample  int    `env:"-" default:"20" placeholder:"N" help:"Without --all, --from and --to: read this many pages of updates at random offsets again. Default: ${default}."`
	Seed    uint64 `env:"-" placeholder:"N" help:"Choose the same random offsets as an earlier verification."`
	Offline bool   `env:"-" help:"Read nothing from the ledger: compare what was sealed with its digests."`
	Repair  bool   `env:"-" help:"Write again what differs, also while the indexer runs."`
}

// Logger returns a logger that writes records of the level or above to w.
func (l Log) Logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.LogLevel)); err != nil {
		panic(err) // the flag's enum allows no other level
	}
	options := &slog.HandlerOptions{Level: level}
	if l.ForPrograms() {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// ForPrograms reports whether the log is for programs (JSON).
func (l Log) ForPrograms() bool { return l.LogFormat == "json" }

// Domain returns the scope as the domain's type.
func (s Scope) Domain() ledger.Scope {
	return ledger.Scope{
		Parties: s.Parties, Templates: s.Templates, Interfaces: s.Interfaces, Shape: ledger.Shape(s.Shape), Blobs: s.Blobs,
		Reassignments: s.Reassignments, Topology: s.Topology,
	}
}

// Validate refuses an invalid URL, without repeating it, because it may contain a password, and what Schemas refuses.
func (d Database) Validate() error {
	if d.DatabaseURL == "" { // given, but empty: pgx would use the database of the PG* variables
		return errors.New("--database-url is missing")
	}
	if err := CheckDatabaseURL(d.DatabaseURL); err != nil {
		return err
	}
	return d.Schemas.Validate()
}

// CheckDatabaseURL refuses a connection string that can't be used. The error does not repeat it, because it may contain
// a password. It is a *ledger.Problem where a file that it names, such as of certificates, can't be read.
func CheckDatabaseURL(text string) error {
	_, err := pgconn.ParseConfig(text)
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return &ledger.Problem{
			What: "a file that --database-url names can't be read", Err: file,
			Do: "put it there, readable for this user, or correct sslrootcert, sslcert or sslkey in --database-url, and start " +
				"again",
		}
	}
	parsed, failed := url.Parse(text)
	isURL := failed == nil && strings.Contains(text, "://")
	cut := isURL && (parsed.User == nil && passwordInNoURL.MatchString(text) || strings.Contains(parsed.EscapedPath(),
		"@"))
	// What connects takes the first @ for the end of the password, and prints what follows as the host.
	address, _, _ := strings.Cut(text, "?")
	cut = cut || strings.Contains(text, "://") && strings.Count(address, "@") > 1
	if err != nil || cut { // at a character of the password
		return errors.New("--database-url must be of the form postgres://user@host:port/database, or keywords and values " +
			"as libpq takes them; in a URL / ? # and @ of a password are written as %2F %3F %23 and %40")
	}
	return nil
}

// Validate refuses an invalid URL, without repeating it, and access flags that contradict each other. The files are
// read later.
func (l Ledger) Validate() error {
	if l.LedgerURL == "" {
		return errors.New("--ledger-url is missing")
	}
	return checkServer("ledger", l.LedgerURL, l.LedgerAccess)
}

// Validate checks each service as Ledger's does, and that enough are there to agree.
func (s Scan) Validate() error {
	named := map[string]bool{}
	for _, address := range s.ScanURL {
		if err := checkServer("scan", address, s.ScanAccess); err != nil {
			return err
		}
		service, err := parseBaseURL("--scan-url", address)
		if err != nil {
			return err
		}
		at := service.Scheme + "://" + strings.ToLower(service.Host) + strings.TrimRight(service.Path, "/")
		if named[at] {
			return errors.New("--scan-url names one Scan service twice, which agrees with itself")
		}
		named[at] = true
	}
	switch {
	case len(s.ScanURL) == 0, s.ScanAgree == 0: // not parsed from flags
	case s.ScanAgree < 0 || s.ScanAgree > len(s.ScanURL):
		return fmt.Errorf("--scan-agree must be from 1 to the number of services that --scan-url names, which is %d",
			len(s.ScanURL))
	}
	return nil
}

// Validate checks Ledger and Scan, if they are configured. One of them must be.
func (s Sources) Validate() error {
	if s.LedgerURL == "" && len(s.ScanURL) == 0 {
		return errors.New("--ledger-url and --scan-url are both missing: give the one whose data is to be read, or both")
	}
	for _, server := range []struct {
		flags, address string
		access         access.Config
	}{{"ledger", s.LedgerURL, s.LedgerAccess}, {"scan", strings.Join(s.ScanURL, ","), s.ScanAccess}} {
		if server.address == "" {
			if flag := given(server.access); flag != "" {
				return fmt.Errorf("--%[1]s-%[2]s is given and --%[1]s-url is not: give the URL too, or leave out what is for it "+
					"(the environment's %[3]s counts too)", server.flags, flag, variableOf(server.flags+"-"+flag))
			}
		}
	}
	if s.LedgerURL != "" {
		if err := checkServer("ledger", s.LedgerURL, s.LedgerAccess); err != nil {
			return err
		}
	}
	return s.Scan().Validate()
}

// given returns the first flag that is set, without its prefix; empty: none.
func given(a access.Config) string {
	for _, setting := range []struct {
		flag  string
		given bool
	}{
		{"token-file", a.TokenFile != ""},
		{"oauth-token-url", a.OAuth.TokenURL != ""},
		{"oauth-client-id", a.OAuth.ClientID != ""},
		{"oauth-client-secret-file", a.OAuth.ClientSecretFile != ""},
		{"oauth-scopes", len(a.OAuth.Scopes) > 0},
		{"oauth-audience", a.OAuth.Audience != ""},
		{"ca-file", a.CAFile != ""},
		{"cert-file", a.CertFile != ""},
		{"key-file", a.KeyFile != ""},
	} {
		if setting.given {
			return setting.flag
		}
	}
	return ""
}

// parseBaseURL parses the base URL of a server. The error does not repeat it: it may contain a password.
func parseBaseURL(flag, address string) (*url.URL, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return nil, fmt.Errorf("%s must be of the form http://host:port/prefix or https://host:port/prefix", flag)
	}
	return parsed, nil
}

func checkServer(flags, address string, cfg access.Config) error {
	if _, err := parseBaseURL("--"+flags+"-url", address); err != nil {
		return err
	}
	cfg.Flags, cfg.URL = flags, address
	return cfg.Check()
}

// Validate refuses malformed names.
func (s Contracts) Validate() error {
	for _, list := range []struct {
		flag  string
		names []string
		check func(name string) error
	}{
		{"--parties", s.Parties, func(string) error { return nil }},
		{"--templates", s.Templates, checkIdentifier},
		{"--interfaces", s.Interfaces, checkIdentifier},
	} {
		for _, name := range list.names {
			if name == "" || strings.TrimSpace(name) != name {
				return fmt.Errorf("%s: there must be a name between two commas and no space around it, not %q", list.flag, name)
			}
			if err := list.check(name); err != nil {
				return fmt.Errorf("%s: %w", list.flag, err)
			}
		}
	}
	return nil
}

func checkIdentifier(name string) error {
	_, err := ledger.ParseTemplateID(name)
	return err
}

// Validate refuses an invalid start, and rates out of range.
func (r Run) Validate() error {
	if _, err := ingest.ParseStart(r.Start); err != nil {
		return fmt.Errorf("--start: %w", err)
	}
	if err := checkAddress(r.Listen); r.Listen != "" && err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if err := checkAddress(r.PageListen); r.PageListen != "" && err != nil {
		return fmt.Errorf("--page-listen: %w", err)
	}
	if r.LookupRate < 0 || r.LookupRate > 100 {
		return fmt.Errorf("--lookup-rate must be 0 to 100 a second, not %d", r.LookupRate)
	}
	if r.VerifyRate < 0 || r.VerifyRate > 100_000 {
		return fmt.Errorf("--verify-rate must be 0 to 100000 a second, not %d", r.VerifyRate)
	}
	if r.PackagesInterval != 0 && r.PackagesInterval < time.Second {
		return fmt.Errorf("--packages-interval must be at least 1s, or 0 for never, not %v", r.PackagesInterval)
	}
	return r.Retention.Validate()
}

// checkAddress checks that an address is a host and a port; both may be empty.
func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if _, err := net.DefaultResolver.LookupPort(context.Background(), "tcp", port); err != nil {
		return fmt.Errorf("address %s: %w", address, err)
	}
	return nil
}

// Validate refuses limits out of range.
func (p RequestLimits) Validate() error {
	if p.MaxRequests < 1 || p.MaxRequests > 32 {
		return fmt.Errorf("--max-requests must be 1 to 32, not %d", p.MaxRequests)
	}
	if math.IsNaN(p.MaxRate) || p.MaxRate < 0 || p.MaxRate > 0 && p.MaxRate < 0.1 {
		return fmt.Errorf("--max-rate must be at least 0.1 a second, or 0 for no limit, not %v", p.MaxRate)
	}
	return nil
}

// Validate refuses an address that other machines could reach: profiles reveal the program's memory.
func (p Profile) Validate() error {
	if p.Pprof == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(p.Pprof)
	if err != nil {
		return fmt.Errorf("--pprof: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--pprof must be an address of this machine only, such as 127.0.0.1:6060, not %q: profiles show "+
			"what is in memory, and there is no login (from elsewhere: ssh -L)", p.Pprof)
	}
	return nil
}

// Validate refuses what is no URL, without repeating it, and one that may contain secrets, which belong into a header.
func (t Traces) Validate() error {
	if t.OTLPEndpoint == "" {
		return nil
	}
	parsed, err := parseBaseURL("--otlp-endpoint", t.OTLPEndpoint)
	switch {
	case err != nil:
		return err
	case parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "":
		return errors.New("--otlp-endpoint must have no user, query or fragment: put credentials into " +
			"OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

// Validate refuses an invalid offset.
func (s Snapshot) Validate() error {
	if s.AtOffset != nil && *s.AtOffset < 0 {
		return fmt.Errorf("--at-offset must be at least 0, not %d", *s.AtOffset)
	}
	return nil
}

// Validate refuses contradictions.
func (v Verify) Validate() error {
	ranged := v.From != nil || v.To != nil
	switch {
	case v.All && ranged:
		return errors.New("--all and a range (--from, --to) exclude each other")
	case v.Offline && (v.Repair || v.All || ranged):
		return errors.New("--offline reads nothing from the ledger, so it goes neither with --repair nor with --all, " +
			"--from or --to")
	case v.From != nil && *v.From < 0:
		return fmt.Errorf("--from must be at least 0, not %d", *v.From)
	case v.To != nil && *v.To < 0:
		return fmt.Errorf("--to must be at least 0, not %d", *v.To)
	case v.From != nil && v.To != nil && *v.From >= *v.To:
		return fmt.Errorf("--from must be less than --to, not %d and %d", *v.From, *v.To)
	case v.Sample < 0 || v.Sample > 1_000_000:
		return fmt.Errorf("--sample must be 0 to 1000000, not %d", v.Sample)
	}
	return nil
}

// Selection returns which updates to read again.
func (v Verify) Selection() audit.Selection {
	return audit.Selection{All: v.All, From: (*ledger.Offset)(v.From), To: (*ledger.Offset)(v.To), Sample: v.Sample,
		Seed: v.Seed}
}

// Offset returns the snapshot's offset; nil if it was not given.
func (s Snapshot) Offset() *ledger.Offset { return (*ledger.Offset)(s.AtOffset) }

// Holder names this process in messages: host and process id.
func Holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s pid %d", host, os.Getpid())
}
