package ingest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"ledgerindexer/ledger"
)

// script is a ledger with an update at every third offset, and what a server makes of it.
type script struct {
	pageSize  int   // updates that a bounded read brings
	pageBytes int64 // what each page says it weighs
	// What an update weighs besides; every so many updates there is one a thousand times as large, 0: none.
	updateBytes int64
	largeEvery  int
	blind       bool // tells neither its end nor how far it is pruned
	pruned      ledger.Offset
	latency     time.Duration
	// An open-ended read gets an offset checkpoint this long after it began; 0: none.
	checkpointAfter time.Duration
	// As participants do it: an offset checkpoint is made this often, and an open-ended read that begins at the last one
	// gets it before the first update, or after checkpointAfter. 0: each read gets one of its own.
	checkpointEvery time.Duration
	// All open-ended reads get an offset checkpoint whenever this much has passed; 0: never.
	checkpointClock time.Duration

	mu       sync.Mutex
	updates  []ledger.Offset
	end      ledger.Offset
	grown    chan struct{} // closed when the ledger grows
	requests map[string]int
	made     ledger.Offset // of the last offset checkpoint
	madeAt   time.Time     // when it was made
}

const spacing = 3 // offsets have gaps

func newScript(updates int) *script {
	s := &script{pageSize: 10, grown: make(chan struct{}), requests: map[string]int{}}
	s.grow(updates)
	return s
}

func (s *script) grow(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeCheckpoint()
	for range n {
		s.end += spacing
		s.updates = append(s.updates, s.end)
	}
	close(s.grown)
	s.grown = make(chan struct{})
}

// stretches lets the ledger grow by some thousand updates, which lie close together in some places and far apart in
// others.
func (s *script) stretches(random *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 1 + random.IntN(4) {
		widest := 1 << random.IntN(12)
		for range random.IntN(1500) {
			s.end += ledger.Offset(1 + random.IntN(widest))
			s.updates = append(s.updates, s.end)
		}
	}
	close(s.grown)
	s.grown = make(chan struct{})
}

// weight is what a page of updates says it weighs.
func (s *script) weight(updates []ledger.Update) int64 {
	bytes := s.pageBytes
	for i := range updates {
		bytes += s.updateBytes
		if s.largeEvery > 0 && updates[i].Offset%ledger.Offset(s.largeEvery) == 0 {
			bytes += 1000 * s.updateBytes
		}
	}
	return bytes
}

// growUnseen moves the end without an update that the scope shows.
func (s *script) growUnseen(n ledger.Offset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end += n
}

func (s *script) all() []ledger.Offset {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]ledger.Offset(nil), s.updates...)
}

func (s *script) last() ledger.Offset {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

func (s *script) asked(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[operation]
}

// askedAll is the number of requests for updates and for the ledger's end.
func (s *script) askedAll() int { return s.asked("tail") + s.asked("end") + s.asked("read") }

func (s *script) source() *fakeSource {
	return &fakeSource{ledgerEnd: s.ledgerEnd, prunedOffset: s.prunedOffset, readUpdates: s.read, tailUpdates: s.tail}
}

func (s *script) request(ctx context.Context, operation string) error {
	s.mu.Lock()
	s.requests[operation]++
	s.mu.Unlock()
	Sleep(ctx, s.latency)
	return ctx.Err()
}

func (s *script) ledgerEnd(ctx context.Context) (ledger.Offset, error) {
	if err := s.request(ctx, "end"); err != nil {
		return 0, err
	}
	if s.blind {
		return 0, ledger.ErrNotOffered
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end, nil
}

func (s *script) prunedOffset(ctx context.Context) (ledger.Offset, error) {
	if err := s.request(ctx, "pruned"); err != nil {
		return 0, err
	}
	if s.blind {
		return 0, ledger.ErrNotOffered
	}
	return s.pruned, nil
}

// between is the updates with after < offset <= to, at most limit.
func (s *script) between(after, to ledger.Offset, limit int) []ledger.Update {
	var found []ledger.Update
	first, _ := slices.BinarySearch(s.updates, after+1)
	for _, offset := range s.updates[first:] {
		if offset > to || len(found) == limit {
			break
		}
		found = append(found, ledger.Update{Offset: offset})
	}
	return found
}

func (s *script) read(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	if err := s.request(ctx, "read"); err != nil {
		return ledger.Page{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.blind:
		return ledger.Page{}, errors.New("a bounded read though the end is not known")
	case to > s.end || after >= to:
		return ledger.Page{}, &ledger.Problem{What: "OFFSET_AFTER_LEDGER_END"}
	}
	page := ledger.Page{From: after, To: to, Updates: s.between(after, to, s.pageSize)}
	page.Bytes = s.weight(page.Updates)
	if len(page.Updates) == s.pageSize {
		page.To = page.Updates[s.pageSize-1].Offset
	}
	return page, nil
}

// makeCheckpoint makes an offset checkpoint when it is due: it is called before the ledger grows, and before one is
// looked at.
func (s *script) makeCheckpoint() {
	if s.checkpointEvery > 0 && time.Since(s.madeAt) >= s.checkpointEvery {
		s.made, s.madeAt = s.end, time.Now()
	}
}

// tail answers as the server does: when limit elements are there, or nothing has come for idle.
func (s *script) tail(ctx context.Context, after ledger.Offset, limit int, idle time.Duration) (ledger.Page, bool, error) {
	if err := s.request(ctx, "tail"); err != nil {
		return ledger.Page{}, false, err
	}
	page := ledger.Page{From: after, To: after, Bytes: s.pageBytes}
	var checkpoint <-chan time.Time
	if s.checkpointAfter > 0 {
		checkpoint = time.After(s.checkpointAfter)
	}
	if s.checkpointClock > 0 {
		checkpoint = time.After(time.Until(time.Now().Truncate(s.checkpointClock).Add(s.checkpointClock)))
	}
	for {
		s.mu.Lock()
		s.makeCheckpoint()
		if s.checkpointEvery > 0 && s.made == after && s.end > after && len(page.Checkpoints) == 0 {
			page.Checkpoints = append(page.Checkpoints, ledger.OffsetCheckpoint{Offset: after})
		}
		page.Updates = s.between(after, s.end, limit-len(page.Checkpoints))
		grown := s.grown
		s.mu.Unlock()
		if n := len(page.Updates); n > 0 {
			page.To = max(page.To, page.Updates[n-1].Offset)
		}
		if len(page.Updates)+len(page.Checkpoints) >= limit {
			return page, true, nil
		}
		select {
		case <-ctx.Done():
			return ledger.Page{}, false, ctx.Err()
		case <-grown:
		case <-checkpoint:
			s.mu.Lock()
			if s.makeCheckpoint(); s.checkpointEvery > 0 && (s.made != after || len(page.Checkpoints) > 0) {
				s.mu.Unlock()
				continue
			}
			if page.Updates = s.between(after, s.end, limit); len(page.Updates) < limit { // updates go before it
				page.Checkpoints = append(page.Checkpoints, ledger.OffsetCheckpoint{Offset: s.end})
				page.To = s.end
			}
			s.mu.Unlock()
		case <-time.After(idle):
			return page, false, nil
		}
	}
}
