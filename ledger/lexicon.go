package ledger

import "sync"

// lexicon holds texts and lists that recur, so that they are in memory once for many pages. They are never changed.
type lexicon struct {
	// names are texts: parties, packages, synchronizers.
	names map[string]*string
	// identifiers are template and interface ids whose form was checked.
	identifiers map[string]string
	// parties and interfaces are lists of names, and of identifiers, by their JSON.
	parties, interfaces map[string][]string
	// bytes is the approximate memory of all these.
	bytes int
	// Buffers for the list of a page. They are empty between pages.
	updates []Update
	entries []ContractEntry
	records []Record
}

// lexicons holds the lexicons that are not in use. The garbage collector may drop them.
var lexicons sync.Pool

// lexiconBytes is the size above which a lexicon is dropped after use. A network has some thousand parties.
const lexiconBytes = 2 << 20

// entryBytes is the approximate memory of an entry without its text.
const entryBytes = 64

// mostKept is the largest capacity of a buffer that is kept, in elements: a few more than servers send, about 1 MB of
// updates.
const mostKept = 2_500

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

// takeBuffer takes a buffer out of a lexicon, for one page. returnBuffer puts it back.
func takeBuffer[T any](room *[]T) []T {
	list := *room
	*room = nil
	return list
}

// returnBuffer returns a copy of a list that was built in a buffer, and puts the cleared buffer back. A list above
// mostKept is returned itself, and its buffer is not kept.
func returnBuffer[T any](room *[]T, list []T) []T {
	if cap(list) > mostKept {
		return list
	}
	made := make([]T, len(list))
	copy(made, list)
	clear(list)
	*room = list[:0]
	return made
}
