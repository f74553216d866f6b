package names

import (
	"slices"

	"ledgerindexer/ledger"
)

// Who may see a row is one list of parties, made of those that were served. It is one of these where one has all parties, as mostly one has.

// Audience are lists of the parties that may see something, each once.
type Audience []ListPlace

// With is the audience with other lists; Nobody is none.
func (a Audience) With(lists ...ListPlace) Audience {
	for _, list := range lists {
		if list != Nobody && !slices.Contains(a, list) {
			a = append(a, list)
		}
	}
	return a
}

// mostRemembered is how many lists an audience may have whose union is remembered. Mostly the same few come together more than once.
const mostRemembered = 4

// Union collects the parties of an audience as one list.
func (n *Wanted) Union(of Audience) ListPlace {
	switch {
	case len(of) == 0:
		return Nobody
	case len(of) == 1:
		return of[0]
	case len(of) > mostRemembered:
		return n.joined(of)
	}
	var key [mostRemembered]ListPlace
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

func (n *Wanted) joined(of Audience) ListPlace {
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
	return n.Parties(slices.Compact(all))
}

// SeenBy collects who may see an update: one of its events.
func (n *Wanted) SeenBy(u *ledger.Update, parties ListPlace) { n.seenBy[u] = parties }

// SeenBy is the number of the list of the parties that may see an update that was collected; nil where there are none.
func (r Numbers) SeenBy(u *ledger.Update) *int32 {
	place, has := r.Wanted.seenBy[u]
	if !has {
		return nil
	}
	return r.at(place)
}
