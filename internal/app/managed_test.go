package app

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

const (
	// dumpVariable names the file that TestManagedPostgreSQL writes a dump to, for the tests of later versions: `make
	// fixture`.
	dumpVariable = "WRITE_DUMP"
	// released are dumps of databases of released schemas, compressed by xz.
	released = "testdata/released/*.xz"
)

// dumping is how dumps are made.
var dumping = []string{"--format=custom", "--compress=0"}

// tool runs one of PostgreSQL's programs, or skips the test where it is not installed.
func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not in PATH (Debian's package postgresql-client)", name)
	}
	said, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	require.NoError(t, err, "%s: %s", name, said)
}

// A managed service gives a role without special rights, standbys to read from, and other servers to move to: the
// daemon runs as the owner of its database, readers read a hot standby, and a dump of the standby, restored into
// another server, is the same ledger and continues.
func TestManagedPostgreSQL(t *testing.T) {
	t.Parallel()
	brief.Long(t, "starts two servers and fills a third")
	l := sandbox.NewLedger(sandbox.Options{Seed: 20})
	l.Grow(60)
	ledgerURL, scope := serve(t, l, sandbox.ServerOptions{}), everything("ledger-effects")
	of := sandbox.Scope{Shape: sandbox.LedgerEffects, Interfaces: sandbox.InterfaceNames(), Blobs: true}
	there := throwaway.Database(t)
	name := texts(t, there, "SELECT current_database()::text")[0]

	primary := throwaway.LocalServer(t, throwaway.Options{})
	require.NoError(t, primary.CreateDatabase(t.Context(), name))
	role, owner := throwaway.Login(t, primary.URL(name), "NOSUPERUSER NOCREATEROLE NOCREATEDB NOREPLICATION NOBYPASSRLS")
	execute(t, primary.URL(name), "GRANT CREATE ON DATABASE "+pgx.Identifier{name}.Sanitize()+" TO "+pgx.Identifier{role}.Sanitize())
	cfg := indexerFor(owner, ledgerURL, scope)
	cfg.ScanURL, cfg.VerifyRate = []string{serveScan(t, sandbox.NewScan(l, sandbox.ScanOptions{}))}, 0
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t))) // migrates
	cfg.VerifyRate = 100_000
	daemon := startIndexer(t, cfg) // one that begins behind nothing new seals at once
	eventuallyIn(t, primary.URL(name), "everything sealed", "coalesce("+allVerified+" AND ledger.verified_seq() > 0, false)")

	if file := os.Getenv(dumpVariable); file != "" {
		tool(t, "pg_dump", append(dumping, "--file="+file, owner)...)
	}

	// Roles for readers are made by an administrator; the owner lets them read.
	readers := map[string]store.Reader{name + "_all": {AllParties: true}, name + "_limited": {Parties: partiesOf(l.Truth(of, l.End()))[:2]}}
	makeReaders := func(administrator string) {
		for reader := range readers {
			execute(t, administrator, "CREATE ROLE "+pgx.Identifier{reader}.Sanitize()+" LOGIN PASSWORD 'secret-of-a-test'")
			t.Cleanup(func() {
				conn, err := pgx.Connect(context.Background(), administrator)
				require.NoError(t, err)
				defer conn.Close(context.Background())
				for _, statement := range []string{"DROP OWNED BY ", "DROP ROLE "} {
					_, err := conn.Exec(context.Background(), statement+pgx.Identifier{reader}.Sanitize())
					require.NoError(t, err)
				}
			})
		}
	}
	makeReaders(primary.URL(name))
	db, err := store.Open(store.Config{URL: owner})
	require.NoError(t, err)
	defer db.Close()
	for reader, grant := range readers {
		grant.Role = reader
		_, err := db.Grant(t.Context(), grant)
		require.NoError(t, err)
	}

	standby := throwaway.Standby(t, primary)
	replica := open(t, standby.URL(name))
	l.Grow(20)
	var here bool
	require.NoError(t, replica.QueryRow(t.Context(), "SELECT ledger.wait_for_offset($1, '5 min') AND pg_is_in_recovery()", lastUpdate(l)).Scan(&here))
	require.True(t, here)
	require.Empty(t, sandbox.Diff(l.Truth(of, l.End()), relations(t, standby.URL(name))))
	standing := &documented{ledger: l, database: standby.URL(name), conn: replica}
	for _, f := range standing.functions(t) {
		var arguments []string
		for _, kind := range f.arguments {
			arguments = append(arguments, hostile[kind][0]+"::"+kind)
		}
		_, _, code := standing.call(t, f, arguments)
		require.NotEqual(t, "25006", code, "%s writes", f.name)
	}
	requireVerified(t, standby.URL(name), ledgerURL)
	require.NoError(t, daemon.finish())
	require.Equal(t, []string{"false"}, texts(t, primary.URL(name), `SELECT bool_or(rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)::text
		FROM pg_roles WHERE rolname = $1`, role))

	// Backup of the standby, and restored into another server by a role without special rights.
	dump := filepath.Join(t.TempDir(), "dump")
	tool(t, "pg_dump", append(dumping, "--file="+dump, standby.URL(name))...)
	makeReaders(there)
	restored := restore(t, there, dump)
	requireVerified(t, restored, ledgerURL)
	l.Grow(20)
	cfg = indexerFor(restored, ledgerURL, scope)
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.Empty(t, sandbox.Diff(l.Truth(of, l.End()), relations(t, restored)))
}

// restore restores a dump into an empty database, as a role that may create schemas there and nothing else, and returns
// its URL.
func restore(t *testing.T, database, dump string) (as string) {
	t.Helper()
	role, as := throwaway.Login(t, database, "")
	execute(t, database, "GRANT CREATE ON DATABASE "+pgx.Identifier{texts(t, database, "SELECT current_database()::text")[0]}.Sanitize()+
		" TO "+pgx.Identifier{role}.Sanitize())
	tool(t, "pg_restore", "--no-owner", "--exit-on-error", "--dbname="+as, dump)
	return as
}

// A database of each released schema, with rows in it, is migrated and verifies clean.
func TestReleasedSchemasAreMigrated(t *testing.T) {
	t.Parallel()
	dumps, err := filepath.Glob(released)
	require.NoError(t, err)
	if len(dumps) == 0 {
		t.Skip("nothing is released yet")
	}
	for _, dump := range dumps {
		t.Run(filepath.Base(dump), func(t *testing.T) {
			t.Parallel()
			plain := filepath.Join(t.TempDir(), "dump")
			tool(t, "sh", "-c", `xz -dc "$0" >"$1"`, dump, plain)
			database := restore(t, throwaway.Database(t), plain)
			require.NoError(t, migrate(t.Context(), database))
			_, err := RunVerify(t.Context(), VerifyConfig{Database: config.Database{DatabaseURL: database}, Verify: config.Verify{Offline: true}},
				testLogger(t), func(d audit.Difference) { t.Errorf("verify --offline: %v", d) })
			require.NoError(t, err)
			require.NotEmpty(t, texts(t, database, "SELECT update_id FROM ledger.updates WHERE kind = 'transaction'"))
		})
	}
}
