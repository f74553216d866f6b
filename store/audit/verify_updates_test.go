package audit

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

func TestWhatIsReadAgain(t *testing.T) {
	t.Parallel()
	r := newReread(t)
	for name, c := range map[string]struct {
		selection Selection
		change    func(*shown)
		from, to  ledger.Offset // what has to be read, each offset once
		notes     []string      // the beginnings
	}{
		"everything":                  {Selection{All: true}, func(*shown) {}, 10, 100, nil},
		"after an offset":             {Selection{From: offset(42)}, func(*shown) {}, 42, 100, nil},
		"up to an offset":             {Selection{To: offset(42)}, func(*shown) {}, 10, 42, nil},
		"a range":                     {Selection{From: offset(20), To: offset(42)}, func(*shown) {}, 20, 42, nil},
		"no more than there is":       {Selection{From: offset(0), To: offset(1000)}, func(*shown) {}, 10, 100, nil},
		"nothing that was pruned":     {Selection{All: true}, func(s *shown) { s.pruned = 50 }, 50, 100, []string{"updates after offset 10 up to 50"}},
		"up to an end that is untold": {Selection{All: true}, func(s *shown) { s.noEnd = true }, 10, 100, nil},
		"after failures":              {Selection{All: true}, func(s *shown) { s.failures = 2 }, 10, 100, nil},
		"nothing from the watermark":  {Selection{From: offset(100)}, func(*shown) {}, 100, 100, []string{"updates: none are stored after"}},
		"nothing up to the floor":     {Selection{To: offset(10)}, func(*shown) {}, 10, 10, []string{"updates: none are stored after"}},
		"no sample of what is pruned": {Selection{Sample: 3}, func(s *shown) { s.pruned = 100 }, 100, 100, []string{"whether the participant has", "updates after offset 10 up to 100"}},
		// What else can't be compared is said.
		"no snapshots":          {Selection{All: true}, func(s *shown) { s.refusal = noSnapshots }, 10, 100, []string{"the active set: the participant has none"}},
		"a snapshot too low":    {Selection{All: true}, func(s *shown) { s.snapshotAt = 5 }, 10, 100, []string{"the active set: the newest snapshot is at offset 5, before offset 10, "}},
		"a snapshot that costs": {Selection{From: offset(90)}, func(s *shown) { s.snapshotAt = 50 }, 90, 100, []string{"the active set: its source's snapshot at offset 50 takes a request for each"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := r.shown
			c.change(&s)
			u, found, err := r.verify(&s, false, c.selection)
			require.NoError(t, err)
			require.Empty(t, found)
			require.Len(t, u.Notes, len(c.notes), u.Notes)
			for i, note := range c.notes {
				require.True(t, strings.HasPrefix(u.Notes[i], note), u.Notes)
			}
			require.EqualValues(t, c.to-c.from, u.result.Updates)
			at := c.from
			for _, read := range s.reads[len(s.reads)-int((c.to-c.from+6)/7):] { // before them the last one is looked at
				require.Equal(t, at, read.From)
				at = read.To
			}
			require.Equal(t, c.to, at)
		})
	}
	for _, selection := range []Selection{{From: offset(101)}, {To: offset(9)}} {
		_, _, err := r.verify(&r.shown, false, selection)
		storetest.RequireProblem(t, err, "between the history floor, 10, and the watermark, 100")
	}
	empty := reread{testDB: newDatabase(t), shown: shown{end: 100}}
	empty.leader = empty.leadUpdates(empty.store())
	_, _, err := empty.verify(&empty.shown, false, Selection{})
	storetest.RequireProblem(t, err, "nothing has been indexed")
	late := rereadFrom(t, false)
	u, _, err := late.verify(&late.shown, false, Selection{Sample: 1})
	require.NoError(t, err)
	require.Len(t, u.Notes, 1)
	require.Contains(t, u.Notes[0], "indexing began at offset 10 without a snapshot")
}

var noSnapshots = &ledger.Problem{What: "the participant has none", Err: ledger.ErrNotOffered}

// A sample reads so many pages from places that the seed decides, and none of them twice.
func TestASampleIsChosenBySeed(t *testing.T) {
	t.Parallel()
	r := newReread(t)
	read := func(seed uint64, pages int) map[ledger.Offset]int {
		s := r.shown
		u, _, err := r.verify(&s, false, Selection{Sample: pages, Seed: seed})
		require.NoError(t, err)
		require.NotZero(t, u.result.Seed)
		offsets := map[ledger.Offset]int{}
		for _, read := range s.reads {
			for at := read.From + 1; at <= read.To; at++ {
				offsets[at]++
			}
		}
		require.LessOrEqual(t, len(s.reads), pages+1)
		return offsets
	}
	require.Equal(t, read(1, 6), read(1, 6))
	require.NotEqual(t, read(1, 6), read(2, 6))
	require.NotEqual(t, read(0, 6), read(0, 6))
	many := read(0, 50)
	require.Greater(t, len(many), 60, "of 90")
	for at, times := range many {
		require.Equal(t, 1, times, "offset %d", at)
	}
}

// A range that the server can't look through in time is read in pieces, as an indexer reads it.
func TestAWideRangeIsReadAgainInPieces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := inRanges{UpdateSource: &slowOver{shown{pageSize: 50_000}, 5}, logger: slog.New(slog.DiscardHandler)}
		for at := ledger.Offset(0); at < 500; {
			page, err := withRetry(t.Context(), from.logger, func() (ledger.Page, error) { return from.ReadUpdates(t.Context(), at, 50_000) })
			require.NoError(t, err)
			require.Equal(t, at, page.From)
			at = page.To
		}
	})
}

// slowOver takes longer than it may for more than so many offsets.
type slowOver struct {
	shown
	most ledger.Offset
}

func (s *slowOver) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	if to-after > s.most {
		ingest.Sleep(ctx, 20*time.Second)
		return ledger.Page{}, errors.New("no timely response")
	}
	return s.shown.ReadUpdates(ctx, after, to)
}

// Holes are read again, whatever was chosen, as far as the participant shows what belongs there, and are covered then
// also where all of it is stored. What it does not show stays uncovered, and counts as left.
func TestHolesAreReadAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost     bool // an update in the hole
		pruned   ledger.Offset
		coverage []string // after a repair
		notes    int
	}{
		"all is stored":    {false, 0, []string{"10 100"}, 0},
		"all":              {true, 0, []string{"10 100"}, 0},
		"what is shown":    {true, 21, []string{"10 20", "21 100"}, 2},
		"nothing is shown": {true, 50, []string{"10 20", "23 100"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReread(t)
			r.damage("UPDATE indexer.coverage SET to_inclusive = 20", "INSERT INTO indexer.coverage SELECT stream, scope, 23, 100 FROM indexer.coverage")
			if c.lost {
				r.damage("DELETE FROM indexer.updates WHERE ledger_offset = 22")
			}
			r.pruned = c.pruned
			u, found, err := r.verify(&r.shown, true, Selection{})
			require.NoError(t, err)
			require.Contains(t, found, "coverage 0")
			require.Len(t, u.Notes, c.notes, u.Notes)
			require.Equal(t, c.coverage, r.Coverage())
			require.Equal(t, c.pruned == 0, u.Left == 0)
		})
	}
}

// What is lost with its coverage, below the watermark, is a hole, and not a fork that the participant has in its place.
func TestAHoleUpToTheWatermarkIsNoFork(t *testing.T) {
	t.Parallel()
	r := newReread(t)
	r.damage("UPDATE indexer.coverage SET to_inclusive = 90", "DELETE FROM indexer.updates WHERE ledger_offset > 90",
		"DELETE FROM indexer.created WHERE ledger_offset > 90")
	u, _, err := r.verify(&r.shown, true, Selection{})
	require.NoError(t, err)
	require.Zero(t, u.Left)
	require.Equal(t, r.whole, r.rows())
}

// What the active set shows is repaired where it comes from, also if that was not read again by itself; what is left
// then lies elsewhere, and that is said.
func TestTheActiveSetIsRepairedFromTheFacts(t *testing.T) {
	t.Parallel()
	r := newReread(t)
	r.damage("DELETE FROM indexer.created WHERE ledger_offset = 25", "DELETE FROM indexer.active_contracts WHERE contract_id = 'contract-25'")
	u, found, err := r.verify(&r.shown, true, Selection{From: offset(95)})
	require.NoError(t, err)
	require.Contains(t, found, "active_contracts 25")
	require.Zero(t, u.Left)
	require.Equal(t, r.whole, r.rows())

	r.hidden = 25
	u, found, err = r.verify(&r.shown, true, Selection{From: offset(95)})
	require.NoError(t, err)
	require.Equal(t, []string{"active_contracts 25"}, found)
	require.EqualValues(t, 1, u.Left)
	require.Contains(t, u.Notes[0], "lies in updates that were not read again")
	require.Equal(t, r.whole, r.rows())
}

// A ledger in use may serve the snapshot at its end only, which is another one soon.
func TestTheActiveSetIsComparedAtTheEndOfALedgerInUse(t *testing.T) {
	t.Parallel()
	r := newReread(t)
	r.onlyAtEnd = true
	late := 4 // so often it has another end before the snapshot is read
	r.asked = func() {
		if late > 0 {
			late--
			r.end += 3
		}
	}
	r.atEnd = func() { // the database comes after
		watermark, _, err := r.leader.Watermark(t.Context())
		require.NoError(t, err)
		if watermark < r.end {
			require.NoError(t, r.leader.Append(t.Context(), storetest.Scope, []ledger.Page{pageUpTo(watermark, r.end)}))
		}
	}
	u, found, err := r.verify(&r.shown, false, Selection{Sample: 2})
	require.NoError(t, err)
	require.Empty(t, found)
	require.EqualValues(t, 112, u.result.ActiveAt)
	require.Greater(t, u.result.ActiveAt, u.result.Watermark)
	require.Len(t, r.snapshot, 4, "three ends were past when the snapshot was asked for: %v", r.snapshot)
}

// A watermark that nobody moves is not waited for.
func TestAWatermarkThatNobodyMovesIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	r := newReread(t)
	r.leader.Close()
	u, _, err := r.verify(&r.shown, false, Selection{})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), currentPatience*9/10)
	defer cancel()
	at, err := u.reached(ctx, 105)
	require.NoError(t, err)
	require.EqualValues(t, 100, at)
}

// begun is a reread whose contracts up to offset 20 are carried.
func newBegun(t *testing.T) *reread {
	t.Helper()
	r := &reread{testDB: newDatabase(t), shown: shown{end: 100, pageSize: 7}}
	r.leader = r.leadUpdates(r.store())
	progress, err := r.leader.BeginSnapshot(t.Context(), "participant::1", storetest.Scope, 20)
	require.NoError(t, err)
	_, err = r.leader.WriteSnapshotPage(t.Context(), progress, nil, ledger.SnapshotPage{Entries: activeUpTo(20), Last: true})
	require.NoError(t, err)
	require.NoError(t, r.leader.Append(t.Context(), storetest.Scope, []ledger.Page{pageUpTo(20, 100)}))
	r.whole = r.rows()
	return r
}

// A source that has no snapshots any more, or has pruned it, leaves the carried one without a comparison, and so does a
// participant that does not show what pruning made a snapshot of. Any other error means that nobody knows, and ends the
// verification.
func TestACarriedSnapshotThatCannotBeCompared(t *testing.T) {
	t.Parallel()
	r := newBegun(t)
	u, found, err := r.verify(&r.shown, false, Selection{All: true})
	require.NoError(t, err)
	require.Empty(t, found)
	require.Empty(t, u.Notes)
	require.EqualValues(t, 10, u.result.Carried)
	for what, change := range map[string]func(*shown){
		"has pruned it":            func(s *shown) { s.pruned = 50 },
		"the participant has none": func(s *shown) { s.refusal = noSnapshots },
	} {
		s := r.shown
		change(&s)
		u, found, err := r.verify(&s, false, Selection{All: true})
		require.NoError(t, err)
		require.Empty(t, found)
		require.Contains(t, strings.Join(u.Notes, "\n"), "the snapshot at offset 20, which is carried: ")
		require.Contains(t, strings.Join(u.Notes, "\n"), what)
	}
	r.Exec("UPDATE indexer.snapshots SET pruned = true")
	for name, c := range map[string]struct {
		err   error
		noted bool
	}{
		"pruned since, or reassignments in flight": {&ledger.Problem{What: "pruned", Err: ledger.ErrPruned}, true},
		"no snapshot there":                        {noSnapshots, true},
		"another participant":                      {&ledger.Problem{What: "another participant answers"}, false},
		"an answer that breaks a rule":             {&ledger.DecodeError{Element: 3, Err: errors.New("no contract id")}, false},
		"a request that is refused as wrong":       {&ledger.Bug{What: "it was refused"}, false},
	} {
		var none []Difference
		s := r.shown
		s.refusal = c.err
		u := Updates{Verification: verificationOf(r.leader.store.Stored, nil, &none), Source: &s, Scope: storetest.Scope}
		err := u.carried(t.Context())
		if !c.noted {
			require.ErrorIs(t, err, c.err, name)
			require.Empty(t, u.Notes, name)
			continue
		}
		require.NoError(t, err, name)
		require.Contains(t, u.Notes[0], "the participant does not show them there (read the snapshot at offset 20: "+c.err.Error())
	}
}

// What no entry of the carried snapshot has is dropped.
func TestWhatTheCarriedSnapshotLacksIsDropped(t *testing.T) {
	t.Parallel()
	r := newBegun(t)
	r.damage("INSERT INTO indexer.created (ledger_offset, node_id, origin, contract_id, template_ref) " +
		"SELECT ledger_offset, 9, origin, contract_id, template_ref FROM indexer.created WHERE ledger_offset = 15")
	u, found, err := r.verify(&r.shown, true, Selection{All: true})
	require.NoError(t, err)
	require.Equal(t, []string{"created 15"}, found)
	require.Zero(t, u.Left)
	require.Equal(t, r.whole, r.rows())
}

// What was made by pruning can't be repaired, and is counted as left; what follows from it can, and is not.
func TestWhatFollowsFromWhatPruningMadeIsRepaired(t *testing.T) {
	t.Parallel()
	r := newBegun(t)
	r.Exec("UPDATE indexer.snapshots SET pruned = true")
	for damage, left := range map[string]bool{
		"UPDATE indexer.active_contracts SET reassignment_counter = 7 WHERE contract_id = 'contract-15'": false,
		"UPDATE indexer.created SET payload = '{}' WHERE ledger_offset = 15":                             true,
	} {
		r.damage(damage)
		u, found, err := r.verify(&r.shown, true, Selection{All: true})
		require.NoError(t, err)
		require.NotEmpty(t, found)
		require.Equal(t, left, u.Left > 0, damage)
		require.Equal(t, left, !reflect.DeepEqual(r.whole, r.rows()), damage)
		r.Exec(`UPDATE indexer.created SET payload = '{"amount": "1.0"}' WHERE ledger_offset = 15`)
	}
}

// A lifetime without facts may be all that is left of a creation that can't be read again.
func TestWhatMayBeLeftOfPrunedFactsStays(t *testing.T) {
	t.Parallel()
	r := newReread(t)
	r.damage("DELETE FROM indexer.created WHERE ledger_offset = 30")
	r.pruned = 50
	lifetimes := r.rows()["lifetimes"]
	u, found, err := r.verify(&r.shown, true, Selection{All: true})
	require.NoError(t, err)
	require.Contains(t, found, "lifetimes 60")
	require.Equal(t, lifetimes, r.rows()["lifetimes"])
	require.Positive(t, u.Left)
	require.Contains(t, strings.Join(u.Notes, "\n"), "were pruned, up to offset 50")
}

// A participant that is restored while it is compared is not taken for the one that was indexed, and nothing is
// repaired from it.
func TestAParticipantIsRestoredMeanwhile(t *testing.T) {
	t.Parallel()
	r := newReread(t)
	r.damage("DELETE FROM indexer.updates WHERE ledger_offset IN (33, 70)")
	r.reading = func(after ledger.Offset) {
		if after >= 50 && after < 90 { // the last one was looked at before
			r.forked, r.changes = 60, 1
		}
	}
	u, found, err := r.verify(&r.shown, true, Selection{All: true})
	require.ErrorContains(t, err, "the last offset at which they agree is 60")
	require.Equal(t, []string{"updates 33"}, found)
	require.EqualValues(t, 1, u.result.Repaired)
}

// A database that is reset while it is compared lacks what went, and that is said.
func TestADatabaseIsResetMeanwhile(t *testing.T) {
	t.Parallel()
	r := newReread(t)
	r.reading = func(after ledger.Offset) {
		if after >= 50 && after < 90 {
			r.reading = nil
			_, err := r.leader.Reset(t.Context(), 60)
			require.NoError(t, err)
			r.leader.Close() // nobody moves the watermark
		}
	}
	_, found, err := r.verify(&r.shown, false, Selection{All: true})
	require.ErrorContains(t, err, "reset to offset 60 while it was verified")
	require.NotEmpty(t, found)
}

// Where the scope is changed while it is compared, what is active is that of another scope than what is shown, and
// nothing is taken in, or ended.
func TestTheScopeIsChangedMeanwhile(t *testing.T) {
	t.Parallel()
	r := newReread(t)
	var changed map[string][]string
	r.reading = func(after ledger.Offset) {
		if after >= 50 && after < 90 {
			r.reading = nil
			scope := storetest.Scope
			scope.Parties = []string{"alice"}
			resync := r.leader.Resync(false)
			progress, err := resync.BeginSnapshot(t.Context(), "", scope, 100)
			require.NoError(t, err)
			_, err = resync.WriteSnapshotPage(t.Context(), progress, nil, ledger.SnapshotPage{Entries: activeUpTo(40), Last: true})
			require.NoError(t, err)
			changed = r.rows()
		}
	}
	u, found, err := r.verify(&r.shown, true, Selection{All: true})
	require.ErrorIs(t, err, errScopeChanged)
	require.Empty(t, found)
	require.Zero(t, u.result.Repaired)
	require.NotEmpty(t, changed)
	require.Equal(t, changed, r.rows())

	repairer := r.repairs(r.leader.store)
	err = repairer.TakeIn(t.Context(), storetest.Scope, 100, activeUpTo(100), nil)
	require.ErrorIs(t, err, errScopeChanged)
	require.Equal(t, changed, r.rows())
}

// Updates that the comparison of what follows shows to be missing are read again, in order and neighbours together. A
// row that follows from nothing may be all that is left of an event that is lost: what it followed from is read again
// before it goes.
func TestWhatIsSuspectIsReadAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage string
		reads  []ledger.Range
	}{
		"updates without a row": {"DELETE FROM indexer.updates WHERE ledger_offset IN (40, 22, 41, 42)", []ledger.Range{{From: 21, To: 22}, {From: 39, To: 42}}},
		"a lifetime and what is active without events": {"DELETE FROM indexer.created WHERE ledger_offset IN (30, 70)",
			[]ledger.Range{{From: 29, To: 30}, {From: 59, To: 60}, {From: 69, To: 70}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReread(t)
			r.damage(c.damage)
			u, _, err := r.verify(&r.shown, true, Selection{From: offset(95)})
			require.NoError(t, err)
			require.Zero(t, u.Left)
			require.Equal(t, r.whole, r.rows())
			for _, read := range c.reads {
				require.Contains(t, r.reads, read)
			}
		})
	}
	r := newReread(t)
	r.damage(`INSERT INTO indexer.active_contracts SELECT (jsonb_populate_record(a, jsonb_build_object('contract_id', 'x' || n, 'activated_offset', 200 + n))).*
		FROM indexer.active_contracts a, generate_series(0, 10000) n WHERE a.activated_offset = 11`)
	damaged := r.rows()
	u, _, err := r.verify(&r.shown, true, Selection{From: offset(95)})
	require.NoError(t, err)
	require.Equal(t, damaged, r.rows(), "some were not read again")
	require.EqualValues(t, mostDoubtful+1, u.Left)
	require.Contains(t, strings.Join(u.Notes, "\n"), "run `indexer verify --all --repair`")
}

// What is stored beyond all claims, and can't be read again, is not removed.
func TestWhatCannotBeReadAgainIsNotRemoved(t *testing.T) {
	t.Parallel()
	r := newReread(t)
	r.leader.Close()
	r.damage("INSERT INTO indexer.updates SELECT (jsonb_populate_record(u, '{\"ledger_offset\": 103}')).* FROM indexer.updates u WHERE ledger_offset = 100")
	r.pruned, r.end = 105, 200
	damaged := r.rows()
	_, _, err := r.verify(&r.shown, true, Selection{Sample: 3})
	storetest.RequireProblem(t, err, "offset 103", "pruned its ledger up to offset 105")
	require.Equal(t, damaged, r.rows())
	r.pruned = 102 // it can be read again
	_, _, err = r.verify(&r.shown, true, Selection{Sample: 3})
	require.NoError(t, err)
	require.Equal(t, r.whole, r.rows())
}

// A repair that took too long would do so again.
func TestARepairThatTakesTooLongIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	times := 0
	v := verificationOf(nil, nil, nil)
	err := v.repair(t.Context(), func() error {
		times++
		return context.DeadlineExceeded
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, 1, times)
}
