package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
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

func (f *fakeSnapshotSource) ReadSnapshot(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
	return f.readSnapshot(ctx, at, token)
}

// fakeSnapshotSink is a SnapshotSink whose every answer a test can replace.
type fakeSnapshotSink struct {
	unfinished func(ctx context.Context) (*ledger.SnapshotProgress, error)
	drop       func(ctx context.Context) error
	begin      func(ctx context.Context, participantID string, scope ledger.Scope, at ledger.Offset) (ledger.SnapshotProgress, error)
	write      func(ctx context.Context, progress ledger.SnapshotProgress, page ledger.SnapshotPage) (ledger.SnapshotProgress, error)
}

func (f *fakeSnapshotSink) LatestSnapshot(ctx context.Context) (*ledger.SnapshotProgress, error) {
	return f.unfinished(ctx)
}

func (f *fakeSnapshotSink) DropSnapshot(ctx context.Context) error { return f.drop(ctx) }

func (f *fakeSnapshotSink) BeginSnapshot(ctx context.Context, participantID string, scope ledger.Scope, at ledger.Offset) (ledger.SnapshotProgress, error) {
	return f.begin(ctx, participantID, scope, at)
}

func (f *fakeSnapshotSink) WriteSnapshotPage(ctx context.Context, progress ledger.SnapshotProgress, page ledger.SnapshotPage) (ledger.SnapshotProgress, error) {
	return f.write(ctx, progress, page)
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

func (s *shelf) write(ctx context.Context, progress ledger.SnapshotProgress, page ledger.SnapshotPage) (ledger.SnapshotProgress, error) {
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
		away := false
		sink.write = func(ctx context.Context, progress ledger.SnapshotProgress, page ledger.SnapshotPage) (ledger.SnapshotProgress, error) {
			if progress.Entries == 10 && !away { // what has been stored since is not dropped
				away = true
				return progress, errAway
			}
			return s.write(ctx, progress, page)
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

func TestSnapshotStopFinishesThePageUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := contracts{n: 100, pageSize: 10, end: 50}
		var s shelf
		snapshot := snapshotOf(&c, &s)
		ctx, cancel := context.WithCancel(t.Context())
		sink := snapshot.Sink.(*fakeSnapshotSink)
		writes := 0
		sink.write = func(ctx context.Context, progress ledger.SnapshotProgress, page ledger.SnapshotPage) (ledger.SnapshotProgress, error) {
			if writes++; writes == 3 {
				time.Sleep(time.Second) // more is read meanwhile
				cancel()
				time.Sleep(time.Second)
			}
			return s.write(ctx, progress, page)
		}
		progress, err := snapshot.Run(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 3, writes)
		require.Equal(t, c.entries()[:30], s.entries)
		require.EqualValues(t, 30, progress.Entries)
		require.EqualValues(t, 50, progress.At)

		_, err = snapshotOf(&c, &s).Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.entries(), s.entries)
	})
}
