package app

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// Offset checkpoints move the watermark on behind the last update.
const (
	allVerified = "ledger.verified_offset() >= (SELECT max(ledger_offset) FROM ledger.updates)"
	allSealed   = "EXISTS (SELECT FROM ledger.verifications WHERE stream = 'updates' AND to_inclusive >= (SELECT max(ledger_offset) FROM ledger.updates))"
	differs     = "what is stored differs from what the source shows; `indexer verify --repair` writes it again"
	lacking     = "the source shows values where none is stored, as a participant does that was upgraded since; they are counted as differences, and `indexer verify --repair` writes them"
	hidden      = "the source does not show any more what was not verified yet; it is sealed without being compared"
)

// smallWindow is how many updates a full window of seals has in these tests.
const smallWindow = 200

// sealed is an indexed ledger whose updates are about to be sealed.
type sealed struct {
	*sandbox.Ledger
	t        *testing.T
	database string
	cfg      Indexer
	journal  journal
}

// sealedWorlds are ledgers of so many updates.
var sealedWorlds = map[int]*world{100: toBeSealed(100), 240: toBeSealed(240), 450: toBeSealed(450)}

func toBeSealed(updates int) *world {
	return &world{sandbox.Options{Seed: 61}, updates, everything("ledger-effects"), false}
}

// indexed is a ledger that is indexed to its end, with nothing sealed.
func indexed(t *testing.T, updates int) *sealed {
	t.Helper()
	w := sealedWorlds[updates]
	database, l, ledgerURL := w.indexed(t)
	s := &sealed{t: t, Ledger: l, database: database, cfg: indexerFor(database, ledgerURL, w.scope)}
	s.cfg.sealWindow = smallWindow
	return s
}

// index indexes up to the ledger's end. A daemon that begins afterwards does not wait for more before it seals.
func (s *sealed) index() {
	s.t.Helper()
	cfg := s.cfg
	cfg.VerifyRate = 0
	require.NoError(s.t, RunIndexer(s.t.Context(), cfg, testLogger(s.t)))
}

// sealUntil runs the daemon until a query is true and messages were said.
func (s *sealed) sealUntil(query string, said ...string) {
	s.t.Helper()
	s.cfg.VerifyRate = 100_000
	daemon := startLogged(s.t, s.cfg, s.journal.logger())
	waitUntil(s.t, s.database, query)
	for _, message := range said { // behind the commit, and not at all where the daemon is stopped in between
		s.journal.wait(s.t, message)
	}
	require.NoError(s.t, daemon.finish())
}

// windows lists the result of each window, in order.
func (s *sealed) windows(stream string) (results string) {
	s.t.Helper()
	err := open(s.t, s.database).QueryRow(s.t.Context(),
		"SELECT coalesce(string_agg(result, ' ' ORDER BY from_exclusive), '') FROM ledger.verifications WHERE stream = $1", stream).Scan(&results)
	require.NoError(s.t, err)
	return results
}

func (s *sealed) exec(statement string, args ...any) {
	s.t.Helper()
	tag, err := open(s.t, s.database).Exec(s.t.Context(), statement, args...)
	require.NoError(s.t, err)
	require.Positive(s.t, tag.RowsAffected(), statement)
}

func (s *sealed) holds(query string) {
	s.t.Helper()
	var holds bool
	require.NoError(s.t, open(s.t, s.database).QueryRow(s.t.Context(), "SELECT "+query).Scan(&holds))
	require.True(s.t, holds, query)
}

// damaged is what is found without the ledger.
func (s *sealed) damaged() (list []string) {
	s.t.Helper()
	db, err := store.Open(store.Config{URL: s.database})
	require.NoError(s.t, err)
	defer db.Close()
	err = audit.New(db).CompareSeals(s.t.Context(), func(int64, int64) {}, func(d audit.Difference) { list = append(list, d.String()) })
	require.NoError(s.t, err)
	return list
}

// A redaction takes the seals of what it changes: that is said without the ledger, and is no difference. The daemon
// compares and seals it again, and then all is sealed and equal.
func TestWhatWasRedactedIsSealedAgain(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	s := indexed(t, 450)
	offline := func() string {
		result, err := RunVerify(t.Context(), VerifyConfig{Database: s.cfg.Database, Verify: config.Verify{Offline: true}}, testLogger(t),
			func(d audit.Difference) { t.Error(d) })
		require.NoError(t, err)
		return strings.Join(result.Notes, "\n")
	}
	s.sealUntil(allVerified)
	before := s.windows("updates")
	require.NotContains(t, offline(), "not sealed yet")
	windows := texts(t, s.database, "SELECT from_exclusive || ' up to ' || to_inclusive FROM ledger.verifications WHERE stream = 'updates' ORDER BY from_exclusive")
	for i, window := range windows[:2] {
		from, to, _ := strings.Cut(window, " up to ")
		contract := texts(t, s.database, fmt.Sprintf(`SELECT a.contract_id FROM ledger.archived_events a JOIN ledger.created_events c USING (contract_id)
			WHERE c.ledger_offset > %[1]s AND a.ledger_offset <= %[2]s AND c.payload IS NOT NULL LIMIT 1`, from, to))[0]
		_, err := RunRedact(t.Context(), s.cfg.Database, audit.Redaction{ContractID: contract}, "a test", true, testLogger(t))
		require.NoError(t, err)
		require.Contains(t, offline(), "the updates after offset 0 up to "+strings.Fields(windows[i])[3]+": they are not sealed yet")
	}
	s.sealUntil(allVerified)
	require.Equal(t, before, s.windows("updates"))
	require.NotContains(t, offline(), "not sealed yet")
	require.Empty(t, s.damaged())
}

// Without the ledger, what lies in no sealed window yet is not compared, and that is said.
func TestWhatIsNotSealedIsSaid(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	s := indexed(t, 100)
	offline := func() string {
		result, err := RunVerify(t.Context(), VerifyConfig{Database: s.cfg.Database, Verify: config.Verify{Offline: true}}, testLogger(t),
			func(d audit.Difference) { t.Error(d) })
		require.NoError(t, err)
		return strings.Join(result.Notes[1:], "\n")
	}
	require.Contains(t, offline(), "no window is sealed yet")
	s.sealUntil(allSealed)
	sealedTo := texts(t, s.database, "SELECT max(to_inclusive) FROM ledger.verifications")[0]
	s.Grow(20)
	s.index()
	require.Equal(t, fmt.Sprintf("the updates after offset %s up to %s: they are not sealed yet", sealedTo,
		texts(t, s.database, "SELECT ledger.latest_offset()")[0]), offline())
}

// The daemon seals everything up to the watermark, window by window, and continues where it was ended. What is altered
// later is found in its window, without the ledger.
func TestEverythingIsSealed(t *testing.T) {
	t.Parallel()
	s := indexed(t, 240)
	s.sealUntil("EXISTS (SELECT FROM ledger.verifications)")
	s.Grow(50)
	s.index()
	s.sealUntil(allVerified)
	require.Regexp(t, "^equal( equal)+$", s.windows("updates"))
	s.holds("(SELECT max(to_inclusive - from_exclusive) FROM ledger.verifications) < ledger.latest_offset()")
	s.holds("(SELECT count(*) FROM ledger.updates) = 290")
	require.Empty(t, s.damaged())
	require.Empty(t, s.journal.lines(t, differs))

	s.exec("UPDATE indexer.exercised SET choice_argument = '{}' WHERE (ledger_offset, node_id) = (SELECT ledger_offset, node_id FROM indexer.exercised ORDER BY 1, 2 LIMIT 1)")
	require.Len(t, s.damaged(), 1)
	require.Contains(t, s.damaged()[0], "verifications, stream updates, from_exclusive 0, to_inclusive ")
}

// A server lists a set in any order, and in another one when it is asked again: that is no difference, in updates, a
// snapshot and look-ups.
func TestSetsComeInAnyOrder(t *testing.T) {
	t.Parallel()
	s := &sealed{Ledger: sandbox.NewLedger(sandbox.Options{Seed: 69}), t: t, database: throwaway.Migrated(t, migrate)}
	s.Grow(250)
	scope := everything("ledger-effects")
	s.cfg = indexerFor(s.database, serve(t, s.Ledger, sandbox.ServerOptions{Rewrite: inAnyOrder}), scope)
	s.cfg.sealWindow = smallWindow
	_, err := RunBackfill(t.Context(), backfillFor(s.database, s.cfg.LedgerURL, scope, quietOffset(t, s.Ledger)), testLogger(t), nil)
	require.NoError(t, err)
	s.index()
	s.sealUntil(allSealed)
	require.Regexp(t, "^equal( equal)*$", s.windows("updates"))
	s.holds(allVerified)
	cfg := VerifyConfig{Database: s.cfg.Database, Sources: s.cfg.Sources, Verify: config.Verify{All: true}}
	_, err = RunVerify(t.Context(), cfg, testLogger(t), func(d audit.Difference) { t.Error(d) })
	require.NoError(t, err)
	require.Empty(t, s.journal.lines(t, differs))
	s.holds("NOT EXISTS (SELECT FROM indexer.party_lists WHERE parties <> ARRAY(SELECT DISTINCT p COLLATE \"C\" FROM unnest(parties) p ORDER BY 1))")
}

var setOfTexts = regexp.MustCompile(`"(?:witnessParties|signatories|observers|actingParties|implementedInterfaces)":\[("[^]]*)\]`)

// inAnyOrder lists sets as no other reading has.
func inAnyOrder(e sandbox.Element) []byte {
	return setOfTexts.ReplaceAllFunc(e.Raw, func(member []byte) []byte {
		name, list, _ := bytes.Cut(member, []byte("["))
		texts := bytes.Split(bytes.TrimSuffix(list, []byte("]")), []byte(","))
		rand.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
		return slices.Concat(name, []byte("["), bytes.Join(texts, []byte(",")), []byte("]"))
	})
}

// What differs is said and sealed as different, and the daemon continues; what was put right is compared again.
func TestDifferencesAreSealed(t *testing.T) {
	t.Parallel()
	brief.Long(t, "runs the daemon several times")
	s := indexed(t, 240)
	at := s.Offset(210)
	s.exec("UPDATE indexer.updates SET update_id = 'x' || update_id WHERE ledger_offset = $1", at)
	s.sealUntil(allSealed, differs)
	require.Equal(t, "equal different", s.windows("updates"))
	s.holds("ledger.verified_offset() = (SELECT from_exclusive FROM ledger.verifications WHERE differences = 1)")
	line := s.journal.wait(t, differs)
	require.Contains(t, line["first"].([]any)[0], `update_id is "x`)
	require.Len(t, s.damaged(), 1)

	s.sealUntil("EXISTS (SELECT FROM indexer.tasks WHERE task = 'verification')")
	require.Equal(t, "equal different", s.windows("updates"))
	s.exec("UPDATE indexer.updates SET update_id = substr(update_id, 2) WHERE ledger_offset = $1", at)
	s.sealUntil(allVerified)
	require.Equal(t, "equal equal", s.windows("updates"))
	require.Empty(t, s.damaged())
}

// A participant that was upgraded shows values of old updates that it did not show before. They are differences until
// they are repaired; they are said once, and frighten nobody.
func TestAfterAnUpgradeOfTheParticipant(t *testing.T) {
	t.Parallel()
	brief.Long(t, "runs the daemon several times")
	s := &sealed{Ledger: sandbox.NewLedger(sandbox.Options{Seed: 68}), t: t, database: throwaway.Migrated(t, migrate)}
	s.Grow(250)
	scope := everything("ledger-effects")
	scope.Topology = false // 3.4 has another name for an event of these
	s.cfg = indexerFor(s.database, serve(t, s.Ledger, sandbox.ServerOptions{Version: "3.4"}), scope)
	s.cfg.sealWindow = smallWindow
	s.index()
	s.cfg.LedgerURL = serve(t, s.Ledger, sandbox.ServerOptions{Version: "3.6"})
	s.Grow(20)
	s.sealUntil(allSealed, lacking)
	require.Equal(t, "different different", s.windows("updates"))
	require.Len(t, s.journal.lines(t, lacking), 1)
	require.NotContains(t, s.journal.all(), `"level":"ERROR"`)
}

// What the participant has pruned is sealed without being compared, which is said once.
func TestWhatWasPrunedIsSealedAsItIs(t *testing.T) {
	t.Parallel()
	brief.Long(t, "runs the daemon several times")
	s := indexed(t, 240)
	require.NoError(t, s.Prune(s.Offset(230)))
	s.sealUntil(allSealed, hidden)
	require.Equal(t, "not_shown not_shown equal", s.windows("updates"))
	s.holds("ledger.verified_offset() = 0")
	s.holds("(SELECT max(to_inclusive) FROM ledger.verifications WHERE result = 'not_shown') = " + strconv.FormatInt(s.Offset(230), 10))
	require.Len(t, s.journal.lines(t, hidden), 1)
	require.Empty(t, s.damaged())
	s.exec("UPDATE indexer.created SET acs_delta = false WHERE (ledger_offset, node_id) = (SELECT ledger_offset, node_id FROM indexer.created ORDER BY 1, 2 LIMIT 1)")
	require.Len(t, s.damaged(), 1)
}

// A participant that fails holds up neither the stream nor, once it answers again, the verification.
func TestVerificationIsTriedAgain(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between tries, as the commands do")
	var failing atomic.Bool
	s := indexed(t, 240)
	s.cfg.LedgerURL = serve(t, s.Ledger, sandbox.ServerOptions{Fault: func(r *http.Request) *sandbox.Fault {
		if failing.Load() && strings.HasSuffix(r.URL.Path, "/latest-pruned-offsets") {
			return &sandbox.Fault{Status: http.StatusInternalServerError, Body: "no"}
		}
		return nil
	}})
	failing.Store(true)
	s.cfg.VerifyRate = 100_000
	daemon := startLogged(t, s.cfg, s.journal.logger())
	waitUntil(t, s.database, "EXISTS (SELECT FROM indexer.tasks WHERE task = 'verification' AND failure LIKE '%500%')")
	s.Grow(50)
	waitFor(t, s.database, lastUpdate(s.Ledger))
	failing.Store(false)
	waitUntil(t, s.database, "ledger.verified_offset() > 0")
	waitUntil(t, s.database, "EXISTS (SELECT FROM indexer.tasks WHERE task = 'verification' AND succeeded_at > failed_at)")
	require.NoError(t, daemon.finish())
	require.Empty(t, s.journal.lines(t, differs))
}

// The transaction history is sealed beside its reading: what differs as different, until it is put right.
func TestTheHistoryIsSealed(t *testing.T) {
	t.Parallel()
	s := &sealed{Ledger: sandbox.NewLedger(sandbox.Options{Seed: 67}), t: t, database: throwaway.Migrated(t, migrate)}
	s.Grow(300)
	s.cfg = indexerFor(s.database, "", defaultScope())
	s.cfg.ScanURL = []string{serveScan(t, sandbox.NewScan(s.Ledger, sandbox.ScanOptions{BalanceChanges: true, PageLimit: 40}))}
	s.index()
	const sender = "UPDATE indexer.transfers SET sender = %s WHERE seq = (SELECT min(seq) FROM indexer.transfers)"
	s.exec(fmt.Sprintf(sender, "sender || 'x'"))
	s.sealUntil("EXISTS (SELECT FROM ledger.verifications WHERE stream = 'transactions')", differs)
	require.Equal(t, "different", s.windows("transactions"))
	require.Contains(t, s.journal.wait(t, differs)["stream"], "transactions")
	s.holds("ledger.verified_seq() = 0")

	s.exec(fmt.Sprintf(sender, "left(sender, -1)"))
	s.sealUntil("ledger.verified_seq() = (SELECT max(seq) FROM ledger.transactions)")
	require.Equal(t, "equal", s.windows("transactions"))
	require.Empty(t, s.damaged())
	s.exec("UPDATE indexer.transactions SET round = coalesce(round, 0) + 1 WHERE seq = 3")
	require.Len(t, s.damaged(), 1)
}
