package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// record is a history record. Records are equal where id and content are.
func record(id, content string) ledger.Transaction {
	return ledger.Transaction{
		EventID: id, Kind: ledger.TransactionMint, Mint: &ledger.OwnedAmount{Owner: content, Amount: "1"},
	}
}

// history makes records of words: an event id, or an event id and a content as in "a=first".
func history(words string) (records []ledger.Transaction) {
	for word := range strings.FieldsSeq(words) {
		id, content, _ := strings.Cut(word, "=")
		records = append(records, record(id, content))
	}
	return records
}

// numbered is n records whose ids do not sort in their order.
func numbered(prefix string, n int) (records []ledger.Transaction) {
	for i := range n {
		records = append(records, record(fmt.Sprintf("#%s%d:%d", prefix, (i*7919)%1000, i), ""))
	}
	return records
}

// before is a history that no window reaches back to.
func before(records []ledger.Transaction) []ledger.Transaction {
	return append(numbered("before", 120), records...)
}

// word is a record as history reads it.
func word(record ledger.Transaction) string {
	if record.Mint.Owner == "" {
		return record.EventID
	}
	return record.EventID + "=" + record.Mint.Owner
}

func words(records []ledger.Transaction) string {
	list := make([]string, len(records))
	for i := range records {
		list[i] = word(records[i])
	}
	return strings.Join(list, " ")
}

// count is how often each record stands in a list.
func count(records []ledger.Transaction) map[string]int {
	n := map[string]int{}
	for i := range records {
		n[word(records[i])]++
	}
	return n
}

// historyScript is a service of the transaction history that pages as a Scan does.
type historyScript struct {
	mu          sync.Mutex
	service     ledger.HistoryService
	records     []ledger.Transaction
	pageSize    int
	newestLimit int            // of the newest records it gives no more; 0: it has no limit
	most        map[string]int // how often each record was shown at once, at most
	asked       []string       // "describe", "after <id>" or "newest"

	// before, if set, is called with each request, and may change the service or fail the request.
	before func(request string) error
	// after, if set, makes the page behind an event id instead of the script.
	after func(id string) []ledger.Transaction
	// newest, if set, makes the list of newest records instead of the script.
	newest func(n int) []ledger.Transaction
}

func newHistoryScript(records []ledger.Transaction) *historyScript {
	s := &historyScript{pageSize: 10, most: map[string]int{}}
	s.become(records)
	return s
}

// become makes it another service, or the same one with another history.
func (s *historyScript) become(records []ledger.Transaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = slices.Clone(records)
	for word, n := range count(records) {
		s.most[word] = max(s.most[word], n)
	}
}

func (s *historyScript) grow(records ...ledger.Transaction) {
	s.become(append(s.all(), records...))
}

func (s *historyScript) all() []ledger.Transaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records)
}

func (s *historyScript) describes(service ledger.HistoryService) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.service = service
}

// intercept sets what is called before each request, while the loop is at work.
func (s *historyScript) intercept(before func(request string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

func (s *historyScript) shown() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.most)
}

// requests is how many requests began with a text.
func (s *historyScript) requests(prefix string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, request := range s.asked {
		if strings.HasPrefix(request, prefix) {
			n++
		}
	}
	return n
}

func (s *historyScript) request(ctx context.Context, request string) error {
	s.mu.Lock()
	s.asked = append(s.asked, request)
	before := s.before
	s.mu.Unlock()
	if before != nil {
		if err := before(request); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *historyScript) Describe(ctx context.Context) (ledger.HistoryService, error) {
	err := s.request(ctx, "describe")
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.service, err
}

func (s *historyScript) TransactionsAfter(ctx context.Context, id string) ([]ledger.Transaction, error) {
	if err := s.request(ctx, "after "+id); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.after != nil {
		return s.after(id), nil
	}
	return s.pageAfter(id)
}

func (s *historyScript) pageAfter(id string) ([]ledger.Transaction, error) {
	if id == "" {
		return s.page(0), nil
	}
	page := []ledger.Transaction(nil)
	known := 0
	for i := range s.records {
		if s.records[i].EventID == id {
			known++
			page = s.page(i + 1)
		}
	}
	if known > 1 {
		return nil, fmt.Errorf("HTTP status 500: %w", ledger.ErrCursorRefused)
	}
	return page, nil
}

func (s *historyScript) page(from int) []ledger.Transaction {
	return slices.Clone(s.records[from:min(len(s.records), from+s.pageSize)])
}

func (s *historyScript) NewestTransactions(ctx context.Context, n int) ([]ledger.Transaction, error) {
	if err := s.request(ctx, "newest"); err != nil {
		return nil, err
	}
	if n < 1 || n > 1000 {
		return nil, fmt.Errorf("HTTP status 400: a page of %d", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest != nil {
		return s.newest(n), nil
	}
	if s.newestLimit > 0 {
		n = min(n, s.newestLimit)
	}
	list := slices.Clone(s.records[max(0, len(s.records)-n):])
	slices.Reverse(list)
	return list, nil
}

// historyMemory is where records are written in these tests: a HistorySink as strict as the database. A mistake of the
// loop is noted.
type historyMemory struct {
	length   int                      // of the window, where a unique id is among them
	longest  int                      // of the window otherwise
	before   func(write string) error // called with each write; may fail it
	after    func(write string) error // called when it is done; may lose its answer
	mu       sync.Mutex
	revision int64
	records  []ledger.Transaction // by seq - 1
	order    []int64              // seqs in the service's order
	reading  bool                 // again from the beginning
	met      map[int64]bool       // while it is
	unmet    map[int64]bool       // when it was last done
	rereads  int
	gone     []int64
	mistakes []string
	shared   int // records that were stored behind a write that had not ended, while others had their ids
}

func newHistoryMemory() *historyMemory { return &historyMemory{length: 100, longest: 1000} }

var errStale = errors.New("the position is not the one that is stored")

// write makes a change: all of it or nothing.
func (m *historyMemory) write(ctx context.Context, name string, at *ledger.HistoryPosition, change func() error) (ledger.HistoryPosition, error) {
	if m.before != nil {
		if err := m.before(name); err != nil {
			return ledger.HistoryPosition{}, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return ledger.HistoryPosition{}, ctx.Err()
	}
	if at.Revision != m.revision {
		return ledger.HistoryPosition{}, errStale
	}
	if err := change(); err != nil {
		m.mistakes = append(m.mistakes, err.Error())
		return ledger.HistoryPosition{}, err
	}
	m.revision++
	position := m.position()
	if m.after != nil {
		if err := m.after(name); err != nil {
			return ledger.HistoryPosition{}, err
		}
	}
	return position, nil
}

func (m *historyMemory) position() ledger.HistoryPosition {
	p := ledger.HistoryPosition{Revision: m.revision, LastSeq: int64(len(m.records)), Rereading: m.reading}
	ids := map[string]int{}
	for i := range m.records {
		if seq := int64(i + 1); m.met[seq] || !m.reading && !m.unmet[seq] {
			ids[m.records[i].EventID]++
		}
	}
	for i := len(m.order) - 1; i >= 0; i-- {
		if n := len(p.Window); n >= m.longest || n >= m.length && p.Cursor() >= 0 {
			break
		}
		seq := m.order[i]
		record := &m.records[seq-1]
		mark := ledger.HistoryMark{Seq: seq, EventID: record.EventID, Fingerprint: record.Fingerprint(), Unique: ids[record.EventID] == 1}
		p.Window = append(p.Window, mark)
	}
	slices.Reverse(p.Window)
	return p
}

func (m *historyMemory) HistoryPosition(ctx context.Context) (ledger.HistoryPosition, error) {
	if m.before != nil {
		if err := m.before("position"); err != nil {
			return ledger.HistoryPosition{}, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.position(), ctx.Err()
}

func (m *historyMemory) AppendTransactions(ctx context.Context, at ledger.HistoryPosition, records []ledger.Transaction) (ledger.HistoryPosition, error) {
	return m.AppendBehind(ctx, at, nil, records)
}

func (m *historyMemory) AppendBehind(
	ctx context.Context, at ledger.HistoryPosition, order CommitOrder, records []ledger.Transaction,
) (ledger.HistoryPosition, error) {
	if err := takeTurn(ctx, order); err != nil {
		return at, err
	}
	return m.write(ctx, "append", &at, func() error {
		if known := m.position(); at.LastSeq != known.LastSeq || !endsAlike(at.Window, known.Window) {
			return errors.New("the position is another one than the writer takes it for")
		}
		if len(records) == 0 {
			return errors.New("nothing to append")
		}
		if order != nil {
			m.shared += len(records) - len(eventIDs(records))
		}
		for i := range records {
			seq := m.meet(&records[i])
			if seq == 0 {
				m.records = append(m.records, records[i])
				seq = int64(len(m.records))
			}
			m.order = append(m.order, seq)
			if m.reading {
				m.met[seq] = true
			}
		}
		return nil
	})
}

// endsAlike tells whether the shorter of two windows is the end of the other.
func endsAlike(a, b []ledger.HistoryMark) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[len(a)-n:], b[len(b)-n:])
}

// meet finds the stored record that is met again: 0, there is none.
func (m *historyMemory) meet(record *ledger.Transaction) int64 {
	if !m.reading {
		return 0
	}
	found := int64(0)
	for i := range m.records {
		seq := int64(i + 1)
		if m.met[seq] || word(m.records[i]) != word(*record) {
			continue
		}
		if !m.unmet[seq] {
			return seq
		}
		if found == 0 {
			found = seq
		}
	}
	return found
}

func (m *historyMemory) RereadHistory(ctx context.Context, at ledger.HistoryPosition) (ledger.HistoryPosition, error) {
	return m.write(ctx, "reread", &at, func() error {
		m.reading, m.order, m.met = true, nil, map[int64]bool{}
		m.rereads++
		return nil
	})
}

func (m *historyMemory) FinishReread(ctx context.Context, at ledger.HistoryPosition) (position ledger.HistoryPosition, gone int64, err error) {
	position, err = m.write(ctx, "finish", &at, func() error {
		if !m.reading {
			return errors.New("finished without having begun")
		}
		m.unmet = map[int64]bool{}
		for i := range m.records {
			if seq := int64(i + 1); !m.met[seq] {
				m.unmet[seq] = true
			}
		}
		gone = int64(len(m.unmet))
		m.reading, m.met = false, nil
		m.gone = append(m.gone, gone)
		return nil
	})
	return position, gone, err
}

func (m *historyMemory) HasTransactions(ctx context.Context, eventIDs []string) (map[string]bool, error) {
	return m.have(ctx, "has", eventIDs, func(int64) bool { return true })
}

func (m *historyMemory) MetTransactions(ctx context.Context, eventIDs []string) (map[string]bool, error) {
	return m.have(ctx, "met", eventIDs, func(seq int64) bool { return !m.reading || m.met[seq] })
}

func (m *historyMemory) have(ctx context.Context, name string, eventIDs []string, counts func(seq int64) bool) (map[string]bool, error) {
	if m.before != nil {
		if err := m.before(name); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	has := map[string]bool{}
	for i := range m.records {
		if id := m.records[i].EventID; slices.Contains(eventIDs, id) && counts(int64(i+1)) {
			has[id] = true
		}
	}
	return has, ctx.Err()
}

// stored is all records by seq.
func (m *historyMemory) stored() []ledger.Transaction {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.records)
}

func (m *historyMemory) reread() (times int, gone []int64, going bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rereads, slices.Clone(m.gone), m.reading
}

// historyLoop is a history loop between a scripted service and a memory.
type historyLoop struct {
	t       *testing.T
	told    told
	service *historyScript
	memory  *historyMemory
	set     func(*History) // what the test sets otherwise

	mu         sync.Mutex
	events     []string // what the watch was told, in order, but for positions and numbers
	retries    []error
	done       chan error
	cancel     context.CancelFunc // of the run under way
	currentFor int                // times
}

func newHistoryLoop(t *testing.T, records []ledger.Transaction) *historyLoop {
	return &historyLoop{t: t, service: newHistoryScript(records), memory: newHistoryMemory(), done: make(chan error, 1)}
}

func (l *historyLoop) tell(event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event)
}

func (l *historyLoop) watch() HistoryWatch {
	return HistoryWatch{
		Current: func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.currentFor++
		},
		Waiting:   func(why string) { l.tell("waiting: " + why) },
		Rereading: func(why string) { l.tell("rereading: " + why) },
		Recovered: func() { l.tell("recovered") },
		Retrying: func(err error, _ time.Duration) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.retries = append(l.retries, err)
		},
	}
}

// run starts the loop, as a process does at its start; the function returned stops it and returns what Run returned.
func (l *historyLoop) run() (stop func() error) {
	h := &History{Source: l.service, Sink: l.memory, Logger: l.told.logger(), Watch: l.watch()}
	if l.set != nil {
		l.set(h)
	}
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(l.t.Context())
	go func() { l.done <- h.Run(ctx) }()
	return func() error {
		l.cancel()
		return <-l.done
	}
}

func (l *historyLoop) heard() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

func (l *historyLoop) retried() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.retries)
}

func (l *historyLoop) current() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.currentFor
}

// ended is what Run returned, which it has by now.
func (l *historyLoop) ended() error {
	select {
	case err := <-l.done:
		return err
	default:
		l.cancel()
		err := <-l.done
		require.FailNow(l.t, "it was still at work", "stopped with %v", err)
		return err
	}
}
