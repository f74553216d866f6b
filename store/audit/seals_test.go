package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/tables"
)

// sealScript is a participant and a database whose offsets have an update each, and what was sealed of them.
type sealScript struct {
	// What seals holds it while it asks; the test all the time but when it waits, so that neither sees the other at work.
	mu   sync.Mutex
	held bool // by the test

	UpdateSource
	ingest.TransactionsSource

	pruned, watermark ledger.Offset
	page              ledger.Offset // how many offsets a request brings, at most
	widest            ledger.Offset // that the server can look through in time; 0: any range
	bytes             int64         // of an update
	bad               map[int64]bool
	lacking           bool           // what is bad is not stored at all
	failures          map[string]int // by what fails, how often
	snapshot          *Window        // not sealed yet
	entries           int            // of the snapshot
	refused           error          // to the reading of the snapshot
	standing          ledger.TransactionsPosition
	behind            bool // the service shows nothing of the history
	changed           bool // a repair changes the snapshot while it is compared

	windows map[string][]sealedWindow
	looks   []time.Time // when it was looked for updates to seal
	reads   []time.Time
	began   time.Time
	log     bytes.Buffer
}

type sealedWindow struct {
	from, to int64
	result   string
	again    bool // to be compared again, as it was repaired
	times    int  // how often it was sealed
}

func newSealScript(watermark ledger.Offset) *sealScript {
	return &sealScript{
		watermark: watermark, page: 200, bad: map[int64]bool{}, failures: map[string]int{}, began: time.Now(),
		windows: map[string][]sealedWindow{},
	}
}

// fails reports whether a call is to fail.
func (s *sealScript) fails(what string) error {
	if s.failures[what] == 0 {
		return nil
	}
	s.failures[what]--
	return errors.New(what + " failed")
}

func (s *sealScript) PrunedOffset(context.Context) (ledger.Offset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pruned == 0 {
		return 0, ledger.ErrNotOffered
	}
	return s.pruned, s.fails("prunedOffset")
}

func (s *sealScript) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = append(s.reads, time.Now())
	if s.widest > 0 && to-after > s.widest {
		s.mu.Unlock()
		ingest.Sleep(ctx, 20*time.Second)
		s.mu.Lock()
		return ledger.Page{}, errors.New("no timely response")
	}
	if err := errors.Join(ctx.Err(), s.fails("ReadUpdates")); err != nil {
		return ledger.Page{}, err
	}
	to = min(to, after+s.page)
	return ledger.Page{From: after, To: to, Updates: make([]ledger.Update, to-after), Bytes: s.bytes * int64(to-after)}, nil
}

func (s *sealScript) SnapshotOffset(_ context.Context, upTo ledger.Offset) (ledger.Offset, error) {
	return upTo, nil
}

func (s *sealScript) ReadSnapshot(_ context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = append(s.reads, time.Now())
	return ledger.SnapshotPage{Entries: make([]ledger.ContractEntry, s.entries), Last: true}, s.refused
}

func (s *sealScript) TransactionsAfter(_ context.Context, after ledger.TransactionsCursor) ([]ledger.Transaction, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = append(s.reads, time.Now())
	if s.behind {
		return nil, nil
	}
	seq := int64(0)
	_, _ = fmt.Sscan(string(after), &seq)
	var records []ledger.Transaction
	for range s.page {
		seq++
		records = append(records, recordOf(seq))
	}
	return records, s.fails("TransactionsAfter")
}

func recordOf(seq int64) ledger.Transaction {
	return ledger.Transaction{EventID: fmt.Sprint(seq), Raw: ledger.JSON(fmt.Sprintf(`{"event_id": "%d"}`, seq))}
}

func (s *sealScript) NewestTransactions(context.Context, int) ([]ledger.Transaction, error) {
	return nil, nil
}

func (s *sealScript) TransactionsStanding(context.Context) (ledger.TransactionsPosition, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.standing, "", nil
}

func (s *sealScript) TransactionsMarks(_ context.Context, upTo int64) (marks []ledger.TransactionsMark, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for seq := max(0, upTo-100) + 1; seq <= upTo; seq++ {
		record := recordOf(seq)
		marks = append(marks, ledger.TransactionsMark{Cursor: record.Cursor(), Fingerprint: record.Fingerprint(), Unique: true})
	}
	return marks, nil
}

func (s *sealScript) NextWindow(_ context.Context, stream string, size, again, known int64) (*Window, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := int64(s.watermark)
	if stream == tables.StreamTransactions {
		last = s.standing.LastSeq
	} else {
		s.looks = append(s.looks, time.Now())
	}
	at := int64(0)
	for _, w := range s.windows[stream] {
		if w.again || w.result == "different" && w.from >= again {
			return &Window{From: w.from, To: w.to, Full: true, Again: true}, nil
		}
	}
	for _, w := range s.windows[stream] {
		if w.from < known { // as if there were no hole
			at = w.to
			continue
		}
		if w.from > at {
			return &Window{From: at, To: min(w.from, at+size), Full: true}, nil
		}
		at = w.to
	}
	if at >= last {
		return nil, s.fails("NextWindow")
	}
	return &Window{From: at, To: min(last, at+size), Full: last-at >= size}, s.fails("NextWindow")
}

func (s *sealScript) SnapshotWindow(_ context.Context, again int64) (*Window, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sealed := s.windows[tables.StreamSnapshot]
	if len(sealed) == 0 {
		return s.snapshot, nil
	}
	w := sealed[0]
	if !w.again && (w.result != "different" || w.from < again) {
		return nil, nil
	}
	return &Window{From: w.from, To: w.to, Full: true, Again: true}, nil
}

func (s *sealScript) SnapshotRows(context.Context, ledger.Offset) (RowsDigest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed {
		s.changed = false
		return RowsDigest{Repairs: "before"}, nil
	}
	return RowsDigest{}, nil
}

func (s *sealScript) CompareCarried(_ context.Context, _ ledger.Offset, _ int64, _ []ledger.ContractEntry, _ func(string), found Found) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bad[0] {
		return found(Difference{Kind: Missing, Relation: "created"})
	}
	return nil
}

func (s *sealScript) CarriedAt(context.Context, ledger.Offset, func(string, Difference) error) error {
	return nil
}

func (s *sealScript) SealUpdates(_ context.Context, page ledger.Page) (Comparison, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compare(tables.StreamUpdates, int64(page.From), int64(page.To))
}

func (s *sealScript) SealRecords(_ context.Context, from int64, records []ledger.Transaction) (Comparison, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compare(tables.StreamTransactions, from, from+int64(len(records)))
}

func (s *sealScript) SealSnapshot(_ context.Context, at ledger.Offset, digest RowsDigest, c Comparison) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if digest.Repairs != "" {
		return false, nil
	}
	s.seal(tables.StreamSnapshot, 0, int64(at), Sealing{Comparison: c}.Result())
	return true, nil
}

func (s *sealScript) SealUnseen(_ context.Context, stream string, from, to int64, why SealResult) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fails("SealUnseen"); err != nil {
		return err
	}
	s.seal(stream, from, to, why)
	return nil
}

func (s *sealScript) compare(stream string, from, to int64) (c Comparison, _ error) {
	value := "value"
	for at := from + 1; at <= to; at++ {
		if s.bad[at] {
			d := Difference{Kind: Altered, Relation: "updates", Offset: ledger.Offset(at), Column: "workflow_id", Wanted: &value}
			if !s.lacking {
				d.Stored, d.Wanted = &value, nil
			}
			_ = c.Add(d)
		}
	}
	if err := s.fails("Seal"); err != nil {
		return c, err
	}
	s.seal(stream, from, to, Sealing{Comparison: c}.Result())
	return c, s.fails("the answer to Seal")
}

func (s *sealScript) seal(stream string, from, to int64, result SealResult) {
	list := s.windows[stream]
	i, found := slices.BinarySearchFunc(list, from, func(w sealedWindow, from int64) int { return int(w.from - from) })
	if !found {
		list = slices.Insert(list, i, sealedWindow{from: from})
	}
	list[i].to, list[i].result, list[i].again, list[i].times = to, string(result), false, list[i].times+1
	s.windows[stream] = list
}

// of lists the windows of a stream, each with how often it was sealed if that is more than once.
func (s *sealScript) of(stream string) (list []string) {
	for _, w := range s.windows[stream] {
		text := fmt.Sprintf("%d-%d %s", w.from, w.to, w.result)
		if w.times > 1 {
			text += fmt.Sprintf(" (%d)", w.times)
		}
		list = append(list, text)
	}
	return list
}

func (s *sealScript) lines(message string) int { return strings.Count(s.log.String(), message) }

func (s *sealScript) seals(rate int) *Seals {
	return &Seals{Rate: func() int { return rate }, Logger: slog.New(slog.NewTextHandler(&s.log, nil))}
}

// follow seals the updates until it is ended, or the test is; what fails is tried again after a second.
func (s *sealScript) follow(t *testing.T, rate int) (end func()) {
	t.Helper()
	seals := s.seals(rate)
	seals.AddUpdates(s, s)
	return s.start(t, seals)
}

func (s *sealScript) followTransactions(t *testing.T) {
	t.Helper()
	seals := s.seals(100_000)
	seals.AddTransactions(s, s)
	s.start(t, seals)
}

func (s *sealScript) start(t *testing.T, seals *Seals) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for seals.Run(ctx) != nil {
			ingest.Sleep(ctx, time.Second)
		}
	}()
	end = sync.OnceFunc(func() {
		cancel()
		began := time.Now()
		if s.held { // it may be about to ask
			s.mu.Unlock()
			defer s.mu.Lock()
		}
		<-done
		require.Zero(t, time.Since(began), "it ends at once")
	})
	t.Cleanup(end)
	return end
}

// scriptedSeals runs a test in time of its own. What is after a wait has settled.
func scriptedSeals(t *testing.T, watermark ledger.Offset, test func(t *testing.T, s *sealScript, wait func(time.Duration))) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSealScript(watermark)
		s.mu.Lock()
		s.held = true
		defer func() {
			s.held = false
			s.mu.Unlock()
		}()
		test(t, s, func(d time.Duration) {
			s.mu.Unlock()
			time.Sleep(d)
			synctest.Wait()
			s.mu.Lock()
		})
	})
}

// Full windows are sealed at once, and the rest of the first look too; later a rest waits until it is ten minutes that
// there was one.
func TestARestWaits(t *testing.T) {
	scriptedSeals(t, 2300, func(t *testing.T, s *sealScript, wait func(time.Duration)) {
		s.follow(t, 100_000)
		wait(time.Second)
		require.Equal(t, []string{"0-1000 equal", "1000-2000 equal", "2000-2300 equal"}, s.of("updates"))
		s.watermark = 2310
		wait(longestOpen - time.Minute)
		require.Len(t, s.of("updates"), 3, "too few, too soon")
		s.watermark = 3350
		wait(lookEvery)
		require.Equal(t, []string{"2300-3300 equal"}, s.of("updates")[3:], "full")
		wait(time.Minute)
		require.Equal(t, []string{"2300-3300 equal", "3300-3350 equal"}, s.of("updates")[3:])
		looks := len(s.looks)
		wait(time.Minute)
		require.Equal(t, 6, len(s.looks)-looks, "it is looked rarely where there is nothing")
	})
}

// No more is read per second than it may.
func TestTheRateIsKept(t *testing.T) {
	scriptedSeals(t, 10_000, func(t *testing.T, s *sealScript, wait func(time.Duration)) {
		s.follow(t, 100)
		for second := range 60 {
			wait(time.Second)
			require.LessOrEqual(t, len(s.reads)*int(s.page), 100*(second+1)+int(s.page), "after %d s", second+1)
		}
		require.Equal(t, []string{"0-1000 equal", "1000-2000 equal", "2000-3000 equal", "3000-4000 equal", "4000-5000 equal", "5000-6000 equal"}, s.of("updates"))
	})
}

// A window that the server can't look through in time is read in pieces.
func TestAWindowThatIsTooWideForTheServer(t *testing.T) {
	scriptedSeals(t, 2000, func(t *testing.T, s *sealScript, wait func(time.Duration)) {
		s.page, s.widest = 2000, 130
		s.follow(t, 100_000)
		wait(time.Hour)
		require.Equal(t, []string{"0-1000 equal", "1000-2000 equal"}, s.of("updates"))
	})
}

// A window of large updates ends sooner, and the next one begins there.
func TestLargeUpdatesMakeSmallWindows(t *testing.T) {
	scriptedSeals(t, 768, func(t *testing.T, s *sealScript, wait func(time.Duration)) {
		s.page, s.bytes = 128, windowBytes/256
		s.follow(t, 100_000)
		wait(time.Second)
		require.Equal(t, []string{"0-256 equal", "256-512 equal", "512-768 equal"}, s.of("updates"))
	})
}

// Where one answer has all updates of a window, and they are large, the next windows have fewer, so that their answers
// are smaller.
func TestLargeUpdatesInOneAnswer(t *testing.T) {
	scriptedSeals(t, 1512, func(t *testing.T, s *sealScript, wait func(time.Duration)) {
		s.page, s.bytes = 2000, windowBytes/256
		s.follow(t, 100_000)
		wait(time.Second)
		require.Equal(t, []string{"0-1000 equal", "1000-1256 equal", "1256-1512 equal"}, s.of("updates"))
	})
}

// Holes are filled, and no window overlaps with another.
func TestHolesBetweenWindowsAreSealed(t *testing.T) {
	scriptedSeals(t, 5000, func(t *testing.T, s *sealScript, wait func(time.Duration)) {
		s.windows["updates"] = []sealedWindow{{from: 1000, to: 2000, result: "equal"}, {from: 3500, to: 5000, result: "equal"}}
		s.follow(t, 100_000)
		wait(time.Second)
		require.Equal(t, []string{"0-1000 equal", "1000-2000 equal", "2000-3000 equal", "3000-3500 equal", "3500-5000 equal"}, s.of("updates"))
	})
}

// What differs is compared once when it is sealed, and once more by the next who seals; what was repaired, at once.
func TestWhatDiffersIsComparedOnceMore(t *testing.T) {
	scriptedSeals(t, 3000, func(t *testing.T, s *sealScript, wait func(time.Duration)) {
		s.bad[5], s.bad[2005] = true, true
		end := s.follow(t, 100_000)
		wait(time.Hour)
		require.Equal(t, []string{"0-1000 different", "1000-2000 equal", "2000-3000 different"}, s.of("updates"))
		require.Equal(t, 2, s.lines("what is stored differs"))
		end()
		s.bad[5] = false
		s.follow(t, 100_000)
		wait(time.Hour)
		require.Equal(t, []string{"0-1000 equal (2)", "1000-2000 equal", "2000-3000 different (2)"}, s.of("updates"))
		s.windows["updates"][1].again = true
		wait(lookEvery)
		require.Equal(t, []string{"0-1000 equal (2)", "1000-2000 equal (2)", "2000-3000 different (2)"}, s.of("updates"), "the others stay as they are")
	})
}

// Columns in which nothing is stored, and the source shows something, are said once, and are not said to be damage: a
// participant that was upgraded shows what it did not show before.
func TestWhatIsLackingIsSaidOnce(t *testing.T) {
	scriptedSeals(t, 3000, func(t *testing.T, s *sealScript, wait func(time.Duration)) {
		s.bad[5], s.bad[1005], s.bad[2005], s.lacking = true, true, true, true
		s.follow(t, 100_000)
		wait(time.Minute)
		require.Equal(t, []string{"0-1000 different", "1000-2000 different", "2000-3000 different"}, s.of("updates"))
		require.Equal(t, 1, s.lines("level=WARN"))
		require.Equal(t, 1, s.lines("the source shows values where none is stored"))
		require.Zero(t, s.lines("level=ERROR"))
	})
}

// What the participant has pruned is sealed as it is up to there, at a bounded rate, and said once.
func TestPrunedWindowsAreSealedUpToThere(t *testing.T) {
	scriptedSeals(t, 4000, func(t *testing.T, s *sealScript, wait func(time.Duration)) {
		s.pruned = 2500
		s.windows["updates"] = []sealedWindow{{from: 0, to: 1000, result: "equal"}, {from: 2200, to: 3000, result: "equal", again: true}}
		s.follow(t, 1000)
		wait(1500 * time.Millisecond)
		require.Equal(t, []string{"0-1000 equal", "1000-2000 not_shown", "2200-3000 not_shown"}, s.of("updates"), "a window that is compared again stays one")
		wait(10 * time.Second)
		require.Equal(t, []string{"0-1000 equal", "1000-2000 not_shown", "2000-2200 not_shown", "2200-3000 not_shown", "3000-4000 equal"}, s.of("updates"))
		require.Equal(t, 1, s.lines("does not show any more"))
	})
}

// Whatever fails, and wherever: it is tried again, and the windows are those that would have been.
func TestFailuresOfSealingAreTriedAgain(t *testing.T) {
	scriptedSeals(t, 3000, func(t *testing.T, s *sealScript, wait func(time.Duration)) {
		s.pruned = 500
		for _, what := range []string{"prunedOffset", "ReadUpdates", "NextWindow", "Seal", "the answer to Seal", "SealUnseen"} {
			s.failures[what] = 2
		}
		s.follow(t, 100_000)
		wait(time.Minute)
		require.Equal(t, []string{"0-500 not_shown", "500-1500 equal", "1500-2500 equal", "2500-3000 equal"}, s.of("updates"))
		for what, left := range s.failures {
			require.Zero(t, left, what)
		}
	})
}

// The snapshot has the first turn; one that is refused, or repaired meanwhile, does not hold them up.
func TestTheSnapshotHasTheFirstTurn(t *testing.T) {
	for name, c := range map[string]struct {
		script func(*sealScript)
		want   []string
		later  []string // after it was tried again
	}{
		"equal":              {func(*sealScript) {}, []string{"0-100 equal"}, []string{"0-100 equal"}},
		"different":          {func(s *sealScript) { s.bad[0] = true }, []string{"0-100 different"}, []string{"0-100 different"}},
		"pruned":             {func(s *sealScript) { s.pruned = 200 }, []string{"0-100 not_shown"}, []string{"0-100 not_shown"}},
		"refused":            {func(s *sealScript) { s.refused = &ledger.Problem{What: "no"} }, nil, nil},
		"repaired meanwhile": {func(s *sealScript) { s.changed = true }, nil, []string{"0-100 equal"}},
	} {
		t.Run(name, func(t *testing.T) {
			scriptedSeals(t, 1000, func(t *testing.T, s *sealScript, wait func(time.Duration)) {
				s.snapshot, s.entries = &Window{To: 100, Full: true}, 300
				c.script(s)
				s.follow(t, 100)
				wait(8 * time.Second)
				require.Equal(t, c.want, s.of("snapshot"))
				wait(30 * time.Second)
				require.NotEmpty(t, s.of("updates"))
				wait(3 * longestOpen)
				require.Equal(t, c.later, s.of("snapshot"))
				require.LessOrEqual(t, s.lines("can't be read again"), 1)
			})
		})
	}
}

// The history is sealed from its beginning; nothing while it is read again.
func TestTheHistoryIsSealedInItsOrder(t *testing.T) {
	scriptedSeals(t, 0, func(t *testing.T, s *sealScript, wait func(time.Duration)) {
		s.standing = ledger.TransactionsPosition{LastSeq: 1800, Rereading: true}
		s.followTransactions(t)
		wait(time.Minute)
		require.Empty(t, s.of("transactions"))
		require.Empty(t, s.reads)
		s.standing.Rereading = false
		wait(2 * longestOpen)
		require.Equal(t, []string{"0-1000 equal", "1000-1800 equal"}, s.of("transactions"))
	})
}

// A service that does not show a window may be behind: it is asked again before the window is sealed as not shown.
func TestAServiceThatIsBehindIsWaitedFor(t *testing.T) {
	scriptedSeals(t, 0, func(t *testing.T, s *sealScript, wait func(time.Duration)) {
		s.standing, s.behind = ledger.TransactionsPosition{LastSeq: 1000}, true
		s.followTransactions(t)
		wait(time.Minute + longestOpen)
		require.Empty(t, s.of("transactions"))
		s.behind = false
		wait(longestOpen)
		require.Equal(t, []string{"0-1000 equal"}, s.of("transactions"))
		s.standing.LastSeq, s.behind = 2000, true
		wait(time.Minute + longestOpen)
		require.Len(t, s.of("transactions"), 1)
		wait(2 * longestOpen)
		require.Equal(t, []string{"0-1000 equal", "1000-2000 not_shown"}, s.of("transactions"))
	})
}
