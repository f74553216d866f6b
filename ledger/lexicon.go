package ledger

import "sync"

// lexicon holds values that recur, so that they are in memory once for many pages. They are never changed.
type lexicon struct {
	// names are texts: parties, packages, synchronizers.
	names map[string]*string
	// identifiers are template and interface ids whose form was checked.
	identifiers map[string]string
	// parties and interfaces are lists of names, and of identifiers, by their JSON.
	parties, interfaces map[string][]string
	// bytes is about the memory that they take.
	bytes int
	// The following are buffers for the list of a page, empty between pages.
	updates []Update
	entries []ContractEntry
	records []Transaction
}

// lexicons is a pool of those that are not in use. The garbage collector may empty it.
var lexicons sync.Pool

// lexiconBytes is about the most memory of a lexicon that is kept. A network has some thousand parties.
const lexiconBytes = 2 << 20

// entryBytes is about the memory of an entry without its text.
const entryBytes = 64

// mostRoom is the most elements of a buffer that is kept: a few more than servers send, about 1 MB of updates.
const mostRoom = 2_500

func newLexicon() *lexicon {
	return &lexicon{names: make(map[string]*string), identifiers: make(map[string]string),
		parties: make(map[string][]string), interfaces: make(map[string][]string)}
}

// knownLexicon returns a lexicon from the pool, or a new one.
func knownLexicon() *lexicon {
	if l, ok := lexicons.Get().(*lexicon); ok {
		return l
	}
	return newLexicon()
}

// release returns a lexicon to the pool. It must not be used any more.
func (l *lexicon) release() {
	if l.bytes <= lexiconBytes {
		lexicons.Put(l)
	}
}

// name returns the text as a shared string.
func (l *lexicon) name(text []byte) *string {
	if known, ok := l.names[string(text)]; ok {
		return known
	}
	name := string(text)
	l.names[name] = &name
	l.bytes += len(name) + entryBytes
	return &name
}

// take takes a buffer out of a lexicon.
func take[T any](room *[]T) []T {
	list := *room
	*room = nil
	return list
}

// exact returns a copy of a list with no spare capacity, and puts the list's buffer back, cleared. A buffer above mostRoom is
// returned itself, without a copy.
func exact[T any](room *[]T, list []T) []T {
	if cap(list) > mostRoom {
		return list
	}
	made := make([]T, len(list))
	copy(made, list)
	clear(list)
	*room = list[:0]
	return made
}
