package app

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// onServers is a ledger that servers of several versions index, as the role indexer, in databases that an administrator
// who is no superuser makes as docs/operations.md says. Role analyst reads what one party may see.
type onServers struct {
	ledger    *sandbox.Ledger
	ledgerURL string
	scope     config.Scope
	truth     sandbox.Scope
	party     string
}

// asRole is a URL of a server's database with another user.
func asRole(t *testing.T, server *throwaway.Server, role, database string) string {
	t.Helper()
	u, err := url.Parse(server.URL(database))
	require.NoError(t, err)
	u.User = url.User(role)
	return u.String()
}

// makeDatabase returns the URL of a new database with its owner.
func makeDatabase(t *testing.T, server *throwaway.Server, name string) (owner string) {
	t.Helper()
	execute(t, asRole(t, server, "administrator", "postgres"), "CREATE DATABASE "+name+" OWNER indexer ENCODING 'UTF8' TEMPLATE template0")
	return asRole(t, server, "indexer", name)
}

// requireTruth compares a database, pruned up to a floor, with the ledger.
func (w *onServers) requireTruth(t *testing.T, database string, floor int64) {
	t.Helper()
	truth := w.ledger.Truth(w.truth, w.ledger.End())
	if floor > 0 {
		truth = w.ledger.TruthFromSnapshot(w.truth, floor, w.ledger.End())
	}
	require.Empty(t, sandbox.Diff(truth, relations(t, database)))
}

// requireLimited compares what role analyst sees of the active contracts with what its party may see.
func (w *onServers) requireLimited(t *testing.T, server *throwaway.Server, database string) {
	t.Helper()
	owner := asRole(t, server, "indexer", database)
	all := texts(t, owner, "SELECT contract_id FROM ledger.active_contracts ORDER BY 1")
	may := texts(t, owner, "SELECT contract_id FROM ledger.active_contracts WHERE $1 = ANY (signatories || observers) ORDER BY 1", w.party)
	require.NotEmpty(t, may)
	require.Less(t, len(may), len(all))
	require.Equal(t, may, texts(t, asRole(t, server, "analyst", database), "SELECT contract_id FROM ledger.active_contracts ORDER BY 1"))
}

// mainJob indexes the ledger from its beginning, though the daemon is killed and then the server, repairs damage, lets
// a reader read, and prunes up to the offset that it returns.
func (w *onServers) mainJob(t *testing.T, server *throwaway.Server, database string) (floor int64) {
	t.Helper()
	owner := makeDatabase(t, server, database)
	cfg := indexerFor(owner, w.ledgerURL, w.scope)
	killed := exec.CommandContext(t.Context(), build(t, "indexer"), "run")
	killed.Env = append(os.Environ(), "INDEXER_DATABASE_URL="+owner, "INDEXER_LEDGER_URL="+w.ledgerURL, "INDEXER_LISTEN=",
		"INDEXER_INTERFACES="+strings.Join(w.scope.Interfaces, ","), "INDEXER_BLOBS=true", deltas)
	killed.Stdout, killed.Stderr = t.Output(), t.Output()
	require.NoError(t, killed.Start())
	eventuallyIn(t, owner, "something is stored", "EXISTS (SELECT FROM ledger.updates)")
	w.ledger.Grow(20)
	require.NoError(t, killed.Process.Kill())
	require.Error(t, killed.Wait())

	daemon := startIndexer(t, cfg)
	w.ledger.Grow(20)
	require.NoError(t, server.Restart(t.Context()))
	w.ledger.Grow(20)
	waitFor(t, owner, lastUpdate(w.ledger))
	require.NoError(t, daemon.finish())
	w.requireTruth(t, owner, 0)
	requireVerified(t, owner, w.ledgerURL)

	execute(t, owner, "DELETE FROM indexer.updates WHERE ledger_offset % 20 = 0", "UPDATE indexer.created SET payload = '{}' WHERE ledger_offset % 3 = 2",
		"DELETE FROM indexer.active_contracts WHERE activated_offset % 2 = 1")
	repaired, err := RunVerify(t.Context(), VerifyConfig{
		Database: cfg.Database, Sources: cfg.Sources, Verify: config.Verify{All: true, Repair: true},
	}, testLogger(t), func(audit.Difference) {})
	require.NoError(t, err)
	require.Greater(t, repaired.Differences, int64(3))
	require.Zero(t, repaired.Remaining(true))
	w.requireTruth(t, owner, 0)

	db, err := store.Open(store.Config{URL: owner})
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Grant(t.Context(), store.Reader{Role: "analyst", Parties: []string{w.party}})
	require.NoError(t, err)
	w.requireLimited(t, server, database)

	floor = offsetAfter(w.ledger, w.ledger.Offset(w.ledger.Len()/2))
	prune(t, owner, floor+1)
	requireFloors(t, owner, floor, floor)
	w.requireTruth(t, owner, floor)
	requireVerified(t, owner, w.ledgerURL)
	w.requireLimited(t, server, database)
	return floor
}

// Every PostgreSQL of this machine does the main job, and what the version before holds, dumped and restored, is the
// same ledger and continues.
func TestEveryPostgreSQL(t *testing.T) {
	t.Parallel()
	brief.Long(t, "starts a server of each version")
	installed, err := throwaway.Installed(t.Context())
	require.NoError(t, err)
	if len(installed) < 2 {
		t.Skip("no other version of PostgreSQL is installed than that of all tests; TEST_POSTGRES_BINS lists folders with programs, as PATH does")
	}
	w := &onServers{
		ledger: sandbox.NewLedger(sandbox.Options{Seed: 118, ActiveShare: 0.4}), scope: everything("acs-delta"),
		truth: sandbox.Scope{Shape: sandbox.ACSDelta, Interfaces: sandbox.InterfaceNames(), Blobs: true},
	}
	w.ledger.Grow(100)
	w.ledgerURL = serve(t, w.ledger, sandbox.ServerOptions{Latency: time.Millisecond})
	w.party = partiesOf(w.ledger.Truth(w.truth, w.ledger.End()))[0]
	folder, dump, dumped := t.TempDir(), "", int64(0) // of the version before, and its floor
	for _, programs := range installed {
		t.Run(fmt.Sprint(programs.Version), func(t *testing.T) {
			before, floor := dump, dumped
			dump = ""
			server := throwaway.LocalServer(t, throwaway.Options{Programs: programs.Folder})
			execute(t, server.URL(""), "CREATE ROLE administrator LOGIN CREATEROLE CREATEDB")
			execute(t, asRole(t, server, "administrator", "postgres"), "CREATE ROLE indexer LOGIN", "GRANT indexer TO CURRENT_USER", "CREATE ROLE analyst LOGIN")
			if before != "" {
				restored := makeDatabase(t, server, "restored")
				tool(t, filepath.Join(programs.Folder, "pg_restore"), "--no-owner", "--exit-on-error", "--dbname="+restored, before)
				requireVerified(t, restored, w.ledgerURL)
				w.requireLimited(t, server, "restored")
				w.ledger.Grow(20)
				require.NoError(t, RunIndexer(t.Context(), indexerFor(restored, w.ledgerURL, w.scope), testLogger(t)))
				w.requireTruth(t, restored, floor)
				requireVerified(t, restored, w.ledgerURL)
			}
			floor = w.mainJob(t, server, "ledger")
			file := filepath.Join(folder, fmt.Sprint(programs.Version))
			tool(t, filepath.Join(programs.Folder, "pg_dump"), slices.Concat(dumping, []string{"--file=" + file, asRole(t, server, "indexer", "ledger")})...)
			dump, dumped = file, floor
		})
	}
}
