package store

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/pg"
)

// Connections returns how many connections one process holds at most: four to read, and for each of the streams that it
// writes six to write and one for its lock.
func Connections(streams int) int { return 4 + (leadership.WriterConnections+1)*streams }

// MinServerVersion is the oldest PostgreSQL that will do, as server_version_num has it.
const MinServerVersion = 15_00_00

// Inspector looks at a database for an operator who sets it up, and changes nothing: it reads in read-only
// transactions, takes no lock that a daemon takes, and needs no schema. Close it.
type Inspector struct {
	store *Store
	conn  *pgx.Conn
}

// Inspect connects. Its errors are those of connecting: see *pgconn.ConnectError; none repeats the password.
func (s *Store) Inspect(ctx context.Context) (*Inspector, error) {
	conn, err := s.db.Connect(ctx, s.inspectConfig())
	if err != nil {
		return nil, err
	}
	return &Inspector{store: s, conn: conn}, nil
}

// inspectConfig connects as the daemon's readers do. No statement is prepared by name: where a pooler hands out
// another server session with each transaction, the inspection is to say so rather than to fail of it.
func (s *Store) inspectConfig() *pgx.ConnConfig {
	config := s.db.Conn.Copy()
	config.RuntimeParams["application_name"] = s.checkName()
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.StatementCacheCapacity, config.DescriptionCacheCapacity = 0, 0
	return config
}

func (s *Store) checkName() string { return s.db.Config.Schemas.Program() + " check" }

// Close ends the connection.
func (i *Inspector) Close(ctx context.Context) { pg.Close(ctx, i.conn) }

// read runs fn in a read-only transaction.
func (i *Inspector) read(ctx context.Context, fn func(tx pgx.Tx) error) error {
	tx, err := i.conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer pg.Rollback(ctx, tx)
	return fn(tx)
}

// ServerFacts is what a server is, and what it lets this user do.
type ServerFacts struct {
	Database      string
	User          string
	Superuser     bool
	Version       string // such as 15.4
	VersionNumber int    // such as 150004
	Encoding      string // of the database, such as UTF8
	InRecovery    bool   // a standby: it can't be written
	ReadOnly      bool   // transactions are read-only unless they say otherwise

	MayCreateSchemas bool
	DatabaseOwner    string
	FreeConnections  int // that this user can still make

	Transport  Transport
	ClockAhead time.Duration // the server's clock is ahead of this machine's; negative: behind

	// Settings are those of SettingNames that this server has, as they are in this session.
	Settings map[string]Setting
}

// Transport is how the connection is made, as this end sees it: a pooler may continue otherwise.
type Transport struct {
	Local    bool   // a Unix socket or the loopback interface
	TLS      string // such as "TLS 1.3"; empty: not encrypted
	Verified bool   // the server's certificate is checked
}

// Setting is one of the server's settings.
type Setting struct {
	Value  string // in Unit, where there is one: "-1", "on", "128"
	Unit   string // such as "8kB"
	Source string // where the value comes from: "default", "configuration file", "user", "database"
}

// SettingNames are the settings that Server reads.
var SettingNames = []string{
	"fsync", "full_page_writes", "data_checksums", "synchronous_commit", "autovacuum", "max_connections",
	"max_locks_per_transaction",
	"max_prepared_transactions", "shared_buffers", "max_wal_size", "statement_timeout", "transaction_timeout",
	"default_transaction_isolation", "default_transaction_read_only",
}

// Server returns what the server is.
func (i *Inspector) Server(ctx context.Context) (_ ServerFacts, err error) {
	defer i.store.db.Wrap(&err, "database %s, read what it is", i.store.Address())
	facts := ServerFacts{Database: i.conn.Config().Database, Transport: i.transport(), Settings: map[string]Setting{}}
	err = i.read(ctx, func(tx pgx.Tx) error {
		asked := time.Now()
		row, err := queries.InspectServer(ctx, tx)
		if err != nil {
			return err
		}
		// The answer is as old as half of the way there and back.
		facts.ClockAhead = row.Clock.Time.Sub(asked.Add(time.Since(asked) / 2))
		facts.User, facts.Superuser = row.Username, row.Superuser != nil && *row.Superuser
		facts.Version, facts.VersionNumber, facts.Encoding = row.Version, int(row.VersionNumber), row.Encoding
		facts.InRecovery, facts.ReadOnly = row.InRecovery, row.ReadOnly
		facts.MayCreateSchemas, facts.DatabaseOwner = row.MayCreateSchemas, row.DatabaseOwner
		facts.FreeConnections = int(row.FreeConnections)
		settings, err := queries.InspectSettings(ctx, tx, SettingNames)
		for _, s := range settings {
			facts.Settings[s.Name] = Setting{Value: s.Value, Unit: s.Unit, Source: s.Source}
		}
		return err
	})
	return facts, err
}

func (i *Inspector) transport() Transport {
	var t Transport
	conn := i.conn.PgConn().Conn()
	address := conn.RemoteAddr()
	tcp, ok := address.(*net.TCPAddr)
	t.Local = address != nil && address.Network() == "unix" || ok && tcp.IP.IsLoopback()
	if secure, ok := conn.(*tls.Conn); ok {
		t.TLS = tls.VersionName(secure.ConnectionState().Version)
		// Without a name to compare, a check of the chain may still be pgx's own.
		if config := i.conn.Config().TLSConfig; config != nil {
			t.Verified = !config.InsecureSkipVerify || config.VerifyPeerCertificate != nil || config.VerifyConnection != nil
		}
	}
	return t
}

// SchemaFacts is what there is of the schemas.
type SchemaFacts struct {
	Pair    Schemas      // that was looked for
	Schemas []SchemaFact // of the pair, those that exist
	Foreign string       // a table that belongs to another user; empty: none

	Version int64 // of the schema; 0: none, or it can't be read
	Wanted  int64 // the version that this program needs

	Relations int // tables, partitions and indexes in the schema of the tables
}

// SchemaFact is an existing schema.
type SchemaFact struct {
	Name, Owner string
	Owned       bool // by this user, or by a role that it is in
}

// Schema returns what exists of the schemas.
func (i *Inspector) Schema(ctx context.Context) (SchemaFacts, error) {
	facts := SchemaFacts{Pair: i.store.db.Config.Schemas}
	var err error
	if facts.Wanted, err = SchemaVersion(); err != nil {
		return SchemaFacts{}, err
	}
	err = i.read(ctx, func(tx pgx.Tx) error {
		pair := i.store.db.Config.Schemas
		schemas, err := queries.InspectSchemas(ctx, tx, []string{pair.Tables, pair.Views})
		if err != nil {
			return err
		}
		for _, s := range schemas {
			facts.Schemas = append(facts.Schemas, SchemaFact(s))
		}
		relations, err := queries.InspectRelations(ctx, tx, pair.Tables)
		if err != nil {
			return err
		}
		facts.Relations, facts.Foreign = int(relations.Relations), relations.ForeignRelation
		readable, err := queries.InspectVersionTable(ctx, tx, pair.Tables)
		if err != nil || !readable {
			return err
		}
		facts.Version, err = i.store.schemaVersion(ctx, tx)
		return err
	})
	if err != nil {
		return SchemaFacts{}, fmt.Errorf("database %s, read its schemas: %w", i.store.Address(), err)
	}
	return facts, nil
}
