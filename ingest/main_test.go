package ingest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"ledgerindexer/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeSource is an UpdateSource whose every answer a test can replace.
type fakeSource struct {
	ledgerEnd    func(ctx context.Context) (ledger.Offset, error)
	prunedOffset func(ctx context.Context) (ledger.Offset, error)
	readUpdates  func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error)
	tailUpdates  func(ctx context.Context, after ledger.Offset, limit int, idle time.Duration) (ledger.Page, bool, error)
	update       func(ctx context.Context, updateID string) (ledger.Update, error)
	changes      func() int64
}

func (f *fakeSource) LedgerEnd(ctx context.Context) (ledger.Offset, error) { return f.ledgerEnd(ctx) }
func (f *fakeSource) PrunedOffset(ctx context.Context) (ledger.Offset, error) {
	return f.prunedOffset(ctx)
}
func (f *fakeSource) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	return f.readUpdates(ctx, after, to)
}

func (f *fakeSource) TailUpdates(ctx context.Context, after ledger.Offset, limit int, idle time.Duration) (ledger.Page, bool, error) {
	return f.tailUpdates(ctx, after, limit, idle)
}

func (f *fakeSource) UpdateOfScope(ctx context.Context, updateID string) (ledger.Update, ledger.JSON, error) {
	update, err := f.update(ctx, updateID)
	return update, nil, err
}

func (f *fakeSource) Changes() int64 {
	if f.changes == nil {
		return 0
	}
	return f.changes()
}

// fakeSink is an UpdateSink whose every answer a test can replace.
type fakeSink struct {
	watermark func(ctx context.Context) (ledger.Offset, bool, error)
	start     func(ctx context.Context, participantID string, scope ledger.Scope, at ledger.Offset, stateKnown bool) error
	append    func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error
	last      func(ctx context.Context, upTo ledger.Offset) (ledger.Offset, string, error) // nil: nothing is stored
	compare   func(ctx context.Context, page ledger.Page, found func(ledger.Difference) error) error
}

func (f *fakeSink) Watermark(ctx context.Context) (ledger.Offset, bool, error) {
	return f.watermark(ctx)
}
func (f *fakeSink) Start(ctx context.Context, participantID string, scope ledger.Scope, at ledger.Offset, stateKnown bool) error {
	return f.start(ctx, participantID, scope, at, stateKnown)
}

func (f *fakeSink) Append(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
	return f.append(ctx, scope, pages)
}

func (f *fakeSink) LastUpdate(ctx context.Context, upTo ledger.Offset) (ledger.Offset, string, error) {
	if f.last == nil {
		return 0, "", nil
	}
	return f.last(ctx, upTo)
}

func (f *fakeSink) Compare(ctx context.Context, page ledger.Page, found func(ledger.Difference) error) error {
	return f.compare(ctx, page, found)
}

// memory is where updates are written in these tests. It is as strict as the database: pages follow one another from
// the watermark on. A page that does not is a mistake of the loop, and noted.
type memory struct {
	mu          sync.Mutex
	started     bool
	participant string
	stateKnown  bool
	at          ledger.Offset
	updates     []ledger.Offset
	checkpoints []ledger.Offset
	batches     [][]ledger.Page
	mistakes    []string
}

func (m *memory) sink() *fakeSink {
	return &fakeSink{watermark: m.watermark, start: m.start, append: m.append}
}

func (m *memory) watermark(ctx context.Context) (ledger.Offset, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at, m.started, ctx.Err()
}

func (m *memory) start(ctx context.Context, participantID string, _ ledger.Scope, at ledger.Offset, stateKnown bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started {
		m.mistakes = append(m.mistakes, "started twice")
	}
	m.started, m.participant, m.at, m.stateKnown = true, participantID, at, stateKnown
	return ctx.Err()
}

func (m *memory) append(ctx context.Context, _ ledger.Scope, pages []ledger.Page) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !m.started || len(pages) == 0 {
		m.mistakes = append(m.mistakes, "nothing to append, or nowhere")
	}
	at := m.at
	for _, page := range pages {
		if page.From != at {
			m.mistakes = append(m.mistakes, fmt.Sprintf("page from %d does not follow %d", page.From, at))
			return fmt.Errorf("page from %d does not follow %d", page.From, at)
		}
		at = page.To
	}
	for _, page := range pages {
		for _, update := range page.Updates {
			m.updates = append(m.updates, update.Offset)
		}
		for _, checkpoint := range page.Checkpoints {
			m.checkpoints = append(m.checkpoints, checkpoint.Offset)
		}
	}
	m.at = at
	m.batches = append(m.batches, pages)
	return nil
}

// The loop may be at work while a test looks.

func (m *memory) got() []ledger.Offset {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.updates)
}

func (m *memory) reached() ledger.Offset {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

func (m *memory) written() [][]ledger.Page {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.batches)
}

// begunAt is a memory whose watermark stands at an offset.
func begunAt(at ledger.Offset) *memory { return &memory{started: true, at: at} }

// loop is an updates loop between a scripted ledger and a memory.
type loop struct {
	*Updates
	t      *testing.T
	ledger *script
	memory *memory
	source *fakeSource
	sink   *fakeSink

	mu      sync.Mutex
	retries []error
	done    chan error
}

// newLoop makes a loop that resumes at offset 0. It is called inside a bubble.
func newLoop(t *testing.T, updates int) *loop {
	l := &loop{t: t, ledger: newScript(updates), memory: begunAt(0), done: make(chan error, 1)}
	l.source, l.sink = l.ledger.source(), l.memory.sink()
	l.Updates = &Updates{
		Source: l.source, Sink: l.sink, Logger: slog.New(slog.DiscardHandler),
		Watch: Watch{Retrying: func(err error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.retries = append(l.retries, err)
		}},
	}
	return l
}

// run starts the loop; the function returned stops it and returns what Run returned.
func (l *loop) run() (stop func() error) {
	ctx, cancel := context.WithCancel(l.t.Context())
	go func() { l.done <- l.Run(ctx) }()
	return func() error {
		cancel()
		return <-l.done
	}
}

// retried is how often the loop tried again.
func (l *loop) retried() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.retries)
}

// bubble runs a test in which no real time passes.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// pass lets time pass, and what is to happen until then happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
