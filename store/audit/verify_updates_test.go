package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// scripted is a participant and a database in which a range of offsets and some contracts are what they should be, and
// the rest is not. Repairs are done unless they are refused.
type scripted struct {
	bounds      ledger.Bounds
	unstarted   bool
	end, pruned ledger.Offset
	noEnd       bool
	inUse       bool  // the ledger continues, and the database with it; a snapshot is only served at the end
	refusal     error // what reading a snapshot ends with; nil: it is served
	noSnapshots bool
	late        int // how often the ledger has another end before the snapshot is read
	pageSize    ledger.Offset
	failures    int           // of reads to come
	widest      ledger.Offset // that the server can look through in time; 0: any range

	badOffsets  map[ledger.Offset]bool
	holes       []ledger.Range
	badDerived  bool
	active      []string // at the participant; those that begin with ! are not stored
	extra       []string // stored as active only
	begun       *ledger.SnapshotProgress
	incurable   bool
	tooSlow     bool          // repairs take longer than they may
	forked      ledger.Offset // after it the participant has another history; 0: it has the one that is stored
	changes     int64
	turnsAt     ledger.Offset // the first request for updates after here or later calls turn
	turn        func()
	derived     []Difference
	calls       []string
	readOffsets map[ledger.Offset]int
}

func (s *scripted) call(format string, args ...any) {
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

func (s *scripted) LedgerEnd(context.Context) (ledger.Offset, error) {
	if s.noEnd {
		return 0, ledger.ErrNotOffered
	}
	end := s.end
	if s.late > 0 {
		s.late--
		s.end += 3
	}
	return end, nil
}

// idAt is the id of the update at an offset, as it is stored.
func idAt(at ledger.Offset) string { return fmt.Sprint("update ", at) }

func (s *scripted) UpdateOfScope(_ context.Context, id string) (ledger.Update, ledger.JSON, error) {
	var at ledger.Offset
	_, err := fmt.Sscanf(id, "update %d", &at)
	if err != nil || at <= s.pruned || s.forked > 0 && at > s.forked {
		return ledger.Update{}, nil, ledger.ErrNotFound
	}
	return ledger.Update{Offset: at, ID: id}, nil, nil
}

func (s *scripted) OfNetwork() bool { return false }

func (s *scripted) LastUpdate(_ context.Context, upTo ledger.Offset) (ledger.Offset, string, error) {
	at := min(upTo, s.bounds.Watermark)
	return at, idAt(at), nil
}

func (s *scripted) Changes() int64 { return s.changes }

func (s *scripted) PrunedOffset(context.Context) (ledger.Offset, error) { return s.pruned, nil }

func (s *scripted) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	if s.widest > 0 && to-after > s.widest {
		ingest.Sleep(ctx, 20*time.Second)
		return ledger.Page{}, errors.New("no timely response")
	}
	if s.failures > 0 {
		s.failures--
		return ledger.Page{}, errors.New("a moment's trouble")
	}
	if s.turn != nil && after >= s.turnsAt {
		s.turn()
		s.turn = nil
	}
	if after < s.pruned {
		return ledger.Page{}, &ledger.Problem{What: fmt.Sprintf("pruned up to %d", s.pruned)}
	}
	to = min(to, after+s.pageSize)
	page := ledger.Page{From: after, To: to}
	for at := after + 1; at <= to; at++ {
		s.readOffsets[at]++
		update := ledger.Update{Offset: at, ID: idAt(at)}
		if s.forked > 0 && at > s.forked {
			update.ID = "another"
		}
		page.Updates = append(page.Updates, update)
	}
	return page, nil
}

func (s *scripted) SnapshotOffset(_ context.Context, upTo ledger.Offset) (ledger.Offset, error) {
	if s.noSnapshots {
		return 0, &ledger.Problem{What: "the participant has no snapshots", Err: ledger.ErrNotOffered}
	}
	return upTo, nil
}

func (s *scripted) ReadSnapshot(_ context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
	s.call("snapshot at %d", at)
	if s.inUse && at != s.end {
		return ledger.SnapshotPage{}, &ledger.Problem{What: "reassignments are in flight"}
	}
	if s.noSnapshots {
		return ledger.SnapshotPage{}, &ledger.Problem{What: "the participant has no snapshots", Err: ledger.ErrNotOffered}
	}
	if s.refusal != nil {
		return ledger.SnapshotPage{}, s.refusal
	}
	return ledger.SnapshotPage{Entries: make([]ledger.ContractEntry, len(s.active)), Last: true}, nil
}

func (s *scripted) ContractByID(context.Context, string, []string) (ledger.Contract, ledger.JSON, error) {
	return ledger.Contract{}, nil, ledger.ErrNotFound
}

func (s *scripted) Bounds(context.Context) (ledger.Bounds, bool, error) {
	if s.inUse {
		s.bounds.Watermark = s.end
		s.end += 3
	}
	return s.bounds, !s.unstarted, nil
}

func (s *scripted) Led(context.Context) (bool, error) { return s.inUse, nil }

func (s *scripted) CompareCoverage(_ context.Context, _ *ledger.Offset, found Found) ([]ledger.Range, error) {
	for range s.holes {
		if err := found(Difference{Kind: Missing, Relation: "coverage", Derived: true}); err != nil {
			return nil, err
		}
	}
	return s.holes, nil
}

func (s *scripted) Compare(_ context.Context, page ledger.Page, found Found) error {
	for at := page.From + 1; at <= page.To; at++ {
		if s.forked > 0 && at > s.forked {
			if err := found(Difference{Kind: Altered, Relation: "updates", Offset: at, Column: "record_time", Stored: new(string)}); err != nil {
				return err
			}
		}
		if s.badOffsets[at] {
			if err := found(Difference{Kind: Missing, Relation: "updates", Offset: at}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *scripted) Deviation(ctx context.Context, page ledger.Page) (is ingest.Deviation, err error) {
	err = s.Compare(ctx, page, func(d Difference) error {
		is.Differences++
		is.UpdateLost = is.UpdateLost || d.Kind == Missing
		is.UpdateAltered = is.UpdateAltered || d.Kind == Altered
		return nil
	})
	return is, err
}

func (s *scripted) CompareDerived(_ context.Context, step func(string), found Found) error {
	step("something")
	for _, d := range s.derived {
		if err := found(d); err != nil {
			return err
		}
	}
	if s.badDerived {
		return found(Difference{Kind: Extra, Relation: "lifetimes", Derived: true})
	}
	return nil
}

func (s *scripted) CompareActive(_ context.Context, _ ledger.Offset, _ []ledger.ContractEntry, seen func(string), found Found) error {
	for _, key := range s.active {
		if key[0] != '!' {
			seen(key)
		} else if err := found(Difference{Kind: Missing, Relation: "active_contracts", Offset: 15, Row: key}); err != nil {
			return err
		}
	}
	return nil
}

func (s *scripted) ActiveAt(_ context.Context, _ ledger.Offset, each func(string, Difference) error) error {
	for _, key := range slices.Concat(s.active, s.extra) {
		if key[0] == '!' {
			continue
		}
		if err := each(key, Difference{Kind: Extra, Relation: "active_contracts", Offset: 7, Row: key}); err != nil {
			return err
		}
	}
	return nil
}

func (s *scripted) FinishedSnapshot(context.Context) (*ledger.SnapshotProgress, error) {
	return s.begun, nil
}

func (s *scripted) CompareCarried(_ context.Context, at ledger.Offset, before int64, entries []ledger.ContractEntry, _ func(string), _ Found) error {
	s.call("carried at %d, %d after %d", at, len(entries), before)
	s.badDerived = s.badDerived || len(s.extra) > 0 // as it is when the carried rows were repaired
	return nil
}

func (s *scripted) CarriedAt(context.Context, ledger.Offset, func(string, Difference) error) error {
	return nil
}

func (s *scripted) AnsweredLookups(context.Context, string, int) ([]string, error) { return nil, nil }

func (s *scripted) CompareLookup(context.Context, ledger.Contract, Found) error { return nil }

func (s *scripted) RepairCoverage(context.Context, *ledger.Offset) error {
	s.call("repair coverage")
	return nil
}

func (s *scripted) RepairUpdates(_ context.Context, _ ledger.Scope, page ledger.Page) error {
	s.call("repair %d to %d", page.From, page.To)
	if s.tooSlow {
		return fmt.Errorf("repair: %w", context.DeadlineExceeded)
	}
	for at := page.From + 1; at <= page.To; at++ {
		delete(s.badOffsets, at)
	}
	return nil
}

func (s *scripted) RepairDerived(context.Context, func(string)) error {
	s.call("repair derived")
	if s.incurable {
		return nil
	}
	s.derived = nil
	s.badDerived, s.extra = false, nil
	return nil
}

func (s *scripted) TakeIn(context.Context, ledger.Offset, []ledger.ContractEntry, []string) error {
	s.call("take in")
	return nil
}

func (s *scripted) RepairCarried(context.Context, ledger.Offset, int64, []ledger.ContractEntry) error {
	return nil
}

func (s *scripted) DropCarried(context.Context, ledger.Offset, []string) error { return nil }

func (s *scripted) RepairLookup(context.Context, ledger.Lookup) error { return nil }

func newScripted() *scripted {
	return &scripted{
		bounds: ledger.Bounds{Floor: 10, Watermark: 100, StateFloor: offset(10)}, end: 100, pageSize: 7,
		badOffsets: map[ledger.Offset]bool{}, readOffsets: map[ledger.Offset]int{},
	}
}

func (s *scripted) verify(t *testing.T, repair bool, selection Selection) (UpdatesResult, []string) {
	t.Helper()
	result, found, err := s.run(t, repair, selection)
	require.NoError(t, err)
	return result, found
}

func (s *scripted) run(t *testing.T, repair bool, selection Selection) (UpdatesResult, []string, error) {
	t.Helper()
	var found []string
	u := Updates{
		Source: s, Database: s, Scope: ledger.Scope{Reassignments: true}, Selection: selection, Progress: func(Progress) {}, Logger: slog.New(slog.DiscardHandler),
		Found: func(d Difference) error {
			found = append(found, fmt.Sprint(d.Relation, " ", d.Offset))
			return nil
		},
	}
	if repair {
		u.Repairer = s
	}
	result, err := u.Run(t.Context())
	return result, found, err
}

func offset(at ledger.Offset) *ledger.Offset { return &at }

func TestWhatIsReadAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		selection Selection
		change    func(*scripted)
		from, to  ledger.Offset // what has to be read, each offset once
		notes     int
	}{
		"everything":                  {Selection{All: true}, func(*scripted) {}, 10, 100, 0},
		"after an offset":             {Selection{From: offset(42)}, func(*scripted) {}, 42, 100, 0},
		"up to an offset":             {Selection{To: offset(42)}, func(*scripted) {}, 10, 42, 0},
		"a range":                     {Selection{From: offset(20), To: offset(42)}, func(*scripted) {}, 20, 42, 0},
		"no more than there is":       {Selection{From: offset(0), To: offset(1000)}, func(*scripted) {}, 10, 100, 0},
		"nothing that was pruned":     {Selection{All: true}, func(s *scripted) { s.pruned = 50 }, 50, 100, 1},
		"nothing beyond the ledger":   {Selection{All: true}, func(s *scripted) { s.end = 90 }, 10, 90, 0},
		"up to an end that is untold": {Selection{All: true}, func(s *scripted) { s.noEnd = true }, 10, 100, 0},
		"after failures":              {Selection{All: true}, func(s *scripted) { s.failures = 3 }, 10, 100, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScripted()
			c.change(s)
			result, found := s.verify(t, false, c.selection)
			require.Empty(t, found)
			require.Len(t, result.Notes, c.notes)
			require.EqualValues(t, c.to-c.from, result.Updates)
			for at := ledger.Offset(1); at <= 110; at++ {
				require.Equal(t, at > c.from && at <= c.to, s.readOffsets[at] == 1, "offset %d", at)
			}
		})
	}
}

// A range that the server can't look through in time is read in pieces, as an indexer reads it.
func TestAWideRangeIsReadAgainInPieces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		s.bounds.Watermark, s.end, s.pageSize, s.widest = 50_000, 50_000, 50_000, 5
		s.badOffsets[40_000] = true
		result, found := s.verify(t, true, Selection{All: true})
		require.Equal(t, []string{"updates 40000"}, found)
		require.EqualValues(t, 50_000-10, result.Updates)
		require.Empty(t, s.badOffsets)
	})
}

// A sample reads so many pages from places that the seed decides; a hole is always read.
func TestASampleIsChosenBySeed(t *testing.T) {
	t.Parallel()
	read := func(seed uint64) map[ledger.Offset]int {
		s := newScripted()
		s.bounds.Watermark, s.end = 100_000, 100_000
		s.holes = []ledger.Range{{From: 500, To: 503}}
		result, found := s.verify(t, false, Selection{Sample: 10, Seed: seed})
		require.Equal(t, []string{"coverage 0"}, found)
		require.LessOrEqual(t, len(s.readOffsets), 73)
		require.Positive(t, s.readOffsets[501])
		require.NotZero(t, result.Seed)
		return s.readOffsets
	}
	require.Equal(t, read(1), read(1))
	require.NotEqual(t, read(1), read(2))
	require.NotEqual(t, read(0), read(0))
}

// Places that overlap, as those of a small ledger do, are read once.
func TestASampleReadsNothingTwice(t *testing.T) {
	t.Parallel()
	s := newScripted()
	result, _ := s.verify(t, false, Selection{Sample: 50})
	require.EqualValues(t, len(s.readOffsets), result.Updates)
	require.Greater(t, len(s.readOffsets), 60, "of 90")
	for at, times := range s.readOffsets {
		require.Equal(t, 1, times, "offset %d", at)
	}
}

func TestNothingIsWrittenWithoutRepair(t *testing.T) {
	t.Parallel()
	s := newScripted()
	s.badOffsets[33], s.badDerived, s.extra = true, true, []string{"a"}
	result, found := s.verify(t, false, Selection{All: true})
	require.Equal(t, []string{"updates 33", "lifetimes 0", "active_contracts 7"}, found)
	require.Equal(t, []string{"snapshot at 100", "snapshot at 100"}, s.calls, "the second time to find out what is too many")
	require.Zero(t, result.Repaired)
}

func TestWhatDiffersIsRepairedAndComparedAgain(t *testing.T) {
	t.Parallel()
	s := newScripted()
	s.badOffsets[33], s.badDerived, s.begun = true, true, &ledger.SnapshotProgress{At: 10}
	result, found := s.verify(t, true, Selection{All: true})
	require.Equal(t, []string{"updates 33", "lifetimes 0"}, found)
	require.Equal(t, []string{"repair 31 to 38", "snapshot at 10", "carried at 10, 0 after 0", "repair derived", "snapshot at 100"}, s.calls)
	require.EqualValues(t, 2, result.Repaired)
	require.Zero(t, result.Remaining)

	s = newScripted()
	s.badDerived, s.incurable = true, true
	result, _ = s.verify(t, true, Selection{All: true})
	require.EqualValues(t, 1, result.Remaining)
}

// What the active set shows is repaired where it comes from, also if that was not read again by itself.
func TestTheActiveSetIsRepairedFromTheFacts(t *testing.T) {
	t.Parallel()
	s := newScripted()
	s.active, s.extra, s.begun = []string{"a", "b"}, []string{"c"}, &ledger.SnapshotProgress{At: 10}
	result, found := s.verify(t, true, Selection{})
	require.Equal(t, []string{"active_contracts 7", "lifetimes 0"}, found)
	require.Contains(t, s.calls, "carried at 10, 2 after 0", "offset 7 lies before the floor")
	require.Contains(t, s.calls, "repair derived")
	require.Zero(t, result.Remaining)

	s = newScripted()
	s.active = []string{"a", "!b"}
	s.badOffsets[15] = true
	result, found = s.verify(t, true, Selection{})
	require.Equal(t, []string{"active_contracts 15", "updates 15"}, found)
	require.Contains(t, s.calls, "repair 14 to 15")
	require.EqualValues(t, 1, result.Remaining)
	require.Len(t, result.Notes, 1)
}

// What the participant refuses at its end, and at the watermark, ends the verification. It is not asked for again and
// again.
func TestARefusedSnapshotEndsTheVerification(t *testing.T) {
	t.Parallel()
	s := newScripted()
	s.refusal, s.extra = &ledger.Problem{What: "it may have been cut"}, []string{"a"}
	_, found, err := s.run(t, true, Selection{All: true})
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.Empty(t, found)
	require.Equal(t, []string{"snapshot at 100", "snapshot at 100"}, s.calls, "nothing is repaired")
}

// A ledger in use may serve the snapshot at its end only, which is another one soon.
func TestTheActiveSetIsComparedAtTheEndOfALedgerInUse(t *testing.T) {
	t.Parallel()
	s := newScripted()
	s.inUse, s.late, s.active = true, 4, []string{"a", "b"}
	result, found := s.verify(t, false, Selection{Sample: 2})
	require.Empty(t, found)
	require.EqualValues(t, 2, result.Active)
	require.Greater(t, result.ActiveAt, result.Bounds.Watermark)
	require.Len(t, s.calls, 4, "three ends were past when the snapshot was asked for: %v", s.calls)
}

// A watermark that nobody moves is not waited for.
func TestAWatermarkThatNobodyMovesIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		s.end, s.active = s.bounds.Watermark+5, []string{"a"}
		began := time.Now()
		result, _ := s.verify(t, false, Selection{Sample: 1})
		require.Equal(t, result.Bounds.Watermark, result.ActiveAt)
		require.Zero(t, time.Since(began)) // of the bubble's time
	})
}

// A source that has no snapshots any more leaves the carried one without a comparison.
func TestACarriedSnapshotThatIsNotOffered(t *testing.T) {
	t.Parallel()
	s := newScripted()
	s.begun, s.noSnapshots = &ledger.SnapshotProgress{At: 10}, true
	result, _ := s.verify(t, false, Selection{All: true})
	require.Contains(t, result.Notes[0], "the snapshot at offset 10, which is carried: ")
}

// A participant that does not show what pruning made a snapshot of leaves it without a comparison. Any other error means
// that nobody knows, and ends the verification.
func TestWhatPruningMadeThatCannotBeCompared(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		noted bool
	}{
		"pruned since, or reassignments in flight": {&ledger.Problem{What: "pruned", Err: ledger.ErrPruned}, true},
		"no snapshot there":                        {&ledger.Problem{What: "no snapshot", Err: ledger.ErrNotOffered}, true},
		"another participant":                      {&ledger.Problem{What: "another participant answers"}, false},
		"an answer that breaks a rule":             {&ledger.DecodeError{Element: 3, Err: errors.New("no contract id")}, false},
		"a request that is refused as wrong":       {&ledger.Bug{What: "it was refused"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScripted()
			s.begun, s.refusal = &ledger.SnapshotProgress{At: 10, Pruned: true}, c.err
			u := Updates{
				Source: s, Database: s, Scope: ledger.Scope{Reassignments: true}, Progress: func(Progress) {}, Logger: slog.New(slog.DiscardHandler),
				Found: func(Difference) error { return nil },
			}
			err := u.carried(t.Context())
			if !c.noted {
				require.ErrorIs(t, err, c.err)
				require.Empty(t, u.result.Notes)
				return
			}
			require.NoError(t, err)
			require.Contains(t, u.result.Notes[0], "the participant does not show them there (read the snapshot at offset 10: "+c.err.Error())
		})
	}
}

// A lifetime without facts may be all that is left of a creation that can't be read again.
func TestWhatMayBeLeftOfPrunedFactsStays(t *testing.T) {
	t.Parallel()
	s := newScripted()
	s.pruned, s.badDerived = 50, true
	result, found := s.verify(t, true, Selection{All: true})
	require.Equal(t, []string{"lifetimes 0"}, found)
	require.NotContains(t, s.calls, "repair derived")
	require.Positive(t, result.Remaining)
	require.Contains(t, result.Notes[len(result.Notes)-1], "were pruned, up to offset 50")
}

func TestWhatCannotBeComparedIsNoted(t *testing.T) {
	t.Parallel()
	s := newScripted()
	s.bounds.StateFloor = nil
	result, _ := s.verify(t, false, Selection{All: true})
	require.Len(t, result.Notes, 1)
	require.Empty(t, s.calls)

	s = newScripted()
	s.pruned, s.begun = 50, &ledger.SnapshotProgress{At: 10}
	result, _ = s.verify(t, false, Selection{All: true})
	require.Len(t, result.Notes, 2)

	s = newScripted()
	s.unstarted = true
	u := Updates{Source: s, Database: s, Progress: func(Progress) {}, Logger: slog.New(slog.DiscardHandler)}
	_, err := u.Run(t.Context())
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
}

// A participant with another history is refused before anything is compared with it.
func TestAnotherHistoryIsRefused(t *testing.T) {
	t.Parallel()
	s := newScripted()
	s.forked, s.badOffsets[33] = 60, true
	_, found, err := s.run(t, true, Selection{All: true})
	requireProblem(t, err, "another history", "the last offset at which they agree is 60")
	require.Empty(t, found)
	require.Empty(t, s.calls)
}

func requireProblem(t *testing.T, err error, parts ...string) {
	t.Helper()
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	for _, part := range parts {
		require.Contains(t, problem.What+problem.Do, part)
	}
}

// A participant that is restored while it is compared is not taken for the one that was indexed, and nothing is
// repaired from it.
func TestAParticipantIsRestoredMeanwhile(t *testing.T) {
	t.Parallel()
	s := newScripted()
	s.badOffsets[33], s.badOffsets[70] = true, true
	s.turnsAt, s.turn = 50, func() {
		s.forked = 60
		s.changes++
	}
	_, found, err := s.run(t, true, Selection{All: true})
	require.ErrorContains(t, err, "the last offset at which they agree is 60")
	require.Equal(t, []string{"updates 33"}, found)
	require.Equal(t, []string{"repair 31 to 38"}, s.calls)
}

// A database that is reset while it is compared lacks what went, and that is said.
func TestADatabaseIsResetMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // it waits for the watermark
		s := newScripted()
		s.turnsAt, s.turn = 50, func() { s.bounds.Watermark, s.badOffsets[70] = 60, true }
		_, found, err := s.run(t, false, Selection{All: true})
		require.ErrorContains(t, err, "reset to offset 60 while it was verified")
		require.Equal(t, []string{"updates 70"}, found)
	})
}

// What was made by pruning can't be repaired, but what follows from it can, and is not counted as left.
func TestWhatFollowsFromWhatPruningMadeIsRepaired(t *testing.T) {
	t.Parallel()
	s := newScripted()
	s.begun, s.extra, s.badDerived = &ledger.SnapshotProgress{At: 10, Pruned: true}, []string{"x"}, true
	result, found := s.verify(t, true, Selection{All: true})
	require.Contains(t, found, "active_contracts 7")
	require.Contains(t, s.calls, "repair derived")
	require.Zero(t, result.Remaining)
}

// What is not compared is said, and a range in which there can be nothing is refused.
func TestRangesWithNothingToCompare(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		selection Selection
		pruned    ledger.Offset
		hole      ledger.Range
		notes     int
		problem   bool
	}{
		"from beyond the watermark":    {selection: Selection{From: offset(101)}, problem: true},
		"up to below the floor":        {selection: Selection{To: offset(9)}, problem: true},
		"from the watermark":           {selection: Selection{From: offset(100)}, notes: 1},
		"up to the floor":              {selection: Selection{To: offset(10)}, notes: 1},
		"a sample of what is pruned":   {selection: Selection{Sample: 3}, pruned: 100, notes: 1},
		"a hole that is pruned":        {selection: Selection{From: offset(90)}, pruned: 50, hole: ledger.Range{From: 20, To: 30}, notes: 1},
		"a hole that is pruned partly": {selection: Selection{From: offset(90)}, pruned: 50, hole: ledger.Range{From: 20, To: 60}, notes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScripted()
			s.pruned = c.pruned
			if c.hole.To > 0 {
				s.holes = []ledger.Range{c.hole}
			}
			result, _, err := s.run(t, false, c.selection)
			if c.problem {
				requireProblem(t, err, "between the history floor, 10, and the watermark, 100")
				return
			}
			require.NoError(t, err)
			notes := slices.DeleteFunc(result.Notes, func(note string) bool { return !strings.HasPrefix(note, "updates") })
			require.Len(t, notes, c.notes)
			for at := range s.readOffsets {
				require.Greater(t, at, c.pruned)
			}
		})
	}
}

// Names and updates that the comparison of what follows shows to be wrong are read again, in order and neighbours
// together.
func TestWhatIsSuspectIsReadAgain(t *testing.T) {
	t.Parallel()
	s := newScripted()
	for _, at := range []ledger.Offset{40, 22, 41, 42} {
		s.derived = append(s.derived, Difference{Kind: Missing, Relation: "updates", Offset: at, Derived: true})
	}
	s.derived = append(s.derived, Difference{Kind: Altered, Relation: "templates", Column: "module_name", Offset: 70, Derived: true})
	for _, at := range []ledger.Offset{22, 40, 41, 42, 70} {
		s.badOffsets[at] = true
	}
	result, _ := s.verify(t, true, Selection{From: offset(95)})
	require.Equal(t, []string{"repair 21 to 22", "repair 39 to 42", "repair 69 to 70", "repair derived"}, s.calls[:4])
	require.Empty(t, s.badOffsets)
	require.Zero(t, result.Remaining)

	var many suspects
	for at := range ledger.Offset(2 * mostDoubtful) {
		many.add(2 * at)
	}
	require.Len(t, many.ranges(), mostDoubtful)
	require.True(t, many.more)
}

// A row that follows from nothing may be all that is left of an event that is lost: what it followed from is read again
// before it goes.
func TestWhatARowFollowsFromIsReadAgainBeforeItGoes(t *testing.T) {
	t.Parallel()
	extra := func(relation string, at ledger.Offset) Difference {
		return Difference{Kind: Extra, Relation: relation, Offset: at, Derived: true}
	}
	s := newScripted()
	s.begun = &ledger.SnapshotProgress{At: 10}
	ended := extra("lifetimes", 40)
	ended.Since = 30
	s.derived = []Difference{extra("active_contracts", 7), ended, extra("active_contracts", 70)}
	s.badOffsets[30], s.badOffsets[70] = true, true
	result, _ := s.verify(t, true, Selection{From: offset(95)})
	require.Equal(t, []string{"repair 29 to 30", "repair 69 to 70", "snapshot at 10", "carried at 10, 0 after 0", "repair derived"}, s.calls[:min(5, len(s.calls))])
	require.Zero(t, result.Remaining)

	s = newScripted()
	for at := range ledger.Offset(mostDoubtful + 1) {
		s.derived = append(s.derived, extra("active_contracts", 11+2*at))
	}
	result, _ = s.verify(t, true, Selection{From: offset(95)})
	require.NotContains(t, s.calls, "repair derived", "some were not read again")
	require.EqualValues(t, mostDoubtful+1, result.Remaining)
	require.Contains(t, strings.Join(result.Notes, "\n"), "run `indexer verify --all --repair`")
}

// What is stored beyond all claims, and can't be read again, is not removed.
func TestWhatCannotBeReadAgainIsNotRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // it waits for the watermark
		s := newScripted()
		s.pruned, s.end = 105, 200
		s.derived = []Difference{{Kind: Extra, Relation: "updates", Offset: 103, Derived: true}}
		_, _, err := s.run(t, true, Selection{Sample: 3})
		requireProblem(t, err, "offset 103", "pruned its ledger up to offset 105")
		require.Empty(t, s.calls)

		s.pruned = 102 // it can be read again
		_, _, err = s.run(t, true, Selection{Sample: 3})
		require.NoError(t, err)
		require.Contains(t, s.calls, "repair derived")
	})
}

// A repair that took too long would do so again.
func TestARepairThatTakesTooLongIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	s := newScripted()
	s.tooSlow, s.badOffsets[33] = true, true
	_, _, err := s.run(t, true, Selection{All: true})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, []string{"repair 31 to 38"}, s.calls)
}

// The database does not know what was active before it begins.
func TestTheActiveSetBelowTheFloorIsNotCompared(t *testing.T) {
	t.Parallel()
	s := newScripted()
	s.end, s.forked = 5, 0
	result, _ := s.verify(t, false, Selection{Sample: 1})
	require.Zero(t, result.ActiveAt)
	require.Contains(t, strings.Join(result.Notes, "\n"), "before offset 10, from where the active set is known")
}

func TestTheActiveSetOfASourceWithoutSnapshotsIsNotCompared(t *testing.T) {
	t.Parallel()
	s := newScripted()
	s.noSnapshots = true
	result, _ := s.verify(t, false, Selection{Sample: 1})
	require.Zero(t, result.ActiveAt)
	require.True(t, result.Compared)
	require.Contains(t, strings.Join(result.Notes, "\n"), "the active set: the participant has no snapshots")
}
