package app

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

const often = 20 * time.Millisecond

// requireNoUpdates: the daemon reads what is vetted and never changes it, on no path that a server has.
func requireNoUpdates(t *testing.T, requests *requestCounter) {
	t.Helper()
	require.Positive(t, requests.of("POST /v2/package-vetting/list"))
	for _, operation := range []string{"POST /v2/package-vetting/update", "POST /v2/package-vetting", "PUT /v2/package-vetting/update"} {
		require.Zero(t, requests.of(operation), operation)
	}
}

// vetted is what a participant has vetted by the sandbox's truth, a line for each package.
func vetted(l *sandbox.Ledger) (lines []string) {
	labels := map[string]string{}
	for _, p := range l.Packages() {
		labels[p.ID] = p.Name + " " + p.Version
	}
	bound := func(at *time.Time) string {
		if at == nil {
			return "-"
		}
		return at.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	for _, v := range l.Vetting() {
		if v.Participant != l.ParticipantID() {
			continue
		}
		for _, p := range v.Packages {
			lines = append(lines, strings.Join([]string{v.Synchronizer, strconv.Itoa(int(v.Serial)), p.PackageID, labels[p.PackageID],
				bound(p.ValidFrom), bound(p.ValidUntil)}, " "))
		}
	}
	slices.Sort(lines)
	return lines
}

func vettedRows(t *testing.T, database string) []string {
	t.Helper()
	rows, err := open(t, database).Query(t.Context(), `SELECT concat_ws(' ', synchronizer_id, topology_serial, package_id,
		package_name || ' ' || package_version,
		coalesce(to_char(valid_from AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '-'),
		coalesce(to_char(valid_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '-')) FROM ledger.vetted_packages`)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	slices.Sort(lines)
	return lines
}

// The participant's own packages are followed on both synchronizers, page by page, and each change is kept with its
// serial.
func TestVettedPackagesAreFollowed(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 51})
	l.Grow(20)
	var requests requestCounter
	server := serve(t, l, sandbox.ServerOptions{
		VettingPage: 1, Fault: func(r *http.Request) *sandbox.Fault { requests.note(r); return nil },
	})
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, server, defaultScope())
	cfg.PackagesInterval = often
	daemon := startIndexer(t, cfg)
	first := vetted(l)
	waitUntil(t, database, "count(*) = "+strconv.Itoa(len(first))+" FROM ledger.vetting_changes")
	require.Equal(t, first, vettedRows(t, database))

	state := l.Vetting()[slices.IndexFunc(l.Vetting(), func(v sandbox.Vetting) bool { return v.Participant == l.ParticipantID() })]
	gone, changed := state.Packages[0].PackageID, state.Packages[1].PackageID
	until := time.Date(2040, 5, 6, 7, 8, 9, 123456000, time.UTC)
	state.Packages = state.Packages[1:]
	state.Packages[0].ValidUntil = &until
	state.Serial++
	l.SetVetting(state)
	waitUntil(t, database, "count(*) = "+strconv.Itoa(len(first)+2)+" FROM ledger.vetting_changes")
	require.Equal(t, vetted(l), vettedRows(t, database))
	for id, change := range map[string]string{gone: "unvetted", changed: "changed"} {
		var serial, seq int
		err := open(t, database).QueryRow(t.Context(), `SELECT topology_serial, seq FROM ledger.vetting_changes
					WHERE package_id = $1 AND change = $2 AND synchronizer_id = $3`, id, change, state.Synchronizer).Scan(&serial, &seq)
		require.NoError(t, err)
		require.EqualValues(t, state.Serial, serial)
		require.Equal(t, 2, seq)
	}

	for _, v := range l.Vetting() { // a synchronizer is left, and what others have vetted there is no matter of ours
		if v.Synchronizer == state.Synchronizer && v.Participant == l.ParticipantID() {
			v.Serial = 0
			l.SetVetting(v)
		}
	}
	waitUntil(t, database, "count(DISTINCT synchronizer_id) = 1 FROM ledger.vetted_packages")
	require.Equal(t, vetted(l), vettedRows(t, database))
	require.NoError(t, daemon.finish())

	changes := count(t, database, "ledger.vetting_changes")
	daemon = startIndexer(t, cfg)
	before := requests.of("POST /v2/package-vetting/list")
	eventually(t, "the packages read again and again", func() bool { return requests.of("POST /v2/package-vetting/list") >= before+4 })
	require.NoError(t, daemon.finish())
	require.Equal(t, changes, count(t, database, "ledger.vetting_changes"), "a restart is no change")
	requireNoUpdates(t, &requests)
}

// Where packages can't be read the stream continues, and why is there to be read.
func TestPackagesThatCannotBeReadDoNotHoldUpTheStream(t *testing.T) {
	t.Parallel()
	brief.Long(t, "runs the daemon several times")
	for says, path := range map[string]string{
		"403 Forbidden": "/v2/package-vetting", "does not report its id": "/v2/parties/participant-id",
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			l := sandbox.NewLedger(sandbox.Options{Seed: 52})
			l.Grow(50)
			options := sandbox.ServerOptions{Fault: func(r *http.Request) *sandbox.Fault {
				if strings.HasPrefix(r.URL.Path, path) {
					return &sandbox.Fault{Status: 403, ContentType: "application/json", Body: `{"code":"NA"}`}
				}
				return nil
			}}
			database := throwaway.Migrated(t, migrate)
			cfg := indexerFor(database, serve(t, l, options), defaultScope())
			cfg.PackagesInterval = often
			daemon := startIndexer(t, cfg)
			waitUntil(t, database, "EXISTS (SELECT FROM indexer.tasks WHERE task = 'vetting' AND failure IS NOT NULL)")
			l.Grow(50)
			waitFor(t, database, lastUpdate(l))
			require.NoError(t, daemon.finish())
			var failure string
			require.NoError(t, open(t, database).QueryRow(t.Context(), "SELECT failure FROM indexer.tasks WHERE task = 'vetting'").Scan(&failure))
			require.Contains(t, failure, says)
			require.Zero(t, count(t, database, "ledger.vetted_packages"))
			want := l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End())
			require.Empty(t, sandbox.Diff(want, relations(t, database)))
		})
	}
}

// What the daemon does with the token of a user who may read and nothing else: packages too are listed, and no
// request ever asks for a change.
func TestTheDaemonNeedsNoAdministrator(t *testing.T) {
	t.Parallel()
	brief.Long(t, "runs the daemon several times")
	l, at := middle(53)
	authority := sandbox.NewAuthority(sandbox.AuthorityOptions{ParticipantID: l.ParticipantID()})
	authority.SetUser(sandbox.User{ID: "reader", Rights: []sandbox.Right{sandbox.CanReadAsAnyParty()}})
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(authority.Token("reader")), 0o600))
	var requests requestCounter
	server := serve(t, l, sandbox.ServerOptions{
		Authority: authority, Fault: func(r *http.Request) *sandbox.Fault { requests.note(r); return nil },
	})
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, server, defaultScope())
	cfg.LedgerAccess = access.Config{TokenFile: token}
	cfg.Start, cfg.PackagesInterval, cfg.LookupRate = strconv.FormatInt(at, 10), often, fast
	daemon := startIndexer(t, cfg)
	waitFor(t, database, lastUpdate(l))
	waitUntil(t, database, nothingWanted)
	waitUntil(t, database, "EXISTS (SELECT FROM ledger.vetted_packages)")
	require.NoError(t, daemon.finish())
	require.Equal(t, vetted(l), vettedRows(t, database))
	requireLookedUp(t, truthOfLookups(t, l, sandbox.Scope{Shape: sandbox.ACSDelta}, false, at), lookups(t, database))
	requireNoUpdates(t, &requests)
}
