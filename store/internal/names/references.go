package names

import (
	"hash/maphash"
	"slices"
	"sync"

	"ledgerindexer/ledger"
)

// References collects the names and lists that a batch needs numbers for, which of its templates show views of which
// interfaces, and what its contracts hold. It hands out where each number will be, so that rows are made before numbers
// are known: whoever resolves it sets them.
type References struct {
	Templates     Names[TemplateKey]
	Synchronizers Names[string]
	Views         []View
	Lists         []List // of parties, by their places
	Positions     map[PositionID]Position

	views   map[View]struct{}
	places  map[uint64]ListPlace                // by the hash of a list, or the next free number after it
	unions  map[[mostJoined]ListPlace]ListPlace // of viewers
	shown   map[shown]struct{}
	numbers []int32 // not handed out yet
}

// Place is the place of a name among those of its kind that were collected.
type Place int32

// Names are names of one kind, each once, in the order in which they were collected, and where their numbers are.
type Names[K comparable] struct {
	Keys    []K
	Numbers []*int32
	byKey   map[K]Place
	last    Place // mostly the same name comes again
}

// add collects a name.
func (p *Names[K]) add(name K, n *References) Place {
	if int(p.last) < len(p.Keys) && p.Keys[p.last] == name {
		return p.last
	}
	place, has := p.byKey[name]
	if !has {
		place = Place(len(p.Keys))
		p.Keys, p.Numbers, p.byKey[name] = append(p.Keys, name), append(p.Numbers, n.number()), place
	}
	p.last = place
	return place
}

// clear forgets the names, and keeps the room.
func (p *Names[K]) clear() {
	clear(p.Keys)
	clear(p.Numbers)
	clear(p.byKey)
	p.Keys, p.Numbers, p.last = p.Keys[:0], p.Numbers[:0], 0
}

// View is an interface of which a template shows views.
type View struct {
	Template    Place
	InterfaceID string
}

// Creation is where the numbers of a creation event are: of its template, and of its lists of parties, each nil where
// the list was not served.
type Creation struct {
	Template                          *int32
	Signatories, Observers, Witnesses *int32
	Stakeholders                      *int32 // the signatories and observers
	SeenBy                            *int32 // the witnesses and stakeholders, of one with interface views

	Holding *Holding     // what it holds; nil: nothing
	Viewers [2]ListPlace // who may see it
}

// referencesPool keeps the memory of written batches for later ones.
var referencesPool sync.Pool

// mostKeptLists is the most lists for which memory is kept. Batches have some thousand.
const mostKeptLists = 10_000

// NewReferences returns an empty References, with the memory of an earlier batch if there is one.
func NewReferences() *References {
	if n, ok := referencesPool.Get().(*References); ok {
		return n
	}
	return &References{
		Templates:     Names[TemplateKey]{byKey: map[TemplateKey]Place{}},
		Synchronizers: Names[string]{byKey: map[string]Place{}},
		views:         map[View]struct{}{}, places: map[uint64]ListPlace{},
		unions: map[[mostJoined]ListPlace]ListPlace{}, shown: map[shown]struct{}{}, Positions: map[PositionID]Position{},
	}
}

// Release keeps the memory for another batch, except for that of numbers. n may not be used any more.
func (n *References) Release() {
	if len(n.Lists) > mostKeptLists {
		return
	}
	n.Templates.clear()
	n.Synchronizers.clear()
	clear(n.Views)
	clear(n.Lists)
	n.Views, n.Lists = n.Views[:0], n.Lists[:0]
	clear(n.views)
	clear(n.places)
	clear(n.unions)
	clear(n.shown)
	clear(n.Positions)
	referencesPool.Put(n)
}

// numbersAtOnce is for how many numbers memory is allocated.
const numbersAtOnce = 256

// number returns where a number will be. Rows keep it for as long as they need.
func (n *References) number() *int32 {
	if len(n.numbers) == 0 {
		n.numbers = make([]int32, numbersAtOnce)
	}
	number := &n.numbers[0]
	n.numbers = n.numbers[1:]
	return number
}

// Created collects the names of a creation event, and what it holds, if anything.
func (n *References) Created(c *ledger.CreatedEvent, holding *Holding) Creation {
	template := n.template(c.TemplateID, c.PackageName, c.RepresentativePackageID)
	signatories, observers, witnesses := n.List(c.Signatories), n.List(c.Observers), n.List(c.WitnessParties)
	stakeholders, seenBy := n.Union(Viewers{}.With(signatories, observers)), NoList
	if len(c.InterfaceViews) > 0 {
		seenBy = n.Union(Viewers{}.With(witnesses, stakeholders))
	}
	for i := range c.InterfaceViews {
		view := View{template, c.InterfaceViews[i].InterfaceID}
		if _, has := n.views[view]; !has {
			n.Views, n.views[view] = append(n.Views, view), struct{}{}
		}
	}
	if holding != nil {
		n.shown[shown{holding.Position, stakeholders}] = struct{}{}
	}
	return Creation{
		Template: n.Templates.Numbers[template], Signatories: n.At(signatories), Observers: n.At(observers),
		Witnesses: n.At(witnesses), Stakeholders: n.At(stakeholders), SeenBy: n.At(seenBy), Holding: holding,
		Viewers: [2]ListPlace{witnesses, stakeholders},
	}
}

func (n *References) template(templateID, packageName string, representative *string) Place {
	return n.Templates.add(NewTemplateKey(templateID, packageName, representative), n)
}

// Template collects a template, and returns where its number will be.
func (n *References) Template(templateID, packageName string, representative *string) *int32 {
	return n.Templates.Numbers[n.template(templateID, packageName, representative)]
}

// Synchronizer collects a synchronizer, and returns where its number will be.
func (n *References) Synchronizer(id string) *int32 {
	return n.Synchronizers.Numbers[n.Synchronizers.add(id, n)]
}

// OptionalSynchronizer is like Synchronizer; it returns nil for nil.
func (n *References) OptionalSynchronizer(id *string) *int32 {
	if id == nil {
		return nil
	}
	return n.Synchronizer(*id)
}

// List is a list of parties that needs a number.
type List struct {
	Parties []string
	Number  *int32
	key     listKey
}

// ListPlace is the place of a list of parties among those that need a number.
type ListPlace int32

// NoList is the place of a list that was not served.
const NoList ListPlace = -1

// seed is of the hashes of this process.
var seed = maphash.MakeSeed()

// hashOf returns a hash of a list, in less time than its key takes.
func hashOf(parties []string) uint64 {
	hash := uint64(len(parties))
	for _, party := range parties {
		hash = (hash<<31 | hash>>33) ^ maphash.String(seed, party)
	}
	return hash
}

// List collects a list of parties, and returns its place; nil is none. The list is not changed after that.
func (n *References) List(parties []string) ListPlace {
	if parties == nil {
		return NoList
	}
	for hash := hashOf(parties); ; hash++ {
		place, has := n.places[hash]
		if !has {
			place = ListPlace(len(n.Lists))
			n.Lists = append(n.Lists, List{parties, n.number(), keyOf(parties)})
			n.places[hash] = place
			return place
		}
		if slices.Equal(n.Lists[place].Parties, parties) { // mostly texts in the same memory, which takes no time
			return place
		}
	}
}

// Parties collects a list of parties, and returns where its number will be; nil for nil.
func (n *References) Parties(parties []string) *int32 { return n.At(n.List(parties)) }

// At returns where the number of the list at a place will be; nil where that is NoList.
func (n *References) At(place ListPlace) *int32 {
	if place == NoList {
		return nil
	}
	return n.Lists[place].Number
}
