package ledger

import "sync"

// lexicon holds what comes again and again, so that it is in memory once for many pages. What it gives out is never changed.
type lexicon struct {
	// names are texts: parties, packages, synchronizers.
	names map[string]*string
	// identifiers are those of templates and interfaces whose form was checked.
	identifiers map[string]string
	// parties and interfaces are lists of names, and of identifiers, by their JSON.
	parties, interfaces map[string][]string
	// bytes is about how much memory they take.
	bytes int
	// What follows is room for the list of a page, and holds nothing between pages.
	updates []Update
	entries []ContractEntry
	records []Transaction
}

// lexicons are those that no page is being read with. The garbage collector empties it where none is.
var lexicons sync.Pool

// lexiconBytes is about how much memory a lexicon may take that is kept. A network has some thousand parties.
const lexiconBytes = 2 << 20

// entryBytes is about what an entry of a lexicon takes besides its text.
const entryBytes = 64

// mostRoom is how many elements the room for a list has that is kept: a few more than servers send, about 1 MB of updates.
const mostRoom = 2_500

func newLexicon() *lexicon {
	return &lexicon{names: make(map[string]*string), identifiers: make(map[string]string),
		parties: make(map[string][]string), interfaces: make(map[string][]string)}
}

// knownLexicon is one that served a page before, if there is any.
func knownLexicon() *lexicon {
	if l, ok := lexicons.Get().(*lexicon); ok {
		return l
	}
	return newLexicon()
}

// release keeps a lexicon for another page. Nothing may be read with it any more.
func (l *lexicon) release() {
	if l.bytes <= lexiconBytes {
		lexicons.Put(l)
	}
}

// name is the text as a string that is shared.
func (l *lexicon) name(text []byte) *string {
	if known, ok := l.names[string(text)]; ok {
		return known
	}
	name := string(text)
	l.names[name] = &name
	l.bytes += len(name) + entryBytes
	return &name
}

// take takes the room for a list out of a lexicon.
func take[T any](room *[]T) []T {
	list := *room
	*room = nil
	return list
}

// exact is a copy of a list which takes no more memory than its elements do. The room of the list is emptied and put back; where
// that is too large, it is the copy itself.
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
