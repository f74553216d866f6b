package ledger

// entry converts an element of a snapshot.
func (r *reader) entry(w *wireEntry) (ContractEntry, error) {
	o := object{reader: r}
	entry := ContractEntry{
		WorkflowID: o.optionalText("workflowId", w.WorkflowID),
		Token:      string(o.text("streamContinuationToken", o.at(w.Token))),
		Extra:      o.unknown(w.Unknown),
	}
	if w.Entry == nil {
		o.fail("contractEntry", errMissing)
	}
	if o.err != nil {
		return entry, o.err
	}
	v := w.Entry
	unknown, err := variant(v.Unknown, v.Active != nil, v.Unassigned != nil, v.Assigned != nil, v.Empty != nil)
	if err != nil {
		return entry, below("contractEntry", err)
	}
	switch {
	case v.Active != nil:
		active, err := r.active(v.Active)
		entry.Active = active
		return entry, below("JsActiveContract", err)
	case v.Unassigned != nil:
		unassigned, err := r.incompleteUnassigned(v.Unassigned)
		entry.Unassigned = unassigned
		return entry, below("JsIncompleteUnassigned", err)
	case v.Assigned != nil:
		assigned, err := r.incompleteAssigned(v.Assigned)
		entry.Assigned = assigned
		return entry, below("JsIncompleteAssigned", err)
	case v.Empty != nil:
		entry.Empty = true
		entry.Extra = withEnvelope(entry.Extra, nil, "contractEntry", "JsEmpty", v.Empty.Unknown)
		return entry, nil
	default:
		element, err := unknownEvent(unknown, v.Unknown)
		entry.Unknown = &element
		return entry, below("contractEntry", err)
	}
}

func (r *reader) active(w *wireActive) (*ActiveContract, error) {
	if w.CreatedEvent == nil {
		return nil, below("createdEvent", errMissing)
	}
	created, err := r.created(w.CreatedEvent, OriginSnapshot, 0)
	if err != nil {
		return nil, below("createdEvent", err)
	}
	o := object{reader: r}
	active := &ActiveContract{
		Created:             created,
		SynchronizerID:      o.shared("synchronizerId", w.SynchronizerID),
		ReassignmentCounter: o.int64("reassignmentCounter", w.ReassignmentCounter),
		Extra:               o.unknown(w.Unknown),
	}
	return active, o.err
}

func (r *reader) incompleteUnassigned(w *wireIncompleteUnassigned) (*IncompleteUnassigned, error) {
	if w.CreatedEvent == nil {
		return nil, below("createdEvent", errMissing)
	}
	if w.UnassignedEvent == nil {
		return nil, below("unassignedEvent", errMissing)
	}
	created, err := r.created(w.CreatedEvent, OriginSnapshot, 0)
	if err != nil {
		return nil, below("createdEvent", err)
	}
	unassigned, err := r.unassigned(w.UnassignedEvent, 0)
	if err != nil {
		return nil, below("unassignedEvent", err)
	}
	o := object{reader: r}
	return &IncompleteUnassigned{Created: created, Unassigned: unassigned, Extra: o.unknown(w.Unknown)}, o.err
}

func (r *reader) incompleteAssigned(w *wireIncompleteAssigned) (*IncompleteAssigned, error) {
	if w.AssignedEvent == nil {
		return nil, below("assignedEvent", errMissing)
	}
	assigned, created, err := r.assigned(w.AssignedEvent, OriginSnapshot, 0)
	if err != nil {
		return nil, below("assignedEvent", err)
	}
	o := object{reader: r}
	return &IncompleteAssigned{Created: created, Assigned: assigned, Extra: o.unknown(w.Unknown)}, o.err
}
