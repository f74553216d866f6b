package sandbox

// Of each kind of event a file event_*.go has how it is served and which rows it must leave. Here is what calls them.

// relations are those that the truth has rows of.
var relations = []string{
	"updates", "created_events", "archived_events", "exercised_events", "interface_views", "reassignments",
	"topology_events", "active_contracts",
}

// appendEvents appends the events of a transaction that a filter shows.
func (v *view) appendEvents(dst []byte, i int, u *update, f *updateFilter, feat *features) []byte {
	events, none := v.events[u.first:u.first+u.count], len(dst)
	for j := range events {
		s := v.sightOf(f, &events[j])
		if !s.match {
			continue
		}
		if len(dst) > none {
			dst = append(dst, ',')
		}
		dst = v.appendEvent(dst, u, i, &events[j], &s, f, feat)
	}
	return dst
}

func (v *view) appendEvent(dst []byte, u *update, index int, e *event, s *sight, f *updateFilter,
	feat *features) []byte {
	switch {
	case e.choice < 0:
		dst = append(dst, `{"CreatedEvent":`...)
		dst = v.appendCreated(dst, e.contract, u.offset, e.node, s, feat)
	case f.effects:
		dst = append(dst, `{"ExercisedEvent":`...)
		dst = v.appendExercised(dst, u, index, e, s)
	default:
		dst = append(dst, `{"ArchivedEvent":`...)
		dst = v.appendArchived(dst, u, e, s)
	}
	return append(dst, '}')
}

func (t *truth) transaction(i int, u *update) {
	shown := false
	for j := range t.events[u.first : u.first+u.count] {
		e := &t.events[int(u.first)+j]
		s := t.sightOf(t.filter, e)
		if !s.match {
			continue
		}
		shown = true
		on := t.on(i, u)
		switch {
		case e.choice < 0:
			row := t.created(on, e.contract, u.offset, e.node, &s, "transaction")
			if s.acs {
				t.active[stay{e.contract, u.synchronizer}] = t.activeRow(e.contract, row, u.synchronizer, 0)
			}
			continue
		case t.filter.effects:
			t.exercised(on, i, u, e, &s)
		}
		if consuming := e.served.template().choices[e.choice].consuming; consuming {
			t.archived(on, u, e, &s)
			delete(t.active, stay{e.contract, u.synchronizer})
		}
	}
	if shown {
		t.update(i, u, "transaction")
	}
}
