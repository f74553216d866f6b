package store

import (
	"hash/maphash"
	"sync"

	"ledgerindexer/ledger"
)

const (
	// What is kept of event ids: 8 MiB, which tell of all but 3 % of new ids that they are new where 8 million are stored, of all but a
	// sixth with 16 million, and of half with 32.
	idWords = 1 << 20

	// Who asks for fewer ids at once has caught up: what is known takes up memory for little.
	leastAskedIDs = 100
)

// knownIDs tells of most event ids that no stored record has them, without asking the database: a Bloom filter of those of all
// records, as long as all were stored by this leader. That is so from where the history is empty to where its position is another
// one than this leader's writes led to. It is safe for concurrent use.
type knownIDs struct {
	mu       sync.Mutex
	seed     maphash.Seed
	words    []uint64 // each id has up to four bits in one of them; nil: nothing is known
	revision int64    // of the last position that is known to be this leader's
}

func newKnownIDs() *knownIDs { return &knownIDs{seed: maphash.MakeSeed()} }

// at takes note of a position that was read.
func (k *knownIDs) at(position ledger.HistoryPosition) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.words != nil && position.Revision == k.revision: // what was added and is not stored does no harm
	case position.LastSeq == 0:
		k.words, k.revision = make([]uint64, idWords), position.Revision
	default:
		k.words = nil
	}
}

// stored takes note of a position that records which were added led to.
func (k *knownIDs) stored(position ledger.HistoryPosition) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.revision = max(k.revision, position.Revision) // writers tell it in any order
}

// forget forgets everything, until the history is empty.
func (k *knownIDs) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.words = nil
}

// add adds the event ids of records, before anything of them is written.
func (k *knownIDs) add(records []ledger.Transaction) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.words == nil {
		return
	}
	for i := range records {
		word, bits := k.place(records[i].EventID)
		k.words[word] |= bits
	}
}

// maybe are those of some event ids that can stand on a stored record: all, where nothing is known.
func (k *knownIDs) maybe(ids []string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.words == nil {
		return ids
	}
	var some []string
	for _, id := range ids {
		if word, bits := k.place(id); k.words[word]&bits == bits {
			some = append(some, id)
		}
	}
	return some
}

// place is where an id's bits are: the upper half of its hash tells the word, the lower one the bits in it.
func (k *knownIDs) place(id string) (word, bits uint64) {
	hash := maphash.String(k.seed, id)
	return (hash >> 32) % idWords, 1<<(hash&63) | 1<<(hash>>6&63) | 1<<(hash>>12&63) | 1<<(hash>>18&63)
}
