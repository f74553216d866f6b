package ingest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

var errTooWide = errors.New("503: The server was not able to produce a timely response to your request")

// givesUp makes a source give up, as a server does that has to look through all offsets of a range, on one that is
// wider.
func givesUp(source *fakeSource, widest ledger.Offset) {
	read := source.readUpdates
	source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
		if to-after > widest {
			Sleep(ctx, 20*time.Second)
			return ledger.Page{}, errTooWide
		}
		return read(ctx, after, to)
	}
}

const (
	emptyOffsets = 1_000_000_000
	widestServed = 3_000_000
)

// An indexer that stopped behind a wide range in which nothing came starts again: it looks through the range in pieces
// that the server answers.
func TestTheForkCheckReadsAWideEmptyRangeInPieces(t *testing.T) {
	for name, ahead := range map[string]bool{"up to the watermark": false, "ahead of the watermark": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLoop(t, 10)
				l.ledger.growUnseen(emptyOffsets)
				end := l.ledger.last()
				if l.memory = begunAt(end); ahead {
					l.memory = begunAt(30)
					l.memory.unshown = map[ledger.Range][]ledger.Update{{From: 30, To: end}: nil}
				}
				l.sink = l.memory.sink()
				l.Sink = l.sink
				l.sink.last = func(context.Context, ledger.Offset) (ledger.Offset, string, error) { return 30, "", nil }
				givesUp(l.source, widestServed)
				l.ledger.grow(5)
				stop := l.run()
				pass(24 * time.Hour)
				require.NoError(t, stop())
				require.Equal(t, l.ledger.last(), l.memory.reached())
				require.Equal(t, l.ledger.all()[10:], l.memory.got())
				require.Less(t, l.retried(), 5, "what is too much for the server is not begun from its beginning again and again")
			})
		})
	}
}

// A range is asked for in halves only after the server took its time to fail, and as often as may be of use.
func TestReadingRanges(t *testing.T) {
	const all = 1 << 20
	for name, c := range map[string]struct {
		takes  time.Duration
		answer func(offsets ledger.Offset) error
		want   error
		asked  []ledger.Offset
	}{
		"it is answered":            {0, func(ledger.Offset) error { return nil }, nil, []ledger.Offset{all}},
		"it is refused at once":     {time.Second, func(ledger.Offset) error { return errAway }, errAway, []ledger.Offset{all}},
		"it is refused for good":    {time.Minute, func(ledger.Offset) error { return &ledger.Problem{What: "pruned"} }, &ledger.Problem{}, []ledger.Offset{all}},
		"there is no room":          {time.Minute, func(ledger.Offset) error { return ledger.ErrByteLimit }, ledger.ErrByteLimit, []ledger.Offset{all}},
		"nothing is answered":       {time.Minute, func(ledger.Offset) error { return errAway }, errAway, []ledger.Offset{all, all / 2, all / 4, all / 8}},
		"a quarter of it is not":    {time.Minute, func(n ledger.Offset) error { return refusedAbove(n, all/4) }, nil, []ledger.Offset{all, all / 2, all / 4}},
		"less than a quarter is it": {time.Minute, func(n ledger.Offset) error { return refusedAbove(n, all/8) }, nil, []ledger.Offset{all, all / 2, all / 4, all / 8}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var asked []ledger.Offset
				read := func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
					asked = append(asked, to-after)
					Sleep(ctx, c.takes)
					return ledger.Page{From: after, To: to}, c.answer(to - after)
				}
				var log bytes.Buffer
				var r Ranges
				page, err := r.Read(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), read, ledger.Range{From: 7, To: 7 + all})
				require.Equal(t, c.asked, asked)
				require.Equal(t, len(asked)-1, strings.Count(log.String(), "retrying"), "what is tried again is said")
				var problem *ledger.Problem
				switch {
				case c.want == nil:
					require.NoError(t, err)
					require.Equal(t, ledger.Range{From: 7, To: 7 + asked[len(asked)-1]}, ledger.Range{From: page.From, To: page.To})
				case errors.As(c.want, &problem):
					require.ErrorAs(t, err, &problem)
				default:
					require.ErrorIs(t, err, c.want)
				}
			})
		})
	}
}

func refusedAbove(offsets, widest ledger.Offset) error {
	if offsets > widest {
		return errTooWide
	}
	return nil
}

// What was learned of one range holds for the next one: it is asked for no more, and then for more again.
func TestTheNextRangeIsAsNarrow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var asked []ledger.Offset
		broken := true
		read := func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			asked = append(asked, to-after)
			if broken {
				Sleep(ctx, time.Minute)
				return ledger.Page{}, errAway
			}
			return ledger.Page{From: after, To: to}, nil
		}
		var r Ranges
		next := func(to ledger.Offset) (ledger.Page, error) {
			return r.Read(t.Context(), slog.New(slog.DiscardHandler), read, ledger.Range{To: to})
		}
		_, err := next(1600)
		require.ErrorIs(t, err, errAway)
		_, err = next(1600)
		require.ErrorIs(t, err, errAway)
		require.Equal(t, []ledger.Offset{1600, 800, 400, 200, 100, 50, 25, 12}, asked)
		broken, asked = false, nil
		for range 4 {
			_, err = next(40)
			require.NoError(t, err)
		}
		require.Equal(t, []ledger.Offset{6, 12, 24, 40}, asked)

		_, err = next(1)
		require.NoError(t, err)
		broken, asked = true, nil
		_, err = next(1)
		require.ErrorIs(t, err, errAway)
		require.Equal(t, []ledger.Offset{1}, asked, "one offset can't be halved")
	})
}
