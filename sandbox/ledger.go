package sandbox

import (
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
)

// Options say what ledger to make. The zero value is a good ledger.
type Options struct {
	// Seed decides everything that the other options leave open.
	Seed uint64
	// Parties hosted on the participant; default 12, at least 2, at most 60000.
	Parties int
	// EventsPerUpdate is the mean number of events of a transaction in the
	// LEDGER_EFFECTS shape; default 4. ACS_DELTA shows about three quarters of them.
	EventsPerUpdate int
	// ActiveShare is the share of the created contracts that stay active, in
	// (0, 1]; default 0.2.
	ActiveShare float64
	// FirstOffset is the offset of the first update; default 1.
	FirstOffset int64
	// NoGaps makes offsets dense and the ledger end the last update's offset.
	NoGaps bool
	// Elsewhere adds what parties that other participants host do, and what the DSO does: allocations, names,
	// preapprovals, mining rounds, coupons, commands, traffic, transfers of the token standard's version 2. About every
	// fifth update is theirs. Only the network shows them, and the other updates are not those of a ledger without them.
	Elsewhere bool
	// Believable makes values and people as a reader expects them: nobody sends to himself, amounts are of some thousands
	// and never negative, a view says what its contract says. Without it they try a reader of the interface.
	Believable bool
}

func (o Options) withDefaults() Options {
	if o.Parties == 0 {
		o.Parties = 12
	}
	o.Parties = min(max(o.Parties, 2), 60000)
	if o.EventsPerUpdate <= 0 {
		o.EventsPerUpdate = 4
	}
	if o.ActiveShare <= 0 || o.ActiveShare > 1 {
		o.ActiveShare = 0.2
	}
	if o.FirstOffset <= 0 {
		o.FirstOffset = 1
	}
	return o
}

// Ledger is a simulated ledger as one participant sees it. All methods are safe
// for concurrent use; readers see whole updates only.
type Ledger struct {
	*world
	vets   *vettings
	mu     sync.RWMutex
	gen    generator
	pruned int64
	grown  chan struct{} // closed when the ledger grows

	readings atomic.Uint64
}

// NewLedger returns an empty ledger; [Ledger.Grow] fills it.
func NewLedger(opts Options) *Ledger {
	opts = opts.withDefaults()
	w := newWorld(opts.Seed, opts.Parties, opts.Believable)
	return &Ledger{world: w, vets: newVettings(w), gen: newGenerator(w, opts), grown: make(chan struct{})}
}

// Grow adds n updates. Growing by 10 twice equals growing by 20.
func (l *Ledger) Grow(n int) {
	for n > 0 {
		step := min(n, 256) // release the lock for readers in between
		l.mu.Lock()
		for range step {
			l.gen.update()
		}
		close(l.grown)
		l.grown = make(chan struct{})
		l.mu.Unlock()
		n -= step
	}
}

// End returns the ledger end: zero for an empty ledger, else the last update's
// offset or, where offsets have gaps, a little more.
func (l *Ledger) End() int64 { return l.view().ledgerEnd }

// Len returns the number of updates.
func (l *Ledger) Len() int { return len(l.view().updates) }

// Offset returns the offset of update i, counted from 0.
func (l *Ledger) Offset(i int) int64 { return l.view().updates[i].offset }

// UpdateID returns the id of update i, counted from 0.
func (l *Ledger) UpdateID(i int) string { return string(l.updateID(nil, i)) }

// Parties returns the parties hosted on the participant.
func (l *Ledger) Parties() []string { return append([]string(nil), l.parties[:l.hosted]...) }

// DSO returns the party that operates the network and signs its amulets. It is hosted elsewhere.
func (l *Ledger) DSO() string { return l.parties[l.dso] }

// ParticipantID returns the participant's id.
func (l *Ledger) ParticipantID() string { return l.participant }

// Synchronizers returns the ids of the connected synchronizers.
func (l *Ledger) Synchronizers() []string { return append([]string(nil), l.synchronizers[:]...) }

// InFlight reports whether a reassignment is incomplete at an offset: unassigned
// and not yet assigned, or the other way round.
func (l *Ledger) InFlight(at int64) bool { return l.view().inFlight(at) }

// Prune makes the participant forget what lies at or below the offset. It is an
// error to prune beyond the ledger end; pruning less than before does nothing.
func (l *Ledger) Prune(offset int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end := l.gen.ledgerEnd; offset > end {
		return fmt.Errorf("prune up to offset %d: the ledger ends at %d", offset, end)
	}
	l.pruned = max(l.pruned, offset)
	return nil
}

// tables hold the decisions of the generator. They only grow, except for the
// fields that say they are atomic.
type tables struct {
	updates       []update
	events        []event
	contracts     []contract
	activations   []activation
	reassignments []reassignment
	legs          []leg
	topology      []topologyEvent
	movements     []movement
	ledgerEnd     int64
}

type updateKind uint8

const (
	kindTransaction updateKind = iota
	kindReassignment
	kindTopology
	kindLost // was an update before the participant was restored
)

// update points to its rows in events, legs or topology, by its kind.
type update struct {
	offset, record int64 // record time in microseconds
	dealt          int64 // the offset that it had first
	first, count   int32
	kind           updateKind
	synchronizer   uint8
}

// contract holds what can not be derived from its number. Signatories come first. Of the
// templates of amulets these are the DSO, the owner (the sender of an instruction) and
// whoever holds the lock; the receiver of an instruction is its observer.
type contract struct {
	amount      int64 // of an amulet or of an instruction; see unit
	created     int32 // index of the creating update
	parties     [4]uint16
	kind        kind
	signatories uint8
	observers   uint8
	flags       contractFlags
}

type contractFlags uint8

const (
	flagTransient contractFlags = 1 << iota // archived in the transaction that created it
	flagDivulged                            // no stakeholder is hosted here
)

func (c *contract) stakeholders() []uint16 { return c.parties[:c.signatories+c.observers] }

// event is a node of a transaction.
type event struct {
	contract   int32
	node, last int32 // last: last descendant
	extra      [3]uint16
	actor      uint16
	extras     uint8
	choice     int8 // of the contract's template, or -1: a creation
	served     kind // the kind by which an exercise is served
	acs        bool // part of the ACS_DELTA shape
}

// activation is one stay of a contract on a synchronizer.
type activation struct {
	contract     int32
	update       int32 // index of the activating update
	node         int32
	until        int32 // index of the deactivating update, or -1; atomic
	counter      int32
	synchronizer uint8
}

// reassignment is a move of a contract between synchronizers. Its two halves can
// come in any order.
type reassignment struct {
	contract       int32
	from           int32 // activation on the source
	to             int32 // activation on the target, -1 until assigned; atomic
	unassigned     int32 // index of the update, -1 until then; atomic
	assigned       int32 // index of the update, -1 until then; atomic
	unassignedNode int32
	counter        int32
	source, target uint8
	submitter      int32 // a party, or -1: repaired
	exclusive      bool
}

type leg struct {
	reassignment int32
	node         int32
	assign       bool
}

type topologyKind uint8

const (
	topologyAdded topologyKind = iota
	topologyChanged
	topologyRevoked
	topologyOnboarding
)

type topologyEvent struct {
	party      uint16
	kind       topologyKind
	permission uint8
	elsewhere  bool // about the other participant
}

// view is the ledger at one moment. It shares the tables, cut to their length
// then, so it stays as it was while the ledger grows.
type view struct {
	*world
	tables
	pruned  int64
	grown   <-chan struct{}
	reading uint64 // its number, of those that a server makes
}

func (l *Ledger) view() *view {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return &view{world: l.world, tables: l.gen.tables, pruned: l.pruned, grown: l.grown}
}

// after returns how many updates have offsets of at most the given one, which is
// also the index of the first one beyond it.
func (v *view) after(offset int64) int {
	return sort.Search(len(v.updates), func(i int) bool { return v.updates[i].offset > offset })
}

// active reports whether activation a holds when n updates have happened.
func (v *view) active(a *activation, n int) bool {
	until := atomic.LoadInt32(&a.until)
	return int(a.update) < n && (until < 0 || int(until) >= n)
}

// halves returns which halves of a reassignment are among the first n updates.
func (r *reassignment) halves(n int) (unassigned, assigned bool) {
	u, a := atomic.LoadInt32(&r.unassigned), atomic.LoadInt32(&r.assigned)
	return u >= 0 && int(u) < n, a >= 0 && int(a) < n
}

func (v *view) inFlight(at int64) bool {
	n := v.after(at)
	for i := range v.reassignments {
		if u, a := v.reassignments[i].halves(n); u != a {
			return true
		}
	}
	return false
}
