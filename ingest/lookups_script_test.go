package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"ledgerindexer/ledger"
)

// fakeContracts is a LookupSource whose every answer a test can replace.
type fakeContracts struct {
	answer func(id string) error // nil: the contract is found

	mu      sync.Mutex
	asked   []string
	at      []time.Time
	parties []string
	busy    bool
}

func (f *fakeContracts) ContractByID(ctx context.Context, id string, parties []string) (ledger.Contract, ledger.JSON, error) {
	f.mu.Lock()
	f.asked, f.at, f.parties = append(f.asked, id), append(f.at, time.Now()), parties
	if f.busy {
		panic("asked for two contracts at a time")
	}
	f.busy = true
	f.mu.Unlock()
	var err error
	if f.answer != nil {
		err = f.answer(id)
	}
	f.mu.Lock()
	f.busy = false
	f.mu.Unlock()
	if ctx.Err() != nil {
		return ledger.Contract{}, nil, ctx.Err()
	}
	return ledger.Contract{ContractID: id, PackageName: "of " + id}, nil, err
}

func (f *fakeContracts) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// count is how often a contract was asked for.
func (f *fakeContracts) count(id string) (n int) {
	for _, asked := range f.requests() {
		if asked == id {
			n++
		}
	}
	return n
}

// lookupMemory is a LookupSink: a queue and what came of it.
type lookupMemory struct {
	told
	wantedErr func() error
	saveErr   func(lookups []ledger.Lookup) error

	mu     sync.Mutex
	queue  []string
	looked []time.Time
	limit  int // the highest that was asked for
	saved  [][]ledger.Lookup
}

func (m *lookupMemory) want(ids ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue = append(m.queue, ids...)
}

func (m *lookupMemory) WantedLookups(ctx context.Context, limit int) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looked, m.limit = append(m.looked, time.Now()), max(m.limit, limit)
	if m.wantedErr != nil {
		if err := m.wantedErr(); err != nil {
			return nil, err
		}
	}
	return slices.Clone(m.queue[:min(limit, len(m.queue))]), ctx.Err()
}

func (m *lookupMemory) SaveLookups(ctx context.Context, lookups []ledger.Lookup) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if m.saveErr != nil {
		if err := m.saveErr(lookups); err != nil {
			return err
		}
	}
	m.saved = append(m.saved, slices.Clone(lookups))
	for _, lookup := range lookups {
		m.queue = slices.DeleteFunc(m.queue, func(id string) bool { return id == lookup.ContractID })
	}
	return nil
}

func (m *lookupMemory) batches() [][]ledger.Lookup {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.saved)
}

// outcomes is what was saved, by contract.
func (m *lookupMemory) outcomes() map[string]ledger.LookupStatus {
	outcomes := map[string]ledger.LookupStatus{}
	for _, batch := range m.batches() {
		for _, lookup := range batch {
			outcomes[lookup.ContractID] = lookup.Status
		}
	}
	return outcomes
}

func (m *lookupMemory) looks() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.looked)
}

// lookupTask is a task between a fake source and a memory.
type lookupTask struct {
	*Lookups
	t      *testing.T
	source *fakeContracts
	memory *lookupMemory
	wake   chan struct{}
}

func newLookups(t *testing.T, wanted ...string) *lookupTask {
	k := &lookupTask{t: t, source: &fakeContracts{}, memory: &lookupMemory{queue: slices.Clone(wanted)}, wake: make(chan struct{}, 1)}
	k.Lookups = &Lookups{
		Source: k.source, Sink: k.memory, Parties: []string{"alice"}, Rate: 5, Wake: k.wake,
		Logger: k.memory.logger(), Watch: k.memory.watch(),
	}
	return k
}

func (k *lookupTask) run() (stop func()) { return running(k.t, k.Run) }

func ids(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("contract-%04d", i))
	}
	return list
}

func undecodable(text string) error {
	return &ledger.DecodeError{Element: -1, Err: errors.New(text)}
}
