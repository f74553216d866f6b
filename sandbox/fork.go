package sandbox

// fork is where a ledger left the way that its seed decides.
type fork struct {
	seed   uint64
	update int // the first one after it
}

// Diverge makes the ledger grow from here on as another seed decides: as that of a participant which was restored from a
// backup taken here, and has gone on with another history. Updates that come then have ids of their own; offsets, and ids of
// contracts, may be those of the other history. To be called before the ledger is served.
func (l *Ledger) Diverge(seed uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.gen.updates)
	l.forks = append(l.forks, fork{seed, n})
	l.gen.rng = derive(seed, domainGenerator, uint64(n))
}

// seedOf is the seed that names an update.
func (w *world) seedOf(update int) uint64 {
	seed := w.seed
	for _, f := range w.forks {
		if update >= f.update {
			seed = f.seed
		}
	}
	return seed
}
