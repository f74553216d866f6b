package sandbox

import (
	"fmt"
	"net/http"
	"slices"
	"sort"
	"sync"
	"time"
)

// ScanOptions say how a service of the transaction history behaves. The zero value is Splice's Scan 0.6.4, which sends
// no balance changes.
type ScanOptions struct {
	// Word is the unit's word in the names of fields: "amulet" (default) or "coin".
	Word string
	// BalanceChanges are sent with every transfer.
	BalanceChanges bool
	// StrictInterface serves only the operation of interface.md and its fields.
	StrictInterface bool
	// Release is what /version returns; default "0.6.4". The service has the operations of that release: the updates of
	// the network from 0.4.2 on, bulk files from 0.6.0 on, snapshots from 0.6.1 on, sums of holdings from 0.6.3 on, and
	// from 0.7 on no transaction history.
	Release string
	// MigrateAfter is how many updates of the ledger have the first migration id; those after them have the next one. 0:
	// all have the first.
	MigrateAfter int
	// SnapshotEvery is the time between two snapshots of the network; default 3h.
	SnapshotEvery time.Duration
	// BulkEvery is the record time of a folder of bulk files, which hold at most BulkLines updates each; defaults 24h and
	// 100,000.
	BulkEvery time.Duration
	BulkLines int
	// BulkPrefix is the path under which the service is served, which the addresses of bulk files contain.
	BulkPrefix string
	// PageLimit is the largest page_size; default 1000.
	PageLimit int
	// RequestLimit is how many requests of an operation are answered in a second; others get 429. 0: all.
	RequestLimit int
	// Backfilling begins with an incomplete history: only the second half of the ledger's records at the start. After
	// [Scan.SetBackfilling](false) the others follow after everything else, as in a service that numbers records as it
	// ingests them.
	Backfilling bool
	// Order, if not 0, selects the order of another service: the same records and event ids, other offsets.
	Order uint64
	// UpdatesLag is how many of the ledger's newest updates are not served yet as updates of the network; see
	// [Scan.SetUpdatesLag].
	UpdatesLag int
	// LieAbout is the ledger's offset of a transaction of which the service sends another workflow id than it has; 0: of
	// none.
	LieAbout int64
	// ExtraKinds are served too: records of kinds that interface.md does not have, of amulets that were unlocked or that
	// expired.
	ExtraKinds bool
	// OddShapes are served too: about every fifth record of a known kind has a second part, or no date, or both, which
	// interface.md does not rule out.
	OddShapes bool
	// Token, if not empty, is the bearer token that requests must carry, as a proxy before the service may require.
	Token string
	// Latency is waited before every answer.
	Latency time.Duration
	// Fault may disturb the answer to a request; nil answers normally.
	Fault func(*http.Request) *Fault
	// Rewrite may replace the JSON of a record; nil drops it.
	Rewrite func(Element) []byte
}

// Scan serves a ledger's transaction history, and its updates as the DSO sees them, over HTTP, also while the ledger
// grows. All methods are safe for concurrent use.
type Scan struct {
	ledger *Ledger
	opts   ScanOptions
	paths  map[string]http.HandlerFunc // "METHOD /path"
	begins map[string]http.HandlerFunc // the same, of paths that begin so

	prepared        Elements // what is served in place of the ledger's history, where it is not nil
	preparedUpdates Elements // likewise, in place of the ledger's updates

	mu      sync.Mutex
	second  int64          // in which
	asked   map[string]int // there were so many requests of an operation
	behind  int            // the newest updates that are not served
	bulk    []bulkFolder
	bulkOf  int // of how many updates
	taken   int // movements of the ledger that were ingested
	service     // how they are served
}

// service holds the movements of a ledger as a Scan service orders them.
type service struct {
	order       uint64
	backfilling bool
	missing     []int32 // movements that are served after the backfilling
	served      []int32 // movements in the service's order; what is in it never changes
	place       []int32 // where a movement stands in served, or -1
}

// NewScan returns a service of the ledger's transaction history. It panics on a word or a release that does not exist.
func NewScan(l *Ledger, opts ScanOptions) *Scan {
	if opts.Word == "" {
		opts.Word = "amulet"
	}
	if opts.Word != "amulet" && opts.Word != "coin" {
		panic(fmt.Sprintf("sandbox: no unit %q: choose amulet or coin", opts.Word))
	}
	if opts.Release == "" {
		opts.Release = "0.6.4"
	}
	setDefault(&opts.PageLimit, 1000)
	setDefault(&opts.BulkEvery, 24*time.Hour)
	setDefault(&opts.BulkLines, 100_000)
	setDefault(&opts.SnapshotEvery, 3*time.Hour)
	s := &Scan{ledger: l, opts: opts, service: service{order: opts.Order}}
	s.behind = opts.UpdatesLag
	s.routes()
	s.now()
	if opts.Backfilling {
		half := len(s.served) / 2
		s.backfilling, s.missing = true, s.served[:half]
		s.arrange(slices.Clone(s.served[half:]))
	}
	return s
}

// SetBackfilling sets whether the service is still completing its history; see [ScanOptions]. false serves the missing
// records.
func (s *Scan) SetBackfilling(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take()
	s.backfilling = on
	if !on {
		s.add(s.missing)
		s.missing = nil
	}
}

// SetUpdatesLag hides the ledger's last n updates from those of the network, or shows them again.
func (s *Scan) SetUpdatesLag(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = n
}

// EventIDs returns the event ids of the records that are served now, in the service's order. Records can share one.
func (s *Scan) EventIDs() []string {
	v, served := s.now()
	ids := make([]string, len(served))
	for i, number := range served {
		ids[i] = v.eventID(&v.movements[number])
	}
	return ids
}

// now returns the current ledger, and the records that are served.
func (s *Scan) now() (*view, []int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(), s.served
}

// take ingests the new movements of the ledger.
func (s *Scan) take() *view {
	v := s.ledger.view()
	var fresh []int32
	for i := s.taken; i < len(v.movements); i++ {
		if kind := v.movements[i].kind; kind < moveUnlock || kind.isTransfer() || s.opts.ExtraKinds && kind < moveTraffic {
			fresh = append(fresh, int32(i))
		}
	}
	s.taken = len(v.movements)
	if s.order != 0 {
		shuffle(fresh, v, s.order)
	}
	s.add(fresh)
	return v
}

// shuffledUpdates is the number of updates within which another service's order differs.
const shuffledUpdates = 8

// shuffle reorders movements that are in the ledger's order. Those of one update stay together.
func shuffle(list []int32, v *view, order uint64) {
	group := func(number int32) int { return int(v.movements[number].update) }
	rank := func(number int32) uint64 {
		r := derive(order, domainService, uint64(group(number)))
		return r.next()
	}
	for len(list) > 0 {
		end, updates := 1, 1
		for ; end < len(list); end++ {
			if group(list[end]) != group(list[end-1]) {
				updates++
			}
			if updates > shuffledUpdates {
				break
			}
		}
		sort.SliceStable(list[:end], func(i, j int) bool { return rank(list[i]) < rank(list[j]) })
		list = list[end:]
	}
}

// add serves more movements after the others.
func (s *service) add(fresh []int32) {
	for _, number := range fresh {
		for len(s.place) <= int(number) {
			s.place = append(s.place, -1)
		}
		s.place[number] = int32(len(s.served))
		s.served = append(s.served, number)
	}
}

// arrange serves these movements and no others.
func (s *service) arrange(list []int32) {
	s.served, s.place = nil, nil
	s.add(list)
}

// after returns at most n movements after those with an event id in the service's order, or before them, the newest
// first. The empty id is before the first one. twice reports that two movements have that id.
func (s *Scan) after(id string, n int64, descending bool) (v *view, list []int32, twice bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v = s.take()
	at := -1
	if descending {
		at = len(s.served)
	}
	if id != "" {
		at = -1
		for _, number := range v.movementsNamed(id) {
			if int(number) >= len(s.place) || s.place[number] < 0 {
				continue
			}
			if at >= 0 {
				return v, nil, true
			}
			at = int(s.place[number])
		}
		if at < 0 {
			return v, nil, false
		}
	}
	if descending {
		list = slices.Clone(s.served[max(0, at-int(min(n, int64(at)))):at])
		slices.Reverse(list)
		return v, list, false
	}
	rest := s.served[at+1:]
	return v, rest[:min(n, int64(len(rest)))], false
}
