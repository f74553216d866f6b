package ledger

import "errors"

// reassignmentEvents converts the events of a reassignment.
func (r *reader) reassignmentEvents(update *Update, events []wireReassignmentEvent) error {
	nodes := make([]int32, 0, len(events))
	for i := range events {
		w := &events[i]
		unknown, err := variant(w.Unknown, w.Assigned != nil, w.Unassigned != nil)
		if err != nil {
			return below(index("events", i), err)
		}
		switch {
		case w.Assigned != nil:
			assigned, created, err := r.assigned(w.Assigned, OriginAssignment, update.Offset)
			if err != nil {
				return below(index("events", i)+".JsAssignmentEvent", err)
			}
			nodes = append(nodes, assigned.NodeID)
			update.Assigned = append(update.Assigned, assigned)
			update.Created = append(update.Created, created)
		case w.Unassigned != nil:
			name := index("events", i) + ".JsUnassignedEvent"
			if w.Unassigned.Value == nil {
				return below(name, below("value", errMissing))
			}
			unassigned, err := r.unassigned(w.Unassigned.Value, update.Offset)
			if err != nil {
				return below(name+".value", err)
			}
			unassigned.Extra = withEnvelope(unassigned.Extra, nil, "", "JsUnassignedEvent", w.Unassigned.Unknown)
			nodes = append(nodes, unassigned.NodeID)
			update.Unassigned = append(update.Unassigned, unassigned)
		default:
			event, err := unknownEvent(unknown, w.Unknown)
			if err != nil {
				return below(index("events", i), err)
			}
			update.Unknown = append(update.Unknown, event)
		}
	}
	return below("events", checkDistinct(nodes))
}

// assigned converts an assignment and the creation inside it, from whose node id and contract it takes its own.
func (r *reader) assigned(w *wireAssigned, origin Origin, update Offset) (AssignedEvent, CreatedEvent, error) {
	if w.CreatedEvent == nil {
		return AssignedEvent{}, CreatedEvent{}, below("createdEvent", errMissing)
	}
	created, err := r.created(w.CreatedEvent, origin, update)
	if err != nil {
		return AssignedEvent{}, CreatedEvent{}, below("createdEvent", err)
	}
	o := object{reader: r}
	event := AssignedEvent{
		NodeID:              created.NodeID,
		ContractID:          created.ContractID,
		TemplateID:          created.TemplateID,
		PackageName:         created.PackageName,
		Source:              o.shared("source", w.Source),
		Target:              o.shared("target", w.Target),
		ReassignmentID:      o.reassignmentID(w.ReassignmentID, w.UnassignID),
		Submitter:           o.optionalText("submitter", w.Submitter),
		ReassignmentCounter: o.int64("reassignmentCounter", w.ReassignmentCounter),
		Extra:               o.unknown(w.Unknown),
	}
	return event, created, o.err
}

// unassigned converts an unassignment. In an update its offset is that of the update; a snapshot's entries bring
// their own, and update is zero.
func (r *reader) unassigned(w *wireUnassigned, update Offset) (UnassignedEvent, error) {
	o := object{reader: r}
	o.required("offset", w.Offset)
	if update == 0 {
		update = o.updateOffset("offset", w.Offset)
	} else {
		o.sameOffset("offset", w.Offset, update)
	}
	event := UnassignedEvent{
		Offset:                update,
		NodeID:                o.nodeID("nodeId", w.NodeID),
		ContractID:            o.unique("contractId", w.ContractID),
		TemplateID:            o.identifier("templateId", w.TemplateID),
		PackageName:           o.shared("packageName", w.PackageName),
		Source:                o.shared("source", w.Source),
		Target:                o.shared("target", w.Target),
		ReassignmentID:        o.reassignmentID(w.ReassignmentID, w.UnassignID),
		Submitter:             o.optionalText("submitter", w.Submitter),
		ReassignmentCounter:   o.int64("reassignmentCounter", w.ReassignmentCounter),
		AssignmentExclusivity: o.optionalTime("assignmentExclusivity", w.AssignmentExclusivity),
		WitnessParties:        o.requiredTexts("witnessParties", w.WitnessParties),
		Extra:                 o.unknown(w.Unknown),
	}
	return event, o.err
}

// reassignmentID reads the id under its name, or under the one that it has in 3.3.
func (o *object) reassignmentID(current, old span) string {
	if o.at(current) == nil && o.at(old) != nil {
		return o.shared("unassignId", old)
	}
	id := o.shared("reassignmentId", current)
	if o.at(old) != nil && o.shared("unassignId", old) != id {
		o.fail("unassignId", errors.New("differs from reassignmentId, of which it is another name"))
	}
	return id
}
