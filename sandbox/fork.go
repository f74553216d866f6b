package sandbox

import "slices"

// fork is where a ledger left the history of its seed.
type fork struct {
	seed   uint64
	update int // the first one after the fork
}

// Diverge makes the ledger grow by another seed from here on, like that of a participant that was restored from a
// backup taken here. Later updates have other ids; offsets and contract ids may be those of the first history. Call it
// before the ledger is served.
func (l *Ledger) Diverge(seed uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.gen.updates)
	l.forks = append(l.forks, fork{seed, n})
	l.gen.rng = derive(seed, domainGenerator, uint64(n))
}

// seedOf returns the seed of an update's id.
func (w *world) seedOf(update int) uint64 {
	seed := w.seed
	for _, f := range w.forks {
		if update >= f.update {
			seed = f.seed
		}
	}
	return seed
}

// Redeal deals the offsets from update first on, counted from 0, anew, by a seed: as of a participant that was restored
// from a backup taken before that update, and has received the later ones again. Each is higher than it was. Ids, times
// and content stay. Every other topology update is lost, but the last update: no other follows from one. The ledger may
// be served meanwhile, and its Scan services show what they did.
func (l *Ledger) Redeal(first int, seed uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rng := derive(seed, domainGenerator, uint64(first))
	updates := slices.Clone(l.gen.updates) // readers have the list as it was
	higher := int64(1 + rng.intn(3))
	for i := first; i < len(updates); i++ {
		u := &updates[i]
		u.offset += higher
		if u.kind == kindTopology && i/topologyEvery%2 == 0 && i < len(updates)-1 {
			u.kind = kindLost
		}
		if rng.chance(25) {
			higher += int64(1 + rng.intn(3))
		}
	}
	l.gen.updates, l.gen.ledgerEnd = updates, l.gen.ledgerEnd+higher
}
