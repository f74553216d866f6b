package active

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"ledgerindexer/store/internal/rows"
)

// How much of batches that were written and are not shown yet a Pending remembers, and how much of it one transaction
// shows, about. An event takes some 200 bytes.
const (
	pendingEvents = 100_000
	EventsEnough  = 50_000
)

// Pending remembers what batches do to the active set, from when they were written until they are shown. What it lacks
// is read back from the facts.
type Pending struct {
	Limit  int // of events
	Enough int // events for one transaction

	mu      sync.Mutex
	batches []pendingBatch // in order, not overlapping
	events  int
}

// NewPending remembers nothing yet.
func NewPending() *Pending { return &Pending{Limit: pendingEvents, Enough: EventsEnough} }

type pendingBatch struct {
	from, to int64 // from exclusive, to inclusive
	events   []rows.Effect
}

// Add remembers the events of a range that was committed, which are its own now, unless they are too many. What was
// remembered of the range before is not what was stored in the end.
func (p *Pending) Add(from, to int64, events []rows.Effect) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(func(b pendingBatch) bool { return b.from < to && b.to > from })
	if from == to || p.events+len(events) > p.Limit {
		return
	}
	i, _ := slices.BinarySearchFunc(p.batches, from,
		func(b pendingBatch, from int64) int { return cmp.Compare(b.from, from) })
	detach(events)
	p.batches = slices.Insert(p.batches, i, pendingBatch{from, to, events})
	p.events += len(events)
}

// detach gives events contract ids of their own, in one piece: those of a page can be parts of all that the server
// sent.
func detach(events []rows.Effect) {
	size := 0
	for i := range events {
		size += len(events[i].ContractID)
	}
	var ids strings.Builder
	ids.Grow(size)
	for i := range events {
		ids.WriteString(events[i].ContractID)
	}
	rest := ids.String()
	for i := range events {
		n := len(events[i].ContractID)
		events[i].ContractID, rest = rest[:n], rest[n:]
	}
}

// Forget drops what ends at an offset or before.
func (p *Pending) Forget(shown int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(func(b pendingBatch) bool { return b.to <= shown })
}

func (p *Pending) drop(gone func(pendingBatch) bool) {
	p.batches = slices.DeleteFunc(p.batches, func(b pendingBatch) bool {
		if gone(b) {
			p.events -= len(b.events)
			return true
		}
		return false
	})
}

// After returns the events of batches that follow one another from an offset on, at most up to another: of whole
// batches, until they are enough. reach is how far they go. known is false where the first of them is not remembered:
// then there are none, and reach is where those begin that are.
func (p *Pending) After(from, to int64) (parts [][]rows.Effect, reach int64, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	reach = from
	count := 0
	for _, b := range p.batches {
		if b.to <= from {
			continue
		}
		if b.from > reach || reach == to || count >= p.Enough {
			break
		}
		end := min(b.to, to)
		part := b.events[firstAfter(b.events, reach):firstAfter(b.events, end)]
		parts, count = append(parts, part), count+len(part)
		reach = end
	}
	if reach > from {
		return parts, reach, true
	}
	for _, b := range p.batches {
		if b.from > from {
			return nil, min(b.from, to), false
		}
	}
	return nil, to, false
}

func firstAfter(events []rows.Effect, offset int64) int {
	i, _ := slices.BinarySearchFunc(events, offset,
		func(e rows.Effect, offset int64) int { return cmp.Compare(e.Offset, offset+1) })
	return i
}
