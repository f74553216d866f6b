package names

import (
	"slices"

	"ledgerindexer/ledger"
)

// Who may see a row is one list of parties, made of those that were served. It is one of these where one has all parties, as mostly one has.

// union is the list of the parties of some lists; nil where there is none.
func union(lists ...[]string) []string {
	var longest []string
	for _, list := range lists {
		if longest == nil || len(list) > len(longest) {
			longest = list
		}
	}
	at := addressOf(longest)
	whole := !slices.ContainsFunc(lists, func(list []string) bool {
		return addressOf(list) != at && slices.ContainsFunc(list, func(party string) bool { return !slices.Contains(longest, party) })
	})
	if whole {
		return longest
	}
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// stakesOf is where a creation event's signatories and observers are in memory.
func stakesOf(c *ledger.CreatedEvent) [2]listAddress {
	return [2]listAddress{addressOf(c.Signatories), addressOf(c.Observers)}
}

// stakeholders collects the signatories and observers of a creation event as one list.
func (n Wanted) stakeholders(c *ledger.CreatedEvent) {
	key := stakesOf(c)
	list, known := n.stakes[key]
	if !known {
		list = union(c.Signatories, c.Observers)
		n.stakes[key] = list
	}
	n.Parties(list)
}

// Stakeholders is the number of the list of a creation event's signatories and observers; nil where neither was served.
func (r Numbers) Stakeholders(c *ledger.CreatedEvent) *int32 {
	return r.Parties(r.Wanted.stakes[stakesOf(c)])
}

// seenCreation collects the parties that may see a creation event, whose stakeholders were collected.
func (n Wanted) seenCreation(c *ledger.CreatedEvent) {
	list := union(c.WitnessParties, n.stakes[stakesOf(c)])
	n.seenCreations[c] = list
	n.Parties(list)
}

// SeenCreation is the number of the list of the parties that may see a creation event with interface views; nil where there are none.
func (r Numbers) SeenCreation(c *ledger.CreatedEvent) *int32 {
	return r.Parties(r.Wanted.seenCreations[c])
}

// SeenBy collects the parties that may see an update: one of its events, whose names were collected.
func (n Wanted) SeenBy(u *ledger.Update) {
	lists := make([][]string, 0, 2*len(u.Created)+len(u.Archived)+len(u.Exercised)+len(u.Unassigned))
	add := func(list []string) {
		if list != nil && (len(lists) == 0 || addressOf(lists[len(lists)-1]) != addressOf(list)) {
			lists = append(lists, list)
		}
	}
	for i := range u.Created {
		c := &u.Created[i]
		add(c.WitnessParties)
		add(n.stakes[stakesOf(c)])
	}
	for i := range u.Archived {
		add(u.Archived[i].WitnessParties)
	}
	for i := range u.Exercised {
		add(u.Exercised[i].WitnessParties)
	}
	for i := range u.Unassigned {
		add(u.Unassigned[i].WitnessParties)
	}
	for i := range u.Topology {
		if party := u.Topology[i].PartyID; party != nil {
			add([]string{*party})
		}
	}
	n.seenBy[u] = union(lists...)
	n.Parties(n.seenBy[u])
}

// SeenBy is the number of the list of the parties that may see an update; nil where there are none.
func (r Numbers) SeenBy(u *ledger.Update) *int32 { return r.Parties(r.Wanted.seenBy[u]) }
