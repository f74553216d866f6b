package sandbox

import "slices"

// History is what a server serves: a [Ledger] or a [Replay].
type History interface {
	// ParticipantID is the id of the participant whose history it is.
	ParticipantID() string
	// names returns the names that requests are resolved against.
	names() names
	// open returns the current state of the history.
	open() reading
	// vettings returns what is vetted now.
	vettings() *vettings
}

// reading is a history at one moment. Updates are counted from 0.
type reading interface {
	end() int64
	prunedTo() int64
	// more is closed when the history has something that this reading does not.
	more() <-chan struct{}
	count() int
	// after is the number of updates at or below an offset.
	after(offset int64) int
	offsetOf(i int) int64
	appendUpdate(dst []byte, i int, f *updateFilter, feat *features) ([]byte, bool)
	updateNamed(id string) (int, bool)
	// recordTimes are the latest record times by synchronizer after n updates, in
	// microseconds; 0 where there is none.
	recordTimes(n int) []int64
	inFlight(at int64) bool
	// snapshot yields the entries active at an offset that come after the pointer.
	snapshot(at int64, from pointer, f *eventFilter, feat *features, yield func(entry) bool)
	// appendContract appends the CreatedEvent of a contract with a stakeholder in
	// parties (any contract, if there are none).
	appendContract(dst []byte, id string, parties []string, feat *features) ([]byte, bool)
}

// entry is one element of a snapshot. Raw is valid during the yield only.
type entry struct {
	at       pointer
	offset   int64
	workflow string
	raw      []byte // the contractEntry
	whole    []byte // the element itself, where it was prepared
}

func (l *Ledger) names() names {
	return names{
		participant: l.participant, synchronizers: l.synchronizers[:], aliases: l.aliases[:], numbers: l.numbers,
		hosted: l.hosted,
	}
}

func (l *Ledger) open() reading {
	v := l.view()
	v.reading = l.readings.Add(1)
	return v
}

func (l *Ledger) vettings() *vettings { return l.vets }

func (v *view) end() int64            { return v.ledgerEnd }
func (v *view) prunedTo() int64       { return v.pruned }
func (v *view) more() <-chan struct{} { return v.grown }
func (v *view) count() int            { return len(v.updates) }
func (v *view) offsetOf(i int) int64  { return v.updates[i].offset }

func (v *view) updateNamed(id string) (int, bool) {
	i, ok := v.findUpdate(id)
	return i, ok && i < len(v.updates)
}

func (v *view) recordTimes(n int) []int64 {
	times := make([]int64, len(v.synchronizers))
	missing := len(times)
	for i := n - 1; i >= 0 && missing > 0; i-- {
		if u := &v.updates[i]; times[u.synchronizer] == 0 {
			times[u.synchronizer] = u.record
			missing--
		}
	}
	return times
}

func (v *view) snapshot(at int64, from pointer, f *eventFilter, feat *features, yield func(entry) bool) {
	n := v.after(at)
	var buf []byte
	if !from.incomplete {
		for i := from.number; i < int64(len(v.activations)); i++ {
			a := &v.activations[i]
			if int(a.update) >= n {
				break
			}
			s := v.holdersSight(f, &v.contracts[a.contract])
			if !v.active(a, n) || !s.match {
				continue
			}
			buf = append(buf[:0], `{"JsActiveContract":{"createdEvent":`...)
			buf = v.appendActivated(buf, a, &s, feat)
			buf = append(buf, `,"synchronizerId":"`...)
			buf = append(buf, v.synchronizers[a.synchronizer]...)
			buf = append(buf, `","reassignmentCounter":`...)
			buf = appendInt(buf, int64(a.counter))
			buf = append(buf, `}}`...)
			e := entry{at: pointer{number: i + 1}, offset: v.updates[a.update].offset,
				workflow: v.extrasOf(int(a.update)).workflow, raw: buf}
			if !yield(e) {
				return
			}
		}
		from.number = 0
	}
	for i := from.number; i < int64(len(v.reassignments)); i++ {
		r := &v.reassignments[i]
		unassigned, assigned := r.halves(n)
		s := v.holdersSight(f, &v.contracts[r.contract])
		if unassigned == assigned || !s.match {
			continue
		}
		var e entry
		if e, buf = v.incomplete(buf[:0], int32(i), unassigned, &s, feat); !yield(e) {
			return
		}
	}
}

// appendActivated appends the CreatedEvent of an activation.
func (v *view) appendActivated(dst []byte, a *activation, s *sight, feat *features) []byte {
	return v.appendCreated(dst, a.contract, v.updates[a.update].offset, a.node, s, feat)
}

func (v *view) incomplete(buf []byte, number int32, unassigned bool, s *sight, feat *features) (entry, []byte) {
	r := &v.reassignments[number]
	half := r.assigned
	if unassigned {
		half = r.unassigned
		buf = append(buf, `{"JsIncompleteUnassigned":{"createdEvent":`...)
		buf = v.appendActivated(buf, &v.activations[r.from], s, feat)
		buf = append(buf, `,"unassignedEvent":`...)
		buf = v.appendUnassigned(buf, number, s)
	} else {
		a := &v.activations[r.to]
		buf = append(buf, `{"JsIncompleteAssigned":{"assignedEvent":`...)
		buf = v.appendAssigned(buf, number, v.updates[a.update].offset, a.node, s, feat)
	}
	buf = append(buf, `}}`...)
	offset := v.updates[half].offset
	return entry{
		at:     pointer{number: int64(number) + 1, incomplete: true, offset: offset},
		offset: offset, workflow: v.extrasOf(int(half)).workflow, raw: buf,
	}, buf
}

// lookupOffset is the creation offset that real participants return for every
// looked-up contract. It is meaningless.
const lookupOffset = 1

// appendContract leaves out what a lookup does not return: views and acsDelta, and the
// real offset and node id. Witnesses are the querying parties that are stakeholders.
func (v *view) appendContract(dst []byte, id string, parties []string, feat *features) ([]byte, bool) {
	number, ok := v.findContract(id)
	if !ok || int(number) >= len(v.contracts) || v.forgotten(number) {
		return dst, false
	}
	s := sight{grant: grant{match: true, arguments: true, blob: true}, lookup: true}
	for _, holder := range v.contracts[number].stakeholders() {
		if len(parties) == 0 || slices.Contains(parties, v.parties[holder]) {
			s.shown.add(holder)
		}
	}
	if s.shown.n == 0 {
		return dst, false
	}
	offset := int64(lookupOffset)
	if feat.bareLookups {
		offset, s.blob = 0, false
		if len(parties) == 0 {
			s.shown = partySet{}
		}
	}
	return v.appendCreated(dst, number, offset, 0, &s, feat), true
}

// forgotten reports whether pruning removed a contract: it was archived at or below
// the pruned offset, or only divulged.
func (v *view) forgotten(number int32) bool {
	n := v.after(v.pruned)
	created, divulged := int(v.contracts[number].created), v.contracts[number].flags&flagDivulged != 0
	for i := created; i < n; i++ {
		if divulged {
			return true
		}
		u := &v.updates[i]
		if u.kind != kindTransaction {
			continue
		}
		for _, e := range v.events[u.first : u.first+u.count] {
			if e.contract == number && e.choice >= 0 && e.served.template().choices[e.choice].consuming {
				return true
			}
		}
	}
	return false
}
