package audit

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"ledgerindexer/ingest"
)

// When the background task SealTask compares and seals.
const (
	// A full window is sealed at once, one that is not full at most once in this time.
	longestOpen = 10 * time.Minute
	// How often to look for windows to seal when there are none.
	lookEvery = 10 * time.Second
	// fullWindow is how many updates or records a full window has.
	fullWindow = 1000
	// sealBytes is about how many bytes of JSON a window has at most: all of it is in memory when it is compared.
	sealBytes = 8 << 20
)

// SealTask is the background task that compares what is stored with its source again, window by window, and seals each
// window with a digest of its rows. Its rate is limited.
type SealTask struct {
	// Rate is how many updates, entries of a snapshot or records are read per second at most, at least 1.
	Rate int
	// Window is how many updates or records a full window has; 0: fullWindow.
	Window int64
	Logger *slog.Logger
	// Sealed, if set, is called for each window that was sealed.
	Sealed func(SealedWindow)
	// Working, if set, is called after each window, or part of one, and when nothing is to be sealed.
	Working func()
	// Finish, if not nil, is closed when nothing comes any more that is to be sealed: what is left is then sealed, and Run
	// ends. What the source does not show now is left to another run.
	Finish <-chan struct{}

	streams []sealStream
	turn    int       // how many streams were looked at: they take turns
	next    time.Time // when the source may be read again
	unseen  bool      // a warning was logged that the source does not show everything any more
	lacking bool      // a warning was logged that the source shows values where none is stored
	renders bool      // it was logged that the source renders interface views otherwise
}

// SealedWindow is the result of sealing a window.
type SealedWindow struct {
	Stream   string
	From, To int64 // from exclusive
	// why nothing was compared: SealNotShown or SealPruned; empty: the window was
	Unseen SealResult
	Comparison
}

// Result returns the result as ledger.verifications shows it, except that there a window that differed before it could
// not be compared any more stays different.
func (s SealedWindow) Result() SealResult {
	return cmp.Or(s.Unseen, s.Comparison.Result())
}

// sealStream is something that is sealed in windows: the updates, the snapshot, or the transaction history.
type sealStream interface {
	// window returns the next window to seal; nil: none.
	window(ctx context.Context) (*Window, error)
	// seal compares a window, or a part of it, and seals it. ok is false if the window has to wait, or if only a part was
	// compared: then the stream's next turn compares the next part.
	seal(ctx context.Context, w Window) (sealing SealedWindow, ok bool, err error)
	// memory returns the state of the stream.
	memory() *sealMemory
}

type sealMemory struct {
	again    int64     // windows from here on that differed are compared again
	known    int64     // there are no holes before the window that begins here
	shortAt  time.Time // when a window that was not full was last sealed; zero: never, so the first does not wait
	waitTill time.Time // the stream's next turn is not before this
	partly   bool      // a part of the window was compared, and more of it is left
}

func (m *sealMemory) memory() *sealMemory { return m }

// Run works until ctx ends (nil), all is sealed after Finish (nil), or something fails. It may be called again after an
// error.
func (s *SealTask) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		last := ingest.Finishing(s.Finish)
		sealed, err := s.step(ctx, last)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if s.Working != nil {
			s.Working()
		}
		switch {
		case sealed:
		case !last:
			ingest.SleepOr(ctx, lookEvery, s.Finish, nil)
		default: // what has to wait is for the next run
			return nil
		}
	}
	return nil
}

// step seals a window, or compares a part of it, in the next stream that has one. It reports whether there was one.
// With last, a window that is not full waits for nothing.
func (s *SealTask) step(ctx context.Context, last bool) (bool, error) {
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
		if w == nil || !w.Full && !last && time.Since(m.shortAt) < longestOpen {
			continue
		}
		sealing, ok, err := stream.seal(ctx, *w)
		if err != nil {
			return false, err
		}
		if m.partly {
			return true, nil
		}
		if !ok {
			m.waitTill = time.Now().Add(longestOpen)
			continue
		}
		if !w.Again {
			m.known = sealing.From
		}
		m.again = max(m.again, sealing.To) // this run has compared everything up to here
		if !w.Full && sealing.To == w.To {
			m.shortAt = time.Now()
		}
		s.report(ctx, sealing)
		return true, nil
	}
	return false, nil
}

// report logs a sealed window, and passes it to Sealed.
func (s *SealTask) report(ctx context.Context, sealing SealedWindow) {
	switch {
	case sealing.Unseen != "":
		if s.unseen || sealing.Unseen == SealPruned { // whoever pruned knows
			break
		}
		s.unseen = true
		s.Logger.WarnContext(ctx,
			"the source does not show any more what was not verified yet; it is sealed without being compared",
			"stream", sealing.Stream, "after", sealing.From, "up_to", sealing.To)
	case sealing.Differences > sealing.Lacking:
		s.Logger.ErrorContext(ctx,
			"what is stored differs from what the source shows; `indexer verify --repair` writes it again",
			"stream", sealing.Stream, "after", sealing.From, "up_to", sealing.To, "differences", sealing.Differences, "first",
			sentences(sealing.First))
	case sealing.Lacking > 0 && !s.lacking: // mostly the same in all earlier windows, so logged once
		s.lacking = true
		s.Logger.WarnContext(ctx,
			"the source shows values where none is stored, as a participant does that was upgraded since; "+
				"they are counted as differences, and `indexer verify --repair` writes them",
			"stream", sealing.Stream, "after", sealing.From, "up_to", sealing.To, "differences", sealing.Differences, "first",
			sentences(sealing.First))
	}
	if sealing.Rendered > 0 && !s.renders { // likewise
		s.renders = true
		s.Logger.InfoContext(ctx, "the source renders interface views otherwise than when they were stored, as a "+
			"participant does that prefers another package since; that is no difference, and `indexer verify --repair` stores "+
			"them as they are shown now",
			"stream", sealing.Stream, "after", sealing.From, "up_to", sealing.To, "views", sealing.Rendered, "first",
			sentences(sealing.AsRendered))
	}
	if s.Sealed != nil {
		s.Sealed(sealing)
	}
}

func sentences(list []Difference) (texts []string) {
	for _, d := range list {
		texts = append(texts, d.String())
	}
	return texts
}

// size returns how many updates or records a full window has.
func (s *SealTask) size() int64 { return cmp.Or(s.Window, fullWindow) }

// wait waits until the rate allows another read.
func (s *SealTask) wait(ctx context.Context) { ingest.Sleep(ctx, time.Until(s.next)) }

// spent counts n elements that were just read.
func (s *SealTask) spent(n int) {
	now := time.Now()
	if s.next.Before(now) {
		s.next = now
	}
	s.next = s.next.Add(time.Duration(n) * time.Second / time.Duration(s.Rate))
}

// sealUnseen seals a window that can't be compared.
func (s *SealTask) sealUnseen(ctx context.Context, database *Sealer, stream string, w Window,
	why SealResult) (SealedWindow, bool, error) {
	s.wait(ctx)
	s.spent(int(s.size())) // the database has to read as much
	err := database.SealUnseen(ctx, stream, w.From, w.To, why)
	return SealedWindow{Stream: stream, From: w.From, To: w.To, Unseen: why}, err == nil, err
}
