package ingest

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// filePages has an update at every third offset up to an end, in pages of some.
type filePages struct {
	end    ledger.Offset
	page   int
	broken ledger.Offset // reading fails where it comes to this offset; 0: nowhere
}

var errBroken = &ledger.Problem{What: "the file is broken", Do: "mend it"}

func (f *filePages) End() ledger.Offset { return f.end }

func (f *filePages) Pages(ctx context.Context, r ledger.Range) iter.Seq2[ledger.Page, error] {
	return func(yield func(ledger.Page, error) bool) {
		page := ledger.Page{From: r.From}
		for at := r.From + 1; at <= r.To; at++ {
			if at == f.broken || ctx.Err() != nil {
				yield(ledger.Page{}, errors.Join(ctx.Err(), errBroken))
				return
			}
			if at%3 == 0 {
				page.Updates = append(page.Updates, ledger.Update{Offset: at})
				page.Bytes += 3000
			}
			if page.To = at; len(page.Updates) == f.page || at == r.To {
				if !yield(page, nil) {
					return
				}
				page = ledger.Page{From: at}
			}
		}
	}
}

func (f *filePages) updates() (all []ledger.Offset) {
	for at := ledger.Offset(3); at <= f.end; at += 3 {
		all = append(all, at)
	}
	return all
}

// All updates of files are written once and shown in order, whatever is stored already, ahead of the watermark too, and
// whatever fails; stopped at any place, the next run goes on.
func TestFilesAreReadExactlyOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			source := &filePages{end: 9_000 + ledger.Offset(random.IntN(30_000)), page: 1 + random.IntN(700)}
			m := &memory{}
			sink := m.sink()
			if random.IntN(2) == 0 { // an earlier run was killed
				require.NoError(t, m.start(t.Context(), "dso", ledger.Scope{}, 0, true))
				for page, err := range source.Pages(t.Context(), ledger.Range{From: 600, To: 600 + ledger.Offset(random.IntN(4_000)) + 1}) {
					require.NoError(t, err)
					if random.IntN(3) > 0 {
						require.NoError(t, m.write(t.Context(), ledger.Scope{}, []ledger.Page{page}))
					}
				}
			}
			faults := newFaults(seed, 0.08)
			sink.write = func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
				return faults.around(func() error { return m.write(ctx, scope, pages) })
			}
			sink.project = func(ctx context.Context, scope ledger.Scope, from, to ledger.Offset) error {
				return faults.around(func() error { return m.project(ctx, scope, from, to) })
			}
			source.broken = ledger.Offset(1 + random.IntN(int(source.end)))
			stopped := false
			for {
				ctx, stop := context.WithTimeout(t.Context(), 24*time.Hour) // of virtual time: what can't be stored would be tried for ever
				loop := &Files{Source: source, Sink: sink, ParticipantID: "dso", Logger: slog.New(slog.DiscardHandler)}
				loop.Watch.Committed = func(at, _ ledger.Offset, _ int) {
					if at > source.end/2 && !stopped {
						stopped = true
						stop()
					}
				}
				at, err := loop.Run(ctx)
				stop()
				if errors.Is(err, errBroken) { // all that comes before is stored
					require.Less(t, m.reached(), source.broken)
					source.broken = 0
					continue
				}
				if errors.Is(err, context.Canceled) {
					continue
				}
				require.NoError(t, err)
				require.Equal(t, source.end, at)
				break
			}
			require.Empty(t, m.mistakes)
			require.Equal(t, source.updates(), m.got())
			require.Equal(t, source.end, m.reached())
			require.Empty(t, m.unshown)
			require.True(t, m.stateKnown)
		})
	}
}
