package ingest

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
)

// fillLoop fills in history below a ledger's end. Its memory holds all as written, and never shows it.
type fillLoop struct {
	*Fill
	ledger *script
	memory *memory
	source *fakeSource
	write  write
	faults *faults
}

// newFillLoop makes one. It is called inside a bubble, when the ledger has grown.
func newFillLoop(l *script, newestFirst bool) *fillLoop {
	f := &fillLoop{ledger: l, memory: begunAt(0), source: l.source()}
	f.write = f.memory.write
	f.Fill = &Fill{Source: f.source, Sink: fillSink{f}, NewestFirst: newestFirst, Logger: slog.New(slog.DiscardHandler)}
	return f
}

// fillSink is where a loop's history is filled in.
type fillSink struct{ *fillLoop }

// call makes a call of the sink, around which faults may be.
func (s fillSink) call(do func() error) error {
	if s.faults == nil {
		return do()
	}
	return s.faults.around(do)
}

func (s fillSink) LastUpdate(context.Context, ledger.Offset) (ledger.Offset, string, error) {
	return 0, "", nil
}

func (s fillSink) EarlierScope(context.Context) ([]ledger.EarlierRange, error) { return nil, nil }

func (s fillSink) RefillSnapshot(context.Context, ledger.Scope, ledger.Offset, int64, ledger.SnapshotPage) error {
	return nil
}

func (s fillSink) Refill(context.Context, ledger.Scope, ledger.Page) error {
	panic("nothing is of an earlier scope")
}

func (s fillSink) Compare(context.Context, ledger.Page, func(findings.Difference) error) error {
	return nil
}

func (s fillSink) Bounds(ctx context.Context) (bounds ledger.Bounds, started bool, err error) {
	err = s.call(ctx.Err)
	return ledger.Bounds{Floor: s.ledger.last(), Watermark: s.ledger.last()}, true, err
}

func (s fillSink) Unfilled(ctx context.Context, r ledger.Range) ([]ledger.Range, error) {
	stored, err := s.memory.ahead(ctx)
	return newPlan(&sizes{}, r.From, r.To, stored).missing, s.call(func() error { return err })
}

func (s fillSink) Fill(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
	return s.call(func() error { return s.write(ctx, scope, pages) })
}

func (s fillSink) FillState(ctx context.Context) (at, end ledger.Offset, done bool, err error) {
	return 0, 0, true, s.call(ctx.Err)
}

// filled are the updates that are stored, in order.
func (f *fillLoop) filled() (offsets []ledger.Offset) {
	for _, updates := range f.memory.unshown {
		for i := range updates {
			offsets = append(offsets, updates[i].Offset)
		}
	}
	slices.Sort(offsets)
	return offsets
}

// Whatever fails, before or after it had its effect, however long things take, however the updates lie and whatever was
// stored before: in the end every update is there exactly once, and no more was held in memory, or asked for, than is
// allowed.
func TestHistoryIsFilledInExactlyOnceUnderRandomFaults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		often := rapid.Float64Range(0, 0.2).Draw(rt, "often")
		pageSize := rapid.IntRange(5, 300).Draw(rt, "page size")
		restarts := rapid.IntRange(0, 3).Draw(rt, "restarts")
		maxRequests := rapid.IntRange(1, 12).Draw(rt, "requests")
		newestFirst := rapid.Bool().Draw(rt, "newest first")
		var f *fillLoop
		s := &scales{}
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			history := newScript(10)
			history.pageSize, history.updateBytes, history.largeEvery = pageSize, 1<<random.IntN(16), 1+random.IntN(3000)
			for range 1 + random.IntN(3) {
				history.stretches(random)
			}
			f = newFillLoop(history, newestFirst)
			f.MaxRequests = maxRequests
			for at := ledger.Offset(0); at < history.last(); { // what was filled in before
				at += 1 + ledger.Offset(random.Int64N(int64(history.last())))
				to := min(history.last(), at+ledger.Offset(random.IntN(300)))
				if at < to {
					stored := ledger.Page{From: at, To: to, Updates: history.between(at, to, 1<<30)}
					if err := f.memory.write(t.Context(), f.Scope, []ledger.Page{stored}); err != nil {
						t.Error(err)
					}
				}
				at = to
			}
			faults := newFaults(seed, often)
			slow := func() time.Duration {
				if faults.below(50) == 0 {
					return time.Duration(faults.below(20_000)) * time.Millisecond
				}
				return time.Duration(faults.below(30)) * time.Millisecond
			}
			s.reads(f.source, slow)
			f.write = s.writes(f.write, slow)
			f.faults = faults
			faults.disturbSource(f.source)
			for i := range restarts + 1 {
				ctx, stop := context.WithCancel(t.Context())
				if i < restarts {
					time.AfterFunc(time.Duration(faults.below(6000))*time.Millisecond, stop)
				} else {
					time.AfterFunc(time.Minute, faults.stop)
				}
				if _, err := f.Run(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("ended with %v", err)
				}
				stop()
				if i < restarts {
					s.drop()
				}
			}
		})
		requireAll(rt, f.ledger.all(), f.filled())
		require.Empty(rt, f.memory.mistakes)
		require.LessOrEqual(rt, s.mostFlight, maxRequests)
		if often == 0 && restarts == 0 {
			require.LessOrEqual(rt, s.most, max(int64(bytesInFlight), s.largestPage)+s.largestPage)
		}
	})
}

// History is filled in from where it is asked to begin: whatever is written, next to nothing is missing between there
// and the end.
func TestHistoryIsFilledInFromOneEnd(t *testing.T) {
	for name, newestFirst := range map[string]bool{"oldest first": false, "newest first": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				history := newScript(60_000)
				history.pageSize, history.updateBytes = 200, 2800
				f := newFillLoop(history, newestFirst)
				random := newFaults(1, 0)
				s := &scales{}
				s.reads(f.source, func() time.Duration { return time.Duration(10+random.below(20)) * time.Millisecond })
				store, written, skipped := f.write, 0, ledger.Offset(0)
				f.write = s.writes(func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
					if err := store(ctx, scope, pages); err != nil {
						return err
					}
					f.memory.mu.Lock()
					defer f.memory.mu.Unlock()
					written++
					var stored, reached ledger.Offset
					for r := range f.memory.unshown {
						stored += r.To - r.From
						if newestFirst {
							reached = max(reached, history.end-r.From)
						} else {
							reached = max(reached, r.To)
						}
					}
					skipped = max(skipped, reached-stored)
					return nil
				}, nil)
				filled, err := f.Run(t.Context())
				require.NoError(t, err)
				require.EqualValues(t, 60_000, filled.Updates)
				requireAll(t, history.all(), f.filled())
				require.Empty(t, f.memory.mistakes)
				require.Equal(t, DefaultMaxRequests, s.mostFlight)
				require.Greater(t, written, 20)
				// The other transaction, and the windows that are on their way.
				require.LessOrEqual(t, skipped, ledger.Offset(spacing*(batchUpdates+200+DefaultMaxRequests*200)))
			})
		})
	}
}

// What retrying can't cure ends the filling in. What was read by then is stored, and oldest first everything before it.
func TestLastingErrorsWhileHistoryIsFilledIn(t *testing.T) {
	for name, newestFirst := range map[string]bool{"oldest first": false, "newest first": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const damaged = 90_000
				f := newFillLoop(newScript(50_000), newestFirst)
				f.ledger.pageSize, f.ledger.updateBytes = 200, 2800
				lasting := &ledger.DecodeError{Element: 3, Offset: damaged}
				read := f.source.readUpdates
				var got atomic.Int64
				f.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
					switch {
					case after < damaged-10_000: // later than those behind it
						Sleep(ctx, time.Second)
					case to-after > 1: // so that no reader gets ahead while another one finds out
						Sleep(ctx, 10*time.Millisecond)
					}
					page, err := read(ctx, after, to)
					if page.From < damaged && page.To >= damaged {
						return ledger.Page{}, lasting
					}
					if to-after > 1 { // else the last one is looked for
						got.Add(int64(len(page.Updates)))
					}
					return page, err
				}
				filled, err := f.Run(t.Context())
				require.ErrorIs(t, err, lasting)
				require.Equal(t, got.Load(), filled.Updates)
				stored := f.filled()
				require.EqualValues(t, got.Load(), len(stored))
				if newestFirst {
					// What was on its way with the window that failed, and what was begun as it came.
					require.Greater(t, stored[0], ledger.Offset(damaged-2*DefaultMaxRequests*200*spacing))
					require.Contains(t, stored, f.ledger.last())
					return
				}
				before, _ := slices.BinarySearch(stored, damaged)
				requireAll(t, f.ledger.all()[:before], stored[:before])
				require.Greater(t, before, (damaged-3*200)/spacing)
				require.Less(t, stored[len(stored)-1], ledger.Offset(damaged+2*DefaultMaxRequests*200*spacing))
			})
		})
	}
}
