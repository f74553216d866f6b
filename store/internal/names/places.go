package names

import "unsafe"

// Place is the place of a name among those of its kind that were collected.
type Place int32

// Places are names of one kind, each once, in the order in which they were collected.
type Places[K comparable] struct {
	Keys  []K
	byKey map[K]Place
	// at guesses the place of a name by the address of its text: names are long, and package ledger has those that recur
	// in memory once (its lexicon). The guess is compared with the name, which takes no time where it is the same memory.
	at map[*byte]Place
}

func newPlaces[K comparable]() Places[K] {
	return Places[K]{byKey: map[K]Place{}, at: map[*byte]Place{}}
}

// add collects a name, of which this is the text.
func (p *Places[K]) add(text string, name K) Place {
	address := unsafe.StringData(text)
	if place, guessed := p.at[address]; guessed && p.Keys[place] == name {
		return place
	}
	place, has := p.byKey[name]
	if !has {
		place = Place(len(p.Keys))
		p.Keys, p.byKey[name] = append(p.Keys, name), place
	}
	p.at[address] = place
	return place
}

// find returns the place of a name, if it was collected.
func (p *Places[K]) find(text string, name K) (place Place, has bool) {
	if place, guessed := p.at[unsafe.StringData(text)]; guessed && p.Keys[place] == name {
		return place, true
	}
	place, has = p.byKey[name]
	return place, has
}

// clear forgets the names, and keeps the room.
func (p *Places[K]) clear() {
	clear(p.Keys)
	p.Keys = p.Keys[:0]
	clear(p.byKey)
	clear(p.at)
}
