package ingest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
)

// world is the services of the transaction history that may answer, and what is done to the one that is read. The
// records of one update are adjacent in every service's order.
type world struct {
	mu      sync.Mutex // of what calls use: reads and writes continue at the same time
	random  *rand.Rand
	service *transactionsScript
	updates [][]ledger.Record // in the service's order
	hidden  int               // so many of the last it does not show yet
	lost    [][]ledger.Record // it showed them once
	next    int

	failing  float64 // how often a call fails, before or after it had its effect
	stirring float64 // how often a request finds the service changed
	fail     bool    // the next request does
	left     int     // so many requests until the process ends
	end      func()  // ends it
}

func (w *world) chance(often float64) bool { return w.random.Float64() < often }

// update makes what one update brings: mostly one record; some share their event id, and some of those are equal.
func (w *world) update() (records []ledger.Record) {
	w.next++
	id := fmt.Sprintf("#%03d:%d", (w.next*389)%1000, w.next)
	n := 1
	if w.chance(0.2) {
		n += 1 + w.random.IntN(3)
	}
	content := 0
	for range n {
		records = append(records, record(id, fmt.Sprint(content)))
		content += w.random.IntN(2)
	}
	return records
}

func (w *world) grow(updates int) {
	for range updates {
		w.updates = append(w.updates, w.update())
	}
}

// show makes the service show what it has.
func (w *world) show() {
	w.service.become(slices.Concat(w.updates[:max(0, len(w.updates)-w.hidden)]...))
}

// stir changes the service in one way or other. violent are the ways that no service takes between two requests without
// failing one.
func (w *world) stir() {
	violent := false
	switch w.random.IntN(12) {
	case 0, 1, 2, 3:
		w.grow(1 + w.random.IntN(4))
	case 4:
		w.grow(w.random.IntN(40))
	case 5: // another replica, or the same one
		w.hidden = w.random.IntN(2) * w.random.IntN(12)
	case 6: // another service, whose order differs a little
		if len(w.updates) > 1 {
			i := 1 + w.random.IntN(len(w.updates)-1)
			w.updates[i-1], w.updates[i] = w.updates[i], w.updates[i-1]
		}
	case 7: // much
		violent = true
		near := min(len(w.updates), 4)
		for i := near; i < len(w.updates); i++ {
			j := i - w.random.IntN(near)
			w.updates[i], w.updates[j] = w.updates[j], w.updates[i]
		}
	case 8: // altogether
		violent = true
		w.random.Shuffle(len(w.updates), func(i, j int) { w.updates[i], w.updates[j] = w.updates[j], w.updates[i] })
	case 9: // its end is lost
		violent = true
		n := w.random.IntN(min(len(w.updates), 20) + 1)
		w.lost = append(w.lost, w.updates[len(w.updates)-n:]...)
		w.updates = w.updates[:len(w.updates)-n]
	case 10: // what was lost comes again
		if n := len(w.lost); n > 0 {
			i := w.random.IntN(n)
			w.updates = append(w.updates, w.lost[i])
			w.lost = slices.Delete(w.lost, i, i+1)
		}
	case 11:
		w.service.describes(ledger.TransactionsService{Backfilling: !w.service.service.Backfilling})
	}
	w.fail = w.fail || violent
	w.show()
}

// request is called with each request: the service may be another one by then, or fail.
func (w *world) request(string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left--; w.left == 0 {
		w.end()
	}
	if w.chance(w.stirring) {
		w.stir()
	}
	w.service.mu.Lock()
	w.service.pageSize = 1000 // more than share their ids in a row
	if w.left > 0 {
		w.service.pageSize = []int{1 + w.random.IntN(20), 20, 20}[w.random.IntN(3)]
	}
	w.service.mu.Unlock()
	if w.fail || w.chance(w.failing) {
		w.fail = false
		return errAway
	}
	return nil
}

// begin is called with each write, before its effect: more is read until it has that.
func (w *world) begin(write string) error {
	w.mu.Lock()
	pause := time.Duration(w.random.IntN(3)) * time.Millisecond
	w.mu.Unlock()
	time.Sleep(pause)
	return w.write(write)
}

func (w *world) write(string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chance(w.failing) {
		return errAway
	}
	return nil
}

// Whatever becomes of the service and of the process: in the end every record that the service shows is stored, as
// often as it shows it, and none is stored more often than it was ever shown.
func TestTheHistoryIsStoredExactlyOnceWhateverHappens(t *testing.T) {
	t.Parallel()
	seeds := uint64(200)
	if brief.Run() {
		seeds = 40
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { livesThrough(t, seed) })
		})
	}
}

func livesThrough(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	l := newTransactionsLoop(t, nil)
	w := &world{random: random, service: l.service}
	w.grow(random.IntN(200))
	w.show()
	l.service.before, l.memory.before, l.memory.after = w.request, w.begin, w.write
	batch := 1 + random.IntN(40) // small ones are written while others are
	l.set = func(h *Transactions) { h.batch = batch }
	for range random.IntN(5) { // processes, one after another
		w.failing, w.stirring = random.Float64()*0.2, random.Float64()*random.Float64()*0.3
		w.left = 1 + random.IntN(300)
		w.end = func() { l.cancel() }
		l.run()
		if err := <-l.done; err != nil {
			t.Fatalf("stopped with %v\n%s", err, l.told.log.String())
		}
		w.stir()
	}
	w.failing, w.stirring, w.fail, w.hidden = 0, 0, false, 0
	w.service.describes(ledger.TransactionsService{})
	w.grow(1)
	w.show()
	stop := l.run()
	pass(time.Hour)
	if err := stop(); err != nil {
		t.Fatalf("stopped with %v\n%s", err, l.told.log.String())
	}

	stored, shown := count(l.memory.stored()), w.service.shown()
	for word, n := range count(l.service.all()) {
		if stored[word] < n {
			t.Errorf("%s is stored %d times and shown %d times", word, stored[word], n)
		}
	}
	for word, n := range stored {
		if n > shown[word] {
			t.Errorf("%s is stored %d times and was shown %d times at most", word, n, shown[word])
		}
	}
	_, going := l.memory.rereads()
	if going || l.current() == 0 || len(l.memory.mistakes) > 0 {
		t.Errorf("reading again: %v, current %d times; %v", going, l.current(), l.memory.mistakes)
	}
	if t.Failed() {
		t.Logf("seed %d\n%s", seed, l.told.log.String())
	}
}
