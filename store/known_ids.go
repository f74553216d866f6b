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

	// After so many questions in a row for fewer ids each, the history is caught up with, and the memory is worth more.
	mostSmallQuestions = 10
	smallQuestion      = 100
)

// knownIDs is a Bloom filter of the event ids on stored records: an id that it does not have is on none. It is kept as long as
// this leader has stored all records. So it begins with a history that has not begun, and ends with a position that is not the one
// that this leader's last known write led to. What is written from an outdated position is refused, whatever the filter told. It is safe
// for concurrent use.
type knownIDs struct {
	mu       sync.Mutex
	seed     maphash.Seed
	words    []uint64 // each id has up to four bits in one of them; nil: nothing is known
	number   int      // of the filter, from 1 on: each that is begun has another one
	revision int64    // of the last position that is known to be this leader's
	small    int      // so many small questions came in a row
}

func newKnownIDs() *knownIDs { return &knownIDs{seed: maphash.MakeSeed()} }

// readAt takes note of a position that was read.
func (k *knownIDs) readAt(position ledger.HistoryPosition) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.words != nil && position.Revision == k.revision: // ids that were added and are not stored only cost a look-up
	case position.Revision == 0 && position.LastSeq == 0:
		k.words, k.revision = make([]uint64, idWords), 0
		k.number++
	default:
		k.words = nil
	}
}

// add adds the event ids of records, before anything of them is written. It tells the number of the filter that has them; 0: none has.
func (k *knownIDs) add(records []ledger.Transaction) (filter int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.words == nil {
		return 0
	}
	for i := range records {
		word, bits := k.place(records[i].EventID)
		k.words[word] |= bits
	}
	return k.number
}

// wrote takes note of a position that records led to whose ids were added to a filter. Where that is not this one, it lacks them.
func (k *knownIDs) wrote(position ledger.HistoryPosition, filter int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if filter != k.number {
		k.words = nil
	}
	k.revision = max(k.revision, position.Revision) // writers tell it in any order
}

// maybe are those of some event ids that can stand on a stored record: all, where nothing is known.
func (k *knownIDs) maybe(ids []string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.small++
	if len(ids) >= smallQuestion {
		k.small = 0
	}
	if k.small > mostSmallQuestions {
		k.words = nil
	}
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
