package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// fakeSnapshotSource is a SnapshotSource whose every answer a test can replace.
type fakeSnapshotSource struct {
	ledgerEnd    func(ctx context.Context) (ledger.Offset, error)
	prunedOffset func(ctx context.Context) (ledger.Offset, error)
	readSnapshot func(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error)
}

func (f *fakeSnapshotSource) LedgerEnd(ctx context.Context) (ledger.Offset, error) {
	return f.ledgerEnd(ctx)
}

func (f *fakeSnapshotSource) PrunedOffset(ctx context.Context) (ledger.Offset, error) {
	return f.prunedOffset(ctx)
}

func (f *fakeSnapshotSource) SnapshotOffset(_ context.Context, upTo ledger.Offset) (ledger.Offset, error) {
	return upTo, nil
}

func (f *fakeSnapshotSource) ReadSnapshot(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
	return f.readSnapshot(ctx, at, token)
}

type snapshotWriter func(
	ctx context.Context, progress ledger.SnapshotProgress, order CommitOrder, page ledger.SnapshotPage,
) (ledger.SnapshotProgress, error)

// fakeSnapshotSink is a SnapshotSink whose every answer a test can replace.
type fakeSnapshotSink struct {
	unfinished func(ctx context.Context) (*ledger.SnapshotProgress, error)
	drop       func(ctx context.Context) error
	begin      func(ctx context.Context, participantID string, scope ledger.Scope, at ledger.Offset) (ledger.SnapshotProgress, error)
	write      snapshotWriter
}

func (f *fakeSnapshotSink) LatestSnapshot(ctx context.Context) (*ledger.SnapshotProgress, error) {
	return f.unfinished(ctx)
}

func (f *fakeSnapshotSink) DropSnapshot(ctx context.Context) error { return f.drop(ctx) }

func (f *fakeSnapshotSink) BeginSnapshot(ctx context.Context, participantID string, scope ledger.Scope, at ledger.Offset) (ledger.SnapshotProgress, error) {
	return f.begin(ctx, participantID, scope, at)
}

func (f *fakeSnapshotSink) WriteSnapshotPage(
	ctx context.Context, progress ledger.SnapshotProgress, order CommitOrder, page ledger.SnapshotPage,
) (ledger.SnapshotProgress, error) {
	return f.write(ctx, progress, order, page)
}

// shelf is where a snapshot is written in these tests: page and token together, as the database does it.
type shelf struct {
	mu        sync.Mutex
	progress  *ledger.SnapshotProgress // unfinished
	entries   []string
	watermark *ledger.Offset
	drops     int
}

func (s *shelf) sink() *fakeSnapshotSink {
	return &fakeSnapshotSink{
		unfinished: func(ctx context.Context) (*ledger.SnapshotProgress, error) { return s.progress, ctx.Err() },
		drop: func(ctx context.Context) error {
			if s.watermark != nil {
				return &ledger.Problem{What: "the database already holds the ledger"}
			}
			s.progress, s.entries = nil, nil
			s.drops++
			return ctx.Err()
		},
		begin: s.begin, write: s.write,
	}
}

func (s *shelf) begin(ctx context.Context, _ string, _ ledger.Scope, at ledger.Offset) (ledger.SnapshotProgress, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ledger.SnapshotProgress{}, ctx.Err()
	case s.watermark != nil && *s.watermark == at:
		return ledger.SnapshotProgress{At: at, Finished: true}, nil
	case s.watermark != nil:
		return ledger.SnapshotProgress{}, &ledger.Problem{What: "the database already holds the ledger"}
	case s.progress == nil:
		s.progress = &ledger.SnapshotProgress{At: at}
	case s.progress.At != at:
		return ledger.SnapshotProgress{}, &ledger.Problem{What: "an unfinished snapshot of another offset"}
	}
	return *s.progress, nil
}

func (s *shelf) write(
	ctx context.Context, progress ledger.SnapshotProgress, order CommitOrder, page ledger.SnapshotPage,
) (ledger.SnapshotProgress, error) {
	if err := takeTurn(ctx, order); err != nil {
		return progress, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return progress, ctx.Err()
	case s.progress == nil || *s.progress != progress:
		return progress, errors.New("the token is not where this writer saw it")
	}
	for _, entry := range page.Entries {
		s.entries = append(s.entries, *entry.WorkflowID)
	}
	s.progress = &ledger.SnapshotProgress{At: progress.At, Next: page.Next, Entries: progress.Entries + int64(len(page.Entries))}
	next := *s.progress
	if page.Last {
		s.watermark, s.progress = &next.At, nil
	}
	return next, nil
}

// contracts is what a server's snapshot holds, and how it serves it.
type contracts struct {
	n        int
	pageSize int  // 0: everything at once, without tokens
	empty    bool // the last page is empty, as where the list is read; else its token is missing, as where pages are
	end      ledger.Offset
	pruned   ledger.Offset
	blind    bool
	reads    int
}

func (c *contracts) source() *fakeSnapshotSource {
	offered := func(offset ledger.Offset) func(context.Context) (ledger.Offset, error) {
		return func(ctx context.Context) (ledger.Offset, error) {
			if c.blind {
				return 0, ledger.ErrNotOffered
			}
			return offset, ctx.Err()
		}
	}
	return &fakeSnapshotSource{ledgerEnd: offered(c.end), prunedOffset: offered(c.pruned), readSnapshot: c.read}
}

func (c *contracts) read(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
	c.reads++
	first := 0
	if token.Value != "" {
		if _, err := fmt.Sscanf(token.Value, fmt.Sprintf("%d/%%d", at), &first); err != nil {
			return ledger.SnapshotPage{}, &ledger.Problem{What: "the server refuses the token", Err: err}
		}
	}
	size := c.pageSize
	if size == 0 {
		size = c.n
	}
	var page ledger.SnapshotPage
	for i := first; i < min(first+size, c.n); i++ {
		id := strconv.Itoa(i)
		page.Entries = append(page.Entries, ledger.ContractEntry{WorkflowID: &id})
	}
	last := first + len(page.Entries)
	page.Last = last == c.n && (!c.empty || len(page.Entries) == 0)
	if !page.Last {
		page.Next = ledger.Token{Kind: ledger.TokenPage, Value: fmt.Sprintf("%d/%d", at, last)}
	}
	return page, ctx.Err()
}

// entries is every entry once, in order.
func (c *contracts) entries() []string {
	var all []string
	for i := range c.n {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

func snapshotOf(c *contracts, s *shelf) *Snapshot {
	return &Snapshot{Source: c.source(), Sink: s.sink(), Logger: slog.New(slog.DiscardHandler)}
}

func TestSnapshotStoresEveryEntry(t *testing.T) {
	for name, c := range map[string]contracts{
		"an empty last page": {n: 100, pageSize: 7, empty: true, end: 50},
		"a full last page":   {n: 100, pageSize: 10, end: 50},
		"without tokens":     {n: 100, end: 50},
		"nothing active":     {end: 50},
		"an empty ledger":    {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var s shelf
				snapshot := snapshotOf(&c, &s)
				var told []int64
				snapshot.Wrote = func(entries int64) { told = append(told, entries) }
				progress, err := snapshot.Run(t.Context())
				require.NoError(t, err)
				require.Equal(t, c.entries(), s.entries)
				require.Equal(t, c.end, *s.watermark)
				require.Equal(t, ledger.SnapshotProgress{At: c.end, Entries: int64(c.n)}, progress)
				require.IsNonDecreasing(t, told)
				require.EqualValues(t, c.n, told[len(told)-1])
			})
		})
	}
}

func TestSnapshotGoesOnFromItsToken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := contracts{n: 100, pageSize: 10, end: 80}
		s := shelf{
			progress: &ledger.SnapshotProgress{At: 50, Next: ledger.Token{Kind: ledger.TokenPage, Value: "50/40"}, Entries: 40},
			entries:  c.entries()[:40],
		}
		_, err := snapshotOf(&c, &s).Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.entries(), s.entries)
		require.EqualValues(t, 50, *s.watermark, "the unfinished snapshot decides the offset")
		require.Equal(t, 6, c.reads)
	})
}

func TestSnapshotRestartDropsFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := contracts{n: 30, pageSize: 10, end: 80}
		s := shelf{progress: &ledger.SnapshotProgress{At: 50, Next: ledger.Token{Value: "no good"}, Entries: 40}, entries: []string{"old"}}
		snapshot := snapshotOf(&c, &s)
		snapshot.Restart = true
		sink := snapshot.Sink.(*fakeSnapshotSink)
		drop, failed := sink.drop, 0
		sink.drop = func(ctx context.Context) error {
			if failed++; failed < 3 {
				return errAway
			}
			return drop(ctx)
		}
		var away atomic.Bool
		sink.write = func(
			ctx context.Context, progress ledger.SnapshotProgress, order CommitOrder, page ledger.SnapshotPage,
		) (ledger.SnapshotProgress, error) {
			if progress.Entries > 0 && !away.Swap(true) { // what has been stored since is not dropped
				return progress, errAway
			}
			return s.write(ctx, progress, order, page)
		}
		_, err := snapshot.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.entries(), s.entries)
		require.EqualValues(t, 80, *s.watermark)
		require.Equal(t, 1, s.drops)
	})
}

// The end of the ledger is chosen once: errors in between do not move it.
func TestSnapshotKeepsItsOffsetOverErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := contracts{n: 30, pageSize: 10}
		var s shelf
		snapshot := snapshotOf(&c, &s)
		source := snapshot.Source.(*fakeSnapshotSource)
		end := ledger.Offset(100)
		source.ledgerEnd = func(context.Context) (ledger.Offset, error) { end++; return end, nil }
		sink := snapshot.Sink.(*fakeSnapshotSink)
		begun := 0
		sink.begin = func(ctx context.Context, id string, scope ledger.Scope, at ledger.Offset) (ledger.SnapshotProgress, error) {
			if begun++; begun == 1 {
				return ledger.SnapshotProgress{}, errAway
			}
			return s.begin(ctx, id, scope, at)
		}
		failed := 0
		source.readSnapshot = func(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
			if failed++; failed%2 == 1 {
				return ledger.SnapshotPage{}, errAway
			}
			return c.read(ctx, at, token)
		}
		_, err := snapshot.Run(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 101, *s.watermark)
		require.Equal(t, c.entries(), s.entries)
	})
}

func TestSnapshotStopFinishesThePagesUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := contracts{n: 4 * snapshotBatch, pageSize: 1_000, end: 50}
		var s shelf
		snapshot := snapshotOf(&c, &s)
		ctx, cancel := context.WithCancel(t.Context())
		sink := snapshot.Sink.(*fakeSnapshotSink)
		var begun atomic.Int64 // entries
		var stop sync.Once
		sink.write = func(
			ctx context.Context, progress ledger.SnapshotProgress, order CommitOrder, page ledger.SnapshotPage,
		) (ledger.SnapshotProgress, error) {
			begun.Add(int64(len(page.Entries)))
			time.Sleep(time.Second) // more is read meanwhile
			stop.Do(cancel)
			time.Sleep(time.Second)
			return s.write(ctx, progress, order, page)
		}
		progress, err := snapshot.Run(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.Less(t, begun.Load(), int64(c.n), "what was read was not written")
		require.Equal(t, ledger.SnapshotProgress{At: 50, Entries: begun.Load(), Next: s.progress.Next}, progress)
		require.Equal(t, c.entries()[:begun.Load()], s.entries)

		_, err = snapshotOf(&c, &s).Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.entries(), s.entries)
	})
}

// A batch is written while the one before it is, and committed after it: batches after one that fails are not stored.
func TestSnapshotWritesBatchesAtTheSameTime(t *testing.T) {
	for name, fails := range map[string]bool{"stored in order": false, "not behind a failure": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := contracts{n: 100, pageSize: 10, end: 50}
				var s shelf
				snapshot := snapshotOf(&c, &s)
				sink := snapshot.Sink.(*fakeSnapshotSink)
				second := make(chan struct{})
				var once sync.Once
				var failed atomic.Bool
				sink.write = func(
					ctx context.Context, progress ledger.SnapshotProgress, order CommitOrder, page ledger.SnapshotPage,
				) (ledger.SnapshotProgress, error) {
					if progress.Entries == 0 && !failed.Load() {
						<-second
						if fails {
							failed.Store(true)
							return progress, errAway
						}
					} else {
						once.Do(func() { close(second) })
					}
					return s.write(ctx, progress, order, page)
				}
				_, err := snapshot.Run(t.Context())
				require.NoError(t, err)
				require.Equal(t, fails, failed.Load())
				require.Equal(t, c.entries(), s.entries)
			})
		})
	}
}

// Incomplete reassignments are stored by a look at what is stored already.
func TestSnapshotWritesIncompleteReassignmentsAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := contracts{n: 60, pageSize: 10, end: 50}
		var s shelf
		snapshot := snapshotOf(&c, &s)
		snapshot.Source.(*fakeSnapshotSource).readSnapshot = func(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
			page, err := c.read(ctx, at, token)
			if token.Value == "50/20" {
				page.Entries[3].Unassigned = &ledger.IncompleteUnassigned{}
			}
			return page, err
		}
		var writing atomic.Int32
		alone := 0
		snapshot.Sink.(*fakeSnapshotSink).write = func(
			ctx context.Context, progress ledger.SnapshotProgress, order CommitOrder, page ledger.SnapshotPage,
		) (ledger.SnapshotProgress, error) {
			writing.Add(1)
			defer writing.Add(-1)
			if hasIncomplete(&page) {
				alone++
				require.True(t, order.First())
				require.EqualValues(t, 1, writing.Load())
				time.Sleep(time.Second) // more is read meanwhile
				require.EqualValues(t, 1, writing.Load())
			}
			return s.write(ctx, progress, order, page)
		}
		_, err := snapshot.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.entries(), s.entries)
		require.Equal(t, 1, alone)
	})
}

// Batches that have an entry in common wait for each other until one gives up. After a failure the first one is written
// alone: the database can then report what is wrong.
func TestSnapshotWritesAloneAfterAFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := contracts{n: 60, pageSize: 10, end: 50}
		var s shelf
		snapshot := snapshotOf(&c, &s)
		refusal := &ledger.Problem{What: "the database refuses the rows"}
		var writing atomic.Int32
		tries := 0
		snapshot.Sink.(*fakeSnapshotSink).write = func(
			ctx context.Context, progress ledger.SnapshotProgress, order CommitOrder, page ledger.SnapshotPage,
		) (ledger.SnapshotProgress, error) {
			writing.Add(1)
			defer writing.Add(-1)
			if progress.Entries > 0 { // it has an entry of the first one
				if err := order.Wait(ctx); err != nil {
					return progress, err
				}
				return progress, refusal
			}
			tries++
			time.Sleep(time.Second) // more is read meanwhile
			if writing.Load() > 1 && tries < 3 {
				return progress, errAway
			}
			return s.write(ctx, progress, order, page)
		}
		_, err := snapshot.Run(t.Context())
		require.ErrorIs(t, err, refusal)
		require.Equal(t, 2, tries)
	})
}
