package sandbox

// fork is where a ledger left the history of its seed.
type fork struct {
	seed   uint64
	update int // the first one after the fork
}

// Diverge makes the ledger grow by another seed from here on, like that of a participant that was restored from a backup
// taken here. Later updates have other ids; offsets and contract ids may be those of the first history. Call it before the
// ledger is served.
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
