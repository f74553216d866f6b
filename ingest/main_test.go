package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	_ "ledgerindexer/internal/tools/hermetic"
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
	passed       func(page *ledger.Page) // told of each page that was read; may be nil
}

func (f *fakeSource) LedgerEnd(ctx context.Context) (ledger.Offset, error) { return f.ledgerEnd(ctx) }
func (f *fakeSource) PrunedOffset(ctx context.Context) (ledger.Offset, error) {
	return f.prunedOffset(ctx)
}
func (f *fakeSource) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	page, err := f.readUpdates(ctx, after, to)
	if err == nil && f.passed != nil {
		f.passed(&page)
	}
	return page, err
}

// ReadUpdatesWithin is as strict as the participant's: it reads nothing that is larger than the room.
func (f *fakeSource) ReadUpdatesWithin(ctx context.Context, after, to ledger.Offset, room int64) (ledger.Page, error) {
	page, err := f.readUpdates(ctx, after, to)
	if err == nil && page.Bytes > room {
		return ledger.Page{}, ledger.ErrByteLimit
	}
	if err == nil && f.passed != nil {
		f.passed(&page)
	}
	return page, err
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
	network   bool
	watermark func(ctx context.Context) (ledger.Offset, bool, error)
	start     func(ctx context.Context, participantID string, scope ledger.Scope, at ledger.Offset, stateKnown bool) error
	append    func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error
	ahead     func(ctx context.Context) ([]ledger.Range, error) // nil: nothing is
	write     func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error
	project   func(ctx context.Context, scope ledger.Scope, from, to ledger.Offset) error
	last      func(ctx context.Context, upTo ledger.Offset) (ledger.Offset, string, error) // nil: nothing is stored
	deviation Deviation
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

func (f *fakeSink) StoredAhead(ctx context.Context) ([]ledger.Range, error) {
	if f.ahead == nil {
		return nil, nil
	}
	return f.ahead(ctx)
}

func (f *fakeSink) WriteAhead(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
	return f.write(ctx, scope, pages)
}

func (f *fakeSink) MoveWatermark(ctx context.Context, scope ledger.Scope, from, to ledger.Offset) error {
	return f.project(ctx, scope, from, to)
}

func (f *fakeSink) OfNetwork() bool { return f.network }

func (f *fakeSink) LastUpdate(ctx context.Context, upTo ledger.Offset) (ledger.Offset, string, error) {
	if f.last == nil {
		return 0, "", nil
	}
	return f.last(ctx, upTo)
}

func (f *fakeSink) Deviation(context.Context, ledger.Page) (Deviation, error) {
	return f.deviation, nil
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
	unshown     map[ledger.Range][]ledger.Update // written ahead of the watermark
	steps       []ledger.Range                   // of projections
	checkpoints []ledger.Offset
	batches     [][]ledger.Page
	mistakes    []string
}

func (m *memory) sink() *fakeSink {
	return &fakeSink{
		watermark: m.watermark, start: m.start, append: m.append, ahead: m.ahead, write: m.write, project: m.project,
	}
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

// write is as strict as the database: what is covered is not written again.
func (m *memory) write(ctx context.Context, _ ledger.Scope, pages []ledger.Page) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	batch := ledger.Range{From: pages[0].From, To: pages[0].From}
	var updates []ledger.Update
	for _, page := range pages {
		if page.From != batch.To {
			m.mistakes = append(m.mistakes, fmt.Sprintf("page from %d does not follow %d", page.From, batch.To))
		}
		batch.To = page.To
		updates = append(updates, page.Updates...)
	}
	if batch.From < m.at {
		m.mistakes = append(m.mistakes, fmt.Sprintf("written from %d, below the watermark %d", batch.From, m.at))
		return errCovered
	}
	for other := range m.unshown {
		if batch.From < other.To && batch.To > other.From {
			m.mistakes = append(m.mistakes, fmt.Sprintf("%v was written, and then %v", other, batch))
			return errCovered
		}
	}
	if m.unshown == nil {
		m.unshown = map[ledger.Range][]ledger.Update{}
	}
	m.unshown[batch] = updates
	m.batches = append(m.batches, pages)
	return nil
}

var errCovered = errors.New("the range is covered already")

// ahead gives the ranges as they were written: those that touch are as good apart.
func (m *memory) ahead(ctx context.Context) ([]ledger.Range, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rangesAhead(), ctx.Err()
}

func (m *memory) rangesAhead() []ledger.Range {
	return slices.SortedFunc(maps.Keys(m.unshown), func(a, b ledger.Range) int { return cmp.Compare(a.From, b.From) })
}

func (m *memory) project(ctx context.Context, _ ledger.Scope, from, to ledger.Offset) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if from != m.at {
		m.mistakes = append(m.mistakes, fmt.Sprintf("projected from %d, and the watermark is %d", from, m.at))
		return errCovered
	}
	for _, stored := range m.rangesAhead() {
		if m.at == to {
			break
		}
		if stored.From != m.at || stored.To > to {
			m.mistakes = append(m.mistakes, fmt.Sprintf("projected to %d, and %v comes after %d", to, stored, m.at))
			return errCovered
		}
		for _, update := range m.unshown[stored] {
			m.updates = append(m.updates, update.Offset)
		}
		m.at = stored.To
		delete(m.unshown, stored)
	}
	if m.at != to {
		m.mistakes = append(m.mistakes, fmt.Sprintf("projected to %d, and nothing is stored after %d", to, m.at))
		return errCovered
	}
	m.steps = append(m.steps, ledger.Range{From: from, To: to})
	return nil
}

// last is the last update that was written.
func (m *memory) last(_ context.Context, upTo ledger.Offset) (at ledger.Offset, updateID string, _ error) {
	for update := range m.everyWritten() {
		if update.Offset <= upTo && update.Offset > at {
			at, updateID = update.Offset, update.ID
		}
	}
	return at, updateID, nil
}

// everyWritten is each update that was written, in the order of the batches.
func (m *memory) everyWritten() iter.Seq[ledger.Update] {
	return func(yield func(ledger.Update) bool) {
		for _, batch := range m.written() {
			for _, page := range batch {
				for _, update := range page.Updates {
					if !yield(update) {
						return
					}
				}
			}
		}
	}
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

// begunAt returns a memory with its watermark at an offset.
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
		Watch: Watch{Retrying: func(err error, _ time.Duration) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.retries = append(l.retries, err)
		}},
	}
	return l
}

// named gives the updates of the ledger ids, by which they can be looked up.
func (l *loop) named(id func(ledger.Offset) string) {
	l.source.update = func(_ context.Context, asked string) (ledger.Update, error) {
		for _, offset := range l.ledger.all() {
			if id(offset) == asked {
				return ledger.Update{Offset: offset, ID: asked}, nil
			}
		}
		return ledger.Update{}, ledger.ErrNotFound
	}
	read := l.source.readUpdates
	l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
		page, err := read(ctx, after, to)
		for i := range page.Updates {
			page.Updates[i].ID = id(page.Updates[i].Offset)
		}
		return page, err
	}
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
