package sandbox

import "slices"

// A grant is what a filter shows one party of the events of one kind.
type grant struct {
	match     bool  // events of the kind are served
	arguments bool  // with createArgument and contract key
	blob      bool  // with createdEventBlob
	views     uint8 // with these interfaces' views, a bit each
}

func (g grant) merge(o grant) grant {
	return grant{g.match || o.match, g.arguments || o.arguments, g.blob || o.blob, g.views | o.views}
}

type grants [kindCount]grant

// eventFilter is an EventFormat made ready for matching.
type eventFilter struct {
	any     *grants // filtersForAnyParty
	parties map[uint16]*grants
}

// maxWitnesses is the most parties that can see one event: stakeholders, actor and
// the witnesses above.
const maxWitnesses = 8

// partySet is a small set of parties in the order they were added.
type partySet struct {
	n   int
	set [maxWitnesses]uint16
}

func (s *partySet) add(parties ...uint16) {
next:
	for _, p := range parties {
		for _, q := range s.set[:s.n] {
			if p == q {
				continue next
			}
		}
		s.set[s.n] = p
		s.n++
	}
}

func (s *partySet) list() []uint16 { return s.set[:s.n] }

// see returns what the filter gives of an event of kind k that the parties in w
// witness, and which of them it shows.
func (f *eventFilter) see(k kind, w *partySet) (g grant, shown partySet) {
	if f.any != nil {
		g = f.any[k]
		shown = *w
	}
	for _, p := range w.list() {
		if of, ok := f.parties[p]; ok {
			g = g.merge(of[k])
			if f.any == nil {
				shown.add(p)
			}
		}
	}
	return g, shown
}

// updateFilter is an UpdateFormat made ready for matching. A nil part is not served.
type updateFilter struct {
	transactions  *eventFilter
	effects       bool // LEDGER_EFFECTS
	reassignments *eventFilter
	topology      bool
	parties       map[string]bool // of topology events; empty: all
	trees         bool            // transactions are served as trees
}

// sight is an event as a filter shows it.
type sight struct {
	grant
	shown partySet
	acs   bool
	// lookup is of a contract by its id: what would be in the stream's event only is
	// not there.
	lookup bool
}

// sightOf returns what a transaction filter shows of an event.
func (v *view) sightOf(f *updateFilter, e *event) (s sight) {
	c := &v.contracts[e.contract]
	var holders partySet
	holders.add(c.stakeholders()...)
	if e.acs {
		s.grant, s.shown = f.transactions.see(c.kind, &holders)
		s.acs = s.match
	}
	if !f.effects {
		return s
	}
	informed := v.informees(c, e)
	if f.transactions.any != nil && !slices.ContainsFunc(informed.list(),
		func(p uint16) bool { return int(p) < v.hosted }) {
		return s // nobody here is informed
	}
	s.grant, s.shown = f.transactions.see(c.kind, &informed)
	return s
}

// informees returns the parties that see an event in the LEDGER_EFFECTS shape.
func (v *view) informees(c *contract, e *event) (w partySet) {
	switch {
	case e.choice < 0 || c.kind.template().choices[e.choice].consuming:
		w.add(c.stakeholders()...)
	default:
		w.add(c.parties[:c.signatories]...)
	}
	if e.choice >= 0 {
		w.add(e.actor)
	}
	w.add(e.extra[:e.extras]...)
	return w
}

// holdersSight says what a filter shows of a contract to its stakeholders, as
// snapshots and reassignments do.
func (v *view) holdersSight(f *eventFilter, c *contract) (s sight) {
	var holders partySet
	holders.add(c.stakeholders()...)
	s.grant, s.shown = f.see(c.kind, &holders)
	s.acs = s.match
	return s
}

// showsTopology reports whether the filter shows a topology event.
func (f *updateFilter) showsTopology(party string) bool {
	return len(f.parties) == 0 || f.parties[party]
}
