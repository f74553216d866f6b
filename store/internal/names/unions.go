package names

import "slices"

// The parties that may see an event are stored as one list, the union of the lists that were served. Mostly one of
// these has all the parties, and is used itself.

// Viewers are lists of the parties that may see something, each once.
type Viewers []ListPlace

// With returns the viewers with other lists; NoList adds none.
func (a Viewers) With(lists ...ListPlace) Viewers {
	for _, list := range lists {
		if list != NoList && !slices.Contains(a, list) {
			a = append(a, list)
		}
	}
	return a
}

// mostJoined is the most lists whose union is remembered: mostly the same few lists recur together.
const mostJoined = 4

// Union collects the parties of the viewers as one list.
func (n *References) Union(of Viewers) ListPlace {
	switch {
	case len(of) == 0:
		return NoList
	case len(of) == 1 || len(of) == 2 && len(n.Lists[of[1]].Parties) == 0: // mostly there are no observers
		return of[0]
	case len(of) > mostJoined:
		return n.joined(of)
	}
	var key [mostJoined]ListPlace
	for i, list := range of {
		key[i] = list + 1
	}
	place, known := n.unions[key]
	if !known {
		place = n.joined(of)
		n.unions[key] = place
	}
	return place
}

func (n *References) joined(of Viewers) ListPlace {
	longest := of[0]
	for _, list := range of[1:] {
		if len(n.Lists[list].Parties) > len(n.Lists[longest].Parties) {
			longest = list
		}
	}
	whole := n.Lists[longest].Parties
	all := slices.Clip(whole)
	for _, list := range of {
		for _, party := range n.Lists[list].Parties {
			if list != longest && !slices.Contains(all, party) {
				all = append(all, party)
			}
		}
	}
	if len(all) == len(whole) {
		return longest
	}
	slices.Sort(all)
	return n.List(slices.Compact(all))
}

// SeenBy collects who may see an update: everybody who sees one of its events. As a rule these are different parties in
// nearly every update, but one to three lists of its events have them all: only what is left of more lists is a new
// one. It returns where the numbers of the lists will be, the first ones not nil.
func (n *References) SeenBy(events Viewers) (first, second, others *int32) {
	seen := [3]ListPlace{NoList, NoList, NoList}
	events = n.withoutSubsets(events)
	copy(seen[:], events)
	if len(events) > len(seen) {
		seen[2] = n.Union(events[2:])
	}
	return n.At(seen[0]), n.At(seen[1]), n.At(seen[2])
}

// withoutSubsets leaves out each list of which another one has all parties.
func (n *References) withoutSubsets(of Viewers) Viewers {
	for i := 0; i < len(of); i++ {
		for j := 0; j < len(of); j++ {
			if i != j && n.covers(of[i], of[j]) {
				of = slices.Delete(of, j, j+1)
				if j < i {
					i--
				}
				j--
			}
		}
	}
	return of
}

// covers reports whether a list has all parties of another one.
func (n *References) covers(list, other ListPlace) bool {
	parties := n.Lists[list].Parties
	for _, party := range n.Lists[other].Parties {
		if !slices.Contains(parties, party) {
			return false
		}
	}
	return true
}
