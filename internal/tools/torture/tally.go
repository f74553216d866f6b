package torture

import (
	"fmt"
	"strings"
	"sync"
)

// Tally counts faults and comparisons. It is safe for concurrent use.
type Tally struct {
	mu          sync.Mutex
	rounds      int
	comparisons int
	rows        int
	differences int
	faults      map[faultKind]int
}

func newTally() *Tally { return &Tally{faults: map[faultKind]int{}} }

// hit counts a fault that took effect.
func (t *Tally) hit(k faultKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults[k]++
}

// compared counts a comparison.
func (t *Tally) compared(rows int, equal bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.comparisons++
	t.rows += rows
	if !equal {
		t.differences++
	}
}

func (t *Tally) round() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rounds++
}

// of returns how many faults of a kind took effect.
func (t *Tally) of(k faultKind) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.faults[k]
}

// Total returns how many faults took effect.
func (t *Tally) Total() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range t.faults {
		n += of
	}
	return n
}

// String formats the table.
func (t *Tally) String() string {
	total := t.Total()
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	line := func(name string, n int) { fmt.Fprintf(&b, "| %-56s | %9d |\n", name, n) }
	line("rounds", t.rounds)
	line("faults that took effect", total)
	for _, k := range kinds {
		line("  "+string(k), t.faults[k])
	}
	line("comparisons with the truth", t.comparisons)
	line("rows compared", t.rows)
	line("comparisons that found a difference", t.differences)
	return b.String()
}
