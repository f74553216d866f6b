package torture

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"ledgerindexer/sandbox"
)

// plan is what a round runs.
type plan struct {
	seed           uint64
	version        string // of the participant
	next           string // the release that it is restarted with; empty: none
	strict         bool   // only the operations of the interface
	shape          string
	blobs          bool
	interfaces     bool
	snapshot       bool // begins with a backfill, else with genesis
	activeShare    float64
	updates        int // before the first fault
	growth         int // while faults come, in each stage
	stages         int // on the same database, each compared at its end
	listLimit      int
	latency        time.Duration
	scanPage       int
	balanceChanges bool
	transactions   bool // of the Scan the transaction history is read, else the updates of the network
	otherScans     int  // Scan services beside the one that faults hit
	restored       bool // the participant is restored from a backup at the end, and one more stage follows
	redacts        bool // contracts and updates are redacted beside the daemon
	prunes         bool // and old updates are pruned
}

// wholeSnapshot is a list limit larger than any snapshot: release 3.4 serves a snapshot in one answer or not at all.
const wholeSnapshot = 5000

// newPlan returns the plan of a round's seed.
func newPlan(seed uint64) plan {
	random := randomOf(seed, "plan")
	p := plan{
		seed: seed, version: []string{"3.4", "3.5", "3.6"}[random.IntN(3)], shape: sandbox.ACSDelta,
		strict: random.IntN(4) == 0, blobs: random.IntN(3) == 0, interfaces: random.IntN(3) == 0,
		snapshot:    random.IntN(2) == 0,
		activeShare: 0.1 + 0.5*random.Float64(), updates: 300 + random.IntN(900), growth: 300 + random.IntN(700),
		stages:    1 + random.IntN(2),
		listLimit: 15 + random.IntN(185), latency: time.Duration(random.IntN(4)) * ms, scanPage: 20 + random.IntN(200),
		balanceChanges: random.IntN(2) == 0,
	}
	if random.IntN(2) == 0 {
		p.shape = sandbox.LedgerEffects
	}
	if p.strict {
		p.version = "3.5"
	}
	upgrade := random.IntN(2) == 0
	switch {
	case p.strict || !upgrade:
	case p.version == "3.4":
		p.next = "3.5"
	case p.version == "3.5":
		p.next = "3.6"
	}
	if p.version == "3.4" {
		p.activeShare /= 2 // a snapshot without tokens is only known to be complete if there are more updates than contracts
		if p.snapshot {
			p.listLimit = wholeSnapshot
		}
	}
	p.otherScans = random.IntN(3)
	p.restored = random.IntN(2) == 0
	p.redacts = random.IntN(2) == 0
	// of ledger effects what stays is more than the truth of a snapshot
	p.prunes = random.IntN(2) == 0 && p.shape == sandbox.ACSDelta
	p.transactions = random.IntN(3) == 0
	return p
}

// lies reports whether one of the Scan services lies: the others are enough to agree.
func (p plan) lies() bool { return p.otherScans > 1 }

// agree returns how many Scan services have to agree: one less than there are.
func (p plan) agree() int { return max(1, p.otherScans) }

// randomOf returns a source of random numbers for one purpose of a seed.
func randomOf(seed uint64, purpose string) *rand.Rand {
	n := uint64(14695981039346656037)
	for _, b := range []byte(purpose) {
		n = (n ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, n))
}

func (p plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "release %s", p.version)
	if p.strict {
		b.WriteString(", strict interface")
	}
	if p.next != "" {
		b.WriteString(" then " + p.next)
	}
	fmt.Fprintf(&b, ", %s", strings.ToLower(strings.TrimPrefix(p.shape, "TRANSACTION_SHAPE_")))
	if p.blobs {
		b.WriteString(", blobs")
	}
	if p.interfaces {
		b.WriteString(", interfaces")
	}
	start := "genesis"
	if p.snapshot {
		start = "a snapshot"
	}
	if p.transactions {
		b.WriteString(", transaction history")
	}
	if p.otherScans > 0 {
		fmt.Fprintf(&b, ", %d Scans", 1+p.otherScans)
	}
	if p.lies() {
		b.WriteString(" of which one lies")
	}
	fmt.Fprintf(&b, ", from %s, %d updates growing by %d in each of %d stages", start, p.updates, p.growth, p.stages)
	if p.restored {
		b.WriteString(", and one of a restored participant")
	}
	if p.redacts {
		b.WriteString(", redacting")
	}
	if p.prunes {
		b.WriteString(", pruning")
	}
	return b.String()
}

// scope returns the scope to read, for a release.
func (p plan) scope(version string) sandbox.Scope {
	s := sandbox.Scope{Shape: p.shape, Blobs: p.blobs, Version: version}
	if p.interfaces {
		s.Interfaces = sandbox.InterfaceNames()
	}
	return s
}

// environment returns the scope as variables for the programs.
func (p plan) environment() []string {
	shape := "acs-delta"
	if p.shape == sandbox.LedgerEffects {
		shape = "ledger-effects"
	}
	history := "updates"
	if p.transactions {
		history = "transactions"
	}
	return []string{
		"INDEXER_SHAPE=" + shape, fmt.Sprintf("INDEXER_BLOBS=%t", p.blobs), "INDEXER_INTERFACES=" +
			strings.Join(p.scope("").Interfaces, ","),
		"INDEXER_SCAN_HISTORY=" + history,
	}
}

// server returns the options of the participant for a release.
func (p plan) server(version string) sandbox.ServerOptions {
	return sandbox.ServerOptions{Version: version, StrictInterface: p.strict, ListLimit: p.listLimit, Latency: p.latency}
}
