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

// record is a history record. Records are equal where id and content are. The date follows from the id, and mostly
// grows from "a" to "z".
func record(id, content string) ledger.Record {
	return dated(id, content, int(id[0]))
}

func dated(id, content string, second int) ledger.Record {
	return ledger.Record{
		EventID: id, Kind: ledger.RecordMint, Mint: &ledger.OwnedAmount{Owner: content, Amount: "1"},
		Date: ledger.Time{Time: time.Unix(int64(second), 0).UTC(), Valid: second%7 != 0},
	}
}

// history makes records of words: an event id, or an event id and a content as in "a=first".
func history(words string) (records []ledger.Record) {
	for word := range strings.FieldsSeq(words) {
		id, content, _ := strings.Cut(word, "=")
		records = append(records, record(id, content))
	}
	return records
}

// numbered is n records whose ids do not sort in their order.
func numbered(prefix string, n int) (records []ledger.Record) {
	for i := range n {
		records = append(records, dated(fmt.Sprintf("#%s%d:%d", prefix, (i*7919)%1000, i), "", i))
	}
	return records
}

// before is a history of which not all is known when it is read on.
func before(records []ledger.Record) []ledger.Record {
	return append(numbered("before", ledger.TransactionsTail+50), records...)
}

// word is a record as history reads it.
func word(record ledger.Record) string {
	if record.Mint.Owner == "" {
		return record.EventID
	}
	return record.EventID + "=" + record.Mint.Owner
}

func words(records []ledger.Record) string {
	list := make([]string, len(records))
	for i := range records {
		list[i] = word(records[i])
	}
	return strings.Join(list, " ")
}

// count counts how often each record is in a list.
func count(records []ledger.Record) map[string]int {
	n := map[string]int{}
	for i := range records {
		n[word(records[i])]++
	}
	return n
}

// transactionsScript is a service of the transaction history that pages as a Scan does.
type transactionsScript struct {
	mu       sync.Mutex
	service  ledger.TransactionsService
	records  []ledger.Record
	pageSize int
	most     map[string]int // how often each record was shown at once, at most
	asked    []string       // "describe", "after <id>" or "newest"

	// before, if set, is called with each request, and may change the service or fail the request.
	before func(request string) error
	// after, if set, makes the page behind an event id instead of the script.
	after func(id string) []ledger.Record
}

func newTransactionsScript(records []ledger.Record) *transactionsScript {
	s := &transactionsScript{pageSize: 10, most: map[string]int{}}
	s.become(records)
	return s
}

// become makes it another service, or the same one with another history.
func (s *transactionsScript) become(records []ledger.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = slices.Clone(records)
	for word, n := range count(records) {
		s.most[word] = max(s.most[word], n)
	}
}

func (s *transactionsScript) grow(records ...ledger.Record) {
	s.become(append(s.all(), records...))
}

func (s *transactionsScript) all() []ledger.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records)
}

func (s *transactionsScript) describes(service ledger.TransactionsService) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.service = service
}

// intercept sets what is called before each request, while the loop is at work.
func (s *transactionsScript) intercept(before func(request string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

func (s *transactionsScript) shown() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.most)
}

// requests is how many requests began with a text.
func (s *transactionsScript) requests(prefix string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, request := range s.asked {
		if strings.HasPrefix(request, prefix) {
			n++
		}
	}
	return n
}

func (s *transactionsScript) request(ctx context.Context, request string) error {
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

func (s *transactionsScript) Describe(ctx context.Context) (ledger.TransactionsService, error) {
	err := s.request(ctx, "describe")
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.service, err
}

func (s *transactionsScript) TransactionsAfter(ctx context.Context, id string) ([]ledger.Record, error) {
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

func (s *transactionsScript) pageAfter(id string) ([]ledger.Record, error) {
	if id == "" {
		return s.page(0), nil
	}
	page := []ledger.Record(nil)
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

func (s *transactionsScript) page(from int) []ledger.Record {
	return slices.Clone(s.records[from:min(len(s.records), from+s.pageSize)])
}

func (s *transactionsScript) NewestTransactions(ctx context.Context, n int) ([]ledger.Record, error) {
	if err := s.request(ctx, "newest"); err != nil {
		return nil, err
	}
	if n < 1 || n > 1000 {
		return nil, fmt.Errorf("HTTP status 400: a page of %d", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.records[max(0, len(s.records)-n):])
	slices.Reverse(list)
	return list, nil
}

// transactionsMemory is where records are written in these tests: a TransactionsSink as strict as the database. A
// mistake of the loop is noted.
type transactionsMemory struct {
	before   func(write string) error // called with each write; may fail it
	after    func(write string) error // called when it is done; may lose its answer
	mu       sync.Mutex
	at       ledger.TransactionsPosition
	records  []ledger.Record // by seq - 1
	cleared  int             // times
	mistakes []string
}

func newTransactionsMemory() *transactionsMemory { return &transactionsMemory{} }

var errStale = errors.New("the position is not the one that is stored")

// write makes a change: all of it or nothing.
func (m *transactionsMemory) write(ctx context.Context, name string, at ledger.TransactionsPosition, order CommitOrder, change func() error) (ledger.TransactionsPosition, error) {
	if m.before != nil {
		if err := m.before(name); err != nil {
			return at, err
		}
	}
	if err := takeTurn(ctx, order); err != nil {
		return at, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return at, ctx.Err()
	}
	if at.Revision != m.at.Revision {
		return at, errStale
	}
	if at != m.at {
		m.mistakes = append(m.mistakes, fmt.Sprintf("%s: the position is %v, and the writer takes it for %v", name, m.at, at))
	}
	revision := m.at.Revision
	if err := change(); err != nil {
		return at, err
	}
	m.at.Revision = revision + 1
	if m.after != nil {
		if err := m.after(name); err != nil {
			return at, err
		}
	}
	return m.at, nil
}

func (m *transactionsMemory) TransactionsPosition(ctx context.Context) (ledger.TransactionsPosition, []ledger.TransactionsMark, error) {
	if m.before != nil {
		if err := m.before("position"); err != nil {
			return ledger.TransactionsPosition{}, nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := map[string]int{}
	for i := range m.records {
		ids[m.records[i].EventID]++
	}
	var marks []ledger.TransactionsMark
	for i := max(0, len(m.records)-ledger.TransactionsTail); i < len(m.records); i++ {
		mark := m.records[i].Mark()
		mark.Unique = ids[mark.EventID] == 1
		marks = append(marks, mark)
	}
	return m.at, marks, ctx.Err()
}

func (m *transactionsMemory) AppendTransactions(
	ctx context.Context, at ledger.TransactionsPosition, order CommitOrder, records []ledger.Record,
) (ledger.TransactionsPosition, error) {
	return m.write(ctx, "append", at, order, func() error {
		if len(records) == 0 {
			m.mistakes = append(m.mistakes, "nothing to append")
		}
		m.records = append(m.records, slices.Clone(records)...)
		m.at = m.at.After(records)
		return nil
	})
}

func (m *transactionsMemory) ClearTransactions(ctx context.Context, at ledger.TransactionsPosition) (ledger.TransactionsPosition, error) {
	return m.write(ctx, "clear", at, nil, func() error {
		m.records, m.at.LastSeq, m.at.Rereading = nil, 0, true
		m.cleared++
		return nil
	})
}

func (m *transactionsMemory) CompleteTransactions(ctx context.Context, at ledger.TransactionsPosition) (ledger.TransactionsPosition, error) {
	return m.write(ctx, "complete", at, nil, func() error {
		if !m.at.Rereading {
			m.mistakes = append(m.mistakes, "complete without having been cleared")
		}
		m.at.Rereading = false
		return nil
	})
}

func (m *transactionsMemory) StoredTransactions(ctx context.Context, eventIDs []string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range eventIDs {
		if !slices.ContainsFunc(m.records, func(t ledger.Record) bool { return t.EventID == id }) {
			return false, ctx.Err()
		}
	}
	return true, ctx.Err()
}

// stored is all records, in their order.
func (m *transactionsMemory) stored() []ledger.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.records)
}

// rereads is how often the records were cleared, and whether the end was not reached since.
func (m *transactionsMemory) rereads() (cleared int, going bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cleared, m.at.Rereading
}

// transactionsLoop is a transactions loop between a scripted service and a memory.
type transactionsLoop struct {
	t       *testing.T
	told    told
	service *transactionsScript
	memory  *transactionsMemory
	set     func(*Transactions) // what the test sets otherwise

	mu         sync.Mutex
	recovered  int // times
	retries    []error
	done       chan error
	cancel     context.CancelFunc // of the run under way
	currentFor int                // times
}

func newTransactionsLoop(t *testing.T, records []ledger.Record) *transactionsLoop {
	return &transactionsLoop{t: t, service: newTransactionsScript(records), memory: newTransactionsMemory(), done: make(chan error, 1)}
}

func (l *transactionsLoop) watch() TransactionsWatch {
	return TransactionsWatch{
		Current: func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.currentFor++
		},
		Recovered: func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.recovered++
		},
		Retrying: func(err error, _ time.Duration) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.retries = append(l.retries, err)
		},
	}
}

// run starts the loop, as a process does at its start; the function returned stops it and returns what Run returned.
func (l *transactionsLoop) run() (stop func() error) {
	h := &Transactions{Source: l.service, Sink: l.memory, Logger: l.told.logger(), Watch: l.watch()}
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

func (l *transactionsLoop) retried() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.retries)
}

// waits requires that the loop has tried again, and last because of this.
func (l *transactionsLoop) waits(why string) {
	l.t.Helper()
	tries := l.retried()
	require.NotEmpty(l.t, tries)
	require.ErrorContains(l.t, tries[len(tries)-1], why)
}

func (l *transactionsLoop) current() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.currentFor
}

// ended is what Run returned, which it has by now.
func (l *transactionsLoop) ended() error {
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
