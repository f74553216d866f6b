package ledger

import "slices"

// entries reads a list of the entries of a snapshot.
func (d *direct) entries() []ContractEntry {
	list, begun := take(&d.reader.entries), d.at
	for next := d.begin(); next; next = d.more() {
		if len(list) == cap(list) {
			list = slices.Grow(list, d.expected(len(list), begun))
		}
		list = append(list, ContractEntry{})
		entry, from, unusual := &list[len(list)-1], d.at, d.unusual
		entry.Extra = entryMembers.read(d, entry)
		entry.Plain = d.unusual == unusual && d.at-from <= mostPlain
	}
	if d.refused {
		return nil
	}
	return exact(&d.reader.entries, list)
}

var entryMembers = membersOf(
	may("workflowId", func(d *direct, e *ContractEntry) { e.WorkflowID = d.single() }),
	must("contractEntry", (*direct).contractEntry),
	may("streamContinuationToken", func(d *direct, e *ContractEntry) { e.Token = d.own(d.chars()) }),
)

func (d *direct) contractEntry(e *ContractEntry) {
	d.want('{')
	switch {
	case d.named(`"JsActiveContract"`):
		e.Active = d.active.one()
		e.Active.Extra = activeMembers.read(d, e.Active)
	case d.named(`"JsIncompleteUnassigned"`):
		e.Unassigned = new(IncompleteUnassigned)
		e.Unassigned.Extra = incompleteUnassignedMembers.read(d, e.Unassigned)
	case d.named(`"JsIncompleteAssigned"`):
		e.Assigned = new(IncompleteAssigned)
		e.Assigned.Extra = incompleteAssignedMembers.read(d, e.Assigned)
	case d.named(`"JsEmpty"`):
		e.Empty = true
		d.want('{')
		d.want('}')
	default:
		d.refuse()
	}
	d.want('}')
}

var activeMembers = membersOf(
	must("createdEvent", func(d *direct, a *ActiveContract) { d.carried(&a.Created) }),
	must("synchronizerId", func(d *direct, a *ActiveContract) { a.SynchronizerID = *d.shared() }),
	must("reassignmentCounter", func(d *direct, a *ActiveContract) { a.ReassignmentCounter = d.int64() }),
)

var incompleteUnassignedMembers = membersOf(
	must("createdEvent", func(d *direct, i *IncompleteUnassigned) { d.carried(&i.Created) }),
	must("unassignedEvent", func(d *direct, i *IncompleteUnassigned) {
		d.unassignment(&i.Unassigned)
		d.mustLie(i.Unassigned.Offset)
	}),
)

var incompleteAssignedMembers = membersOf(
	must("assignedEvent", func(d *direct, i *IncompleteAssigned) {
		a := d.assignment(OriginSnapshot)
		i.Assigned, i.Created = a.AssignedEvent, a.created
		d.mustLie(i.Created.Offset)
	}),
)

// carried reads a creation that brings its own offset.
func (d *direct) carried(e *CreatedEvent) {
	d.creation(e, OriginSnapshot)
	d.mustLie(e.Offset)
}

// mustLie refuses what is no offset of an event.
func (d *direct) mustLie(offset Offset) {
	if offset <= 0 {
		d.refuse()
	}
}

// contractPage reads a page of a snapshot.
func (d *direct) contractPage() (page ContractPage) {
	contractPageMembers.read(d, &page)
	return page
}

var contractPageMembers = membersOf(
	must("activeContracts", func(d *direct, p *ContractPage) { p.Entries = d.entries() }),
	must("activeAtOffset", func(d *direct, p *ContractPage) { p.ActiveAt = d.bound() }),
	may("nextPageToken", func(d *direct, p *ContractPage) { p.Next = string(d.chars()) }),
)
