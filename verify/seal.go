package verify

import (
	"context"
	"log/slog"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

const (
	// A window is sealed when so many updates or records are in it, or when none with fewer was sealed for so long.
	windowSize  = 1000
	longestOpen = 10 * time.Minute
	// How often it is looked whether there is something to seal.
	lookEvery = 10 * time.Second
)

// Seals is the task that compares what was stored with its source again, window by window, and seals each with a digest of
// its rows. It works beside the stream at a bounded rate, for as long as this process leads it.
type Seals struct {
	// Rate is how many updates, entries of a snapshot or records are read per second, at most; at least 1.
	Rate   int
	Logger *slog.Logger
	// Sealed, if set, is told of each window that was sealed.
	Sealed func(Sealing)
	// Working, if set, is told when there was something to seal and it was sealed, or nothing is to be sealed now.
	Working func()

	streams []sealStream
	turn    int       // of the next stream that is looked at
	next    time.Time // when the source may be read again
	unseen  bool      // it was said that the source does not show everything any more
	lacking bool      // it was said that the source shows values where none is stored
}

// Sealing is what became of a window.
type Sealing struct {
	Stream   string
	From, To int64 // from exclusive
	Shown    bool  // false: its source does not show it any more, so nothing was compared
	ledger.Comparison
}

// Result is as ledger.verifications has it, but that a window which differed before it was not shown stays different.
func (s Sealing) Result() ledger.SealResult {
	if !s.Shown {
		return ledger.SealNotShown
	}
	return s.Comparison.Result()
}

// SealDatabase is where windows are looked for, and what is compared with a source besides.
type SealDatabase interface {
	// NextWindow is what is to be sealed next of a stream: a range that no window claims yet, with at most size updates or
	// records, or a window that has to be compared again: it was repaired in part, or it begins at again or behind it and
	// differed. Holes before the window that begins at known are not looked for. nil: nothing.
	NextWindow(ctx context.Context, stream string, size, again, known int64) (*ledger.Window, error)
	// SnapshotWindow is NextWindow of the snapshot that is carried: its one window, up to its offset.
	SnapshotWindow(ctx context.Context, again int64) (*ledger.Window, error)
	// SnapshotRows is a digest of all rows that the snapshot at an offset brought.
	SnapshotRows(ctx context.Context, at ledger.Offset) (ledger.RowsDigest, error)
	// CompareCarried and CarriedAt are as UpdateDatabase has them.
	CompareCarried(ctx context.Context, at ledger.Offset, before int64, entries []ledger.ContractEntry, met func(key string), found Found) error
	CarriedAt(ctx context.Context, at ledger.Offset, each func(key string, extra ledger.Difference) error) error
}

// Sealer seals windows, each in one transaction that reads just the rows that it seals. After an error the outcome is
// unknown: the database is asked for the next window again.
type Sealer interface {
	// SealUpdates compares a page with what is stored of its range, and seals that.
	SealUpdates(ctx context.Context, page ledger.Page) (ledger.Comparison, error)
	// SealRecords does so for as many seqs after one as there are records, with those that their service shows there in its order.
	SealRecords(ctx context.Context, after int64, records []ledger.Transaction) (ledger.Comparison, error)
	// SealSnapshot seals what the snapshot brought, with what came of comparing it, if nothing was repaired since SnapshotRows
	// told the digest; else ok is false.
	SealSnapshot(ctx context.Context, at ledger.Offset, digest ledger.RowsDigest, c ledger.Comparison) (ok bool, err error)
	// SealNotShown seals a window that can't be compared.
	SealNotShown(ctx context.Context, stream string, from, to int64) error
}

// sealStream is a stream of windows.
type sealStream interface {
	// window is what to seal next; nil: nothing.
	window(ctx context.Context) (*ledger.Window, error)
	// seal compares a window, or as much of it as is read at once, and seals it. ok is false where that has to wait, or where
	// it goes on in the stream's next turn.
	seal(ctx context.Context, w ledger.Window) (sealing Sealing, ok bool, err error)
	// memory is what was done so far.
	memory() *sealMemory
}

// sealMemory is what is remembered of a stream.
type sealMemory struct {
	again    int64     // windows from here on that differed are compared again
	known    int64     // the window that begins here has no holes before it
	shortAt  time.Time // when a window that was not full was sealed last; zero: none was, and the first does not wait
	waitTill time.Time // not before this it is looked at again
	goesOn   bool      // a part of a window was compared; the next one is to be
}

func (m *sealMemory) memory() *sealMemory { return m }

// Run works until ctx ends, which is no error, or something fails. It may be called again then.
func (s *Seals) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		sealed, err := s.step(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if s.Working != nil {
			s.Working()
		}
		if !sealed {
			ingest.Sleep(ctx, lookEvery)
		}
	}
	return nil
}

// step seals a window that is to be sealed now, or compares a part of it; false: there is none. The streams take turns.
func (s *Seals) step(ctx context.Context) (bool, error) {
	for range s.streams {
		stream := s.streams[s.turn%len(s.streams)]
		s.turn++
		m := stream.memory()
		if time.Now().Before(m.waitTill) {
			continue
		}
		w, err := stream.window(ctx)
		if err != nil {
			return false, err
		}
		if w == nil || !w.Full && time.Since(m.shortAt) < longestOpen {
			continue
		}
		sealing, ok, err := stream.seal(ctx, *w)
		if err != nil {
			return false, err
		}
		if m.goesOn {
			return true, nil
		}
		if !ok {
			m.waitTill = time.Now().Add(longestOpen)
			continue
		}
		if !w.Again {
			m.known = sealing.From
		}
		m.again = max(m.again, sealing.To) // what is behind was compared again, or just now
		if !w.Full && sealing.To == w.To {
			m.shortAt = time.Now()
		}
		s.tell(ctx, sealing)
		return true, nil
	}
	return false, nil
}

// tell says what is to be known of a window.
func (s *Seals) tell(ctx context.Context, sealing Sealing) {
	switch {
	case !sealing.Shown:
		if s.unseen {
			break
		}
		s.unseen = true
		s.Logger.WarnContext(ctx, "the source does not show any more what was not verified yet; it is sealed without being compared",
			"stream", sealing.Stream, "after", sealing.From, "up_to", sealing.To)
	case sealing.Differences > sealing.Lacking:
		s.Logger.ErrorContext(ctx, "what is stored differs from what the source shows; `indexer verify --repair` writes it again",
			"stream", sealing.Stream, "after", sealing.From, "up_to", sealing.To, "differences", sealing.Differences, "first", sentences(sealing.First))
	case sealing.Lacking > 0 && !s.lacking: // in every window of before, mostly
		s.lacking = true
		s.Logger.WarnContext(ctx, "the source shows values where none is stored, as a participant does that was upgraded since; "+
			"they are counted as differences, and `indexer verify --repair` writes them",
			"stream", sealing.Stream, "after", sealing.From, "up_to", sealing.To, "differences", sealing.Differences, "first", sentences(sealing.First))
	}
	if s.Sealed != nil {
		s.Sealed(sealing)
	}
}

func sentences(list []ledger.Difference) (texts []string) {
	for _, d := range list {
		texts = append(texts, d.String())
	}
	return texts
}

// pace waits until the source may be read again.
func (s *Seals) pace(ctx context.Context) { ingest.Sleep(ctx, time.Until(s.next)) }

// spent counts what was read of the source just now.
func (s *Seals) spent(n int) {
	now := time.Now()
	if s.next.Before(now) {
		s.next = now
	}
	s.next = s.next.Add(time.Duration(n) * time.Second / time.Duration(s.Rate))
}

// AddUpdates adds a participant's updates to what is sealed, and the snapshot that is carried.
func (s *Seals) AddUpdates(source UpdateSource, database SealDatabase, sealer Sealer) {
	source = &inRanges{UpdateSource: source, logger: s.Logger}
	s.streams = append(s.streams,
		&snapshotSeals{Seals: s, source: source, database: database, sealer: sealer},
		&updateSeals{Seals: s, source: source, database: database, sealer: sealer})
}

// AddTransactions adds the transaction history.
func (s *Seals) AddTransactions(source ingest.HistorySource, history HistoryDatabase, database SealDatabase, sealer Sealer) {
	s.streams = append(s.streams, &recordSeals{Seals: s, source: source, history: history, database: database, sealer: sealer})
}
