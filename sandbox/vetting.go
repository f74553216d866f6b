package sandbox

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Vetting is what a participant has vetted on a synchronizer (interface.md,
// "VettedPackages").
type Vetting struct {
	Synchronizer, Participant string
	// Serial of the last topology transaction that changed it, from 1 on.
	Serial int32
	// Packages in the order in which they are served, which means nothing.
	Packages []Vetted
}

// Vetted is a package that may be used from ValidFrom (inclusive) until ValidUntil
// (exclusive), both of microseconds; nil is unbounded.
type Vetted struct {
	PackageID             string
	ValidFrom, ValidUntil *time.Time
}

// Packages returns the packages of the simulated participant and those that it only
// knows from what others vetted.
func (l *Ledger) Packages() []Package { return slices.Clone(l.vets.packages.list) }

// Vetting returns everything that is vetted now, by synchronizer and then by
// participant: the order in which it is served.
func (l *Ledger) Vetting() []Vetting {
	l.vets.mu.Lock()
	defer l.vets.mu.Unlock()
	out := make([]Vetting, len(l.vets.states))
	for i, v := range l.vets.states {
		out[i] = v.clone()
	}
	return out
}

// SetVetting changes what a participant has vetted on a synchronizer behind the
// back of all clients, whatever the rules. A serial of 0 makes it as if the
// participant had never vetted anything there.
func (l *Ledger) SetVetting(v Vetting) {
	l.vets.mu.Lock()
	defer l.vets.mu.Unlock()
	l.vets.set(v.clone())
}

func (v Vetting) clone() Vetting {
	v.Packages = slices.Clone(v.Packages)
	return v
}

// vettings holds what is vetted by all participants that one participant sees. It is
// no part of the history: no update tells of it, and it can't be read at an offset.
type vettings struct {
	participant string
	packages    *packageSet
	mu          sync.Mutex
	states      []Vetting // in order
}

func (v *vettings) find(synchronizer, participant string) (at int, ok bool) {
	return slices.BinarySearchFunc(v.states, [2]string{synchronizer, participant}, func(s Vetting, at [2]string) int {
		return compareVettings(s.Synchronizer, s.Participant, at[0], at[1])
	})
}

func (v *vettings) set(s Vetting) {
	at, ok := v.find(s.Synchronizer, s.Participant)
	switch {
	case ok && s.Serial == 0:
		v.states = slices.Delete(v.states, at, at+1)
	case ok:
		v.states[at] = s
	case s.Serial != 0:
		v.states = slices.Insert(v.states, at, s)
	}
}

// compareVettings compares by synchronizer and then by participant.
func compareVettings(synchronizer, participant, otherSynchronizer, otherParticipant string) int {
	return cmp.Or(compareIdentifiers(synchronizer, otherSynchronizer), compareIdentifiers(participant, otherParticipant))
}

// compareIdentifiers compares two unique identifiers, "name::namespace", by name and
// then by namespace.
func compareIdentifiers(a, b string) int {
	name, namespace, _ := strings.Cut(a, "::")
	otherName, otherNamespace, _ := strings.Cut(b, "::")
	return cmp.Or(strings.Compare(name, otherName), strings.Compare(namespace, otherNamespace))
}

// isIdentifier reports whether s is a unique identifier.
func isIdentifier(s string) bool {
	name, namespace, ok := strings.Cut(s, "::")
	return ok && consistsOf(name, "-_ ", 185) && consistsOf(namespace, "-_ ", 68)
}

// newVettings returns what is vetted at the beginning: all packages of the templates
// by this participant on both synchronizers, some of them with bounds, one that it
// does not have; and other things by another participant.
func newVettings(w *world) *vettings {
	v := &vettings{participant: w.participant, packages: knownPackages}
	at := func(year int, micros int) *time.Time {
		t := time.Date(year, 1, 1, 0, 0, 0, micros*1000, time.UTC)
		return &t
	}
	unbounded := func(names ...string) (list []Vetted) {
		for _, id := range packageIDs(names...) {
			list = append(list, Vetted{PackageID: id})
		}
		return list
	}
	base := []string{
		"daml-prim-1", "daml-stdlib-1", "time-types-1", "bank-api-1", "trade-api-1", "splice-api-token-holding-v1-1",
		"bank-2", "trade-1", "registry-1", "splice-amulet-1", "splice-amulet-2",
	}
	global, private := w.synchronizers[0], w.synchronizers[1]
	v.set(Vetting{Synchronizer: global, Participant: w.participant, Serial: 7,
		Packages: append(unbounded(append(base, "foreign-1")...),
			Vetted{PackageID: packageID("bank-1"), ValidUntil: at(2030, 0)},
			Vetted{PackageID: packageID("trade-2"), ValidFrom: at(2026, 1), ValidUntil: at(2031, 500_000)},
		)})
	v.set(Vetting{Synchronizer: private, Participant: w.participant, Serial: 2,
		Packages: append(unbounded(append(base, "bank-1")...),
			Vetted{PackageID: packageID("trade-2"), ValidFrom: at(2025, 0)},
		)})
	v.set(Vetting{Synchronizer: global, Participant: w.other, Serial: 4, Packages: unbounded(
		"daml-prim-1", "daml-stdlib-1", "bank-api-1", "bank-1", "bank-2", "foreign-1", "foreign-2")})
	v.set(Vetting{Synchronizer: private, Participant: w.other, Serial: 1, Packages: unbounded("daml-prim-1",
		"registry-1")})
	return v
}
