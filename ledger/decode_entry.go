package ledger

import "slices"

// ContractPage is a response of /v2/state/active-contracts-page.
type ContractPage struct {
	Entries  []ContractEntry
	ActiveAt Offset // of the snapshot
	Next     string // token of the next page; empty on the last
}

// DecodeContractEntries decodes the JSON array that /v2/state/active-contracts serves (interface.md, "Active contract
// entry"). Unknown members and variants are kept, see [ContractEntry]. All errors are *DecodeError. The
// result shares no memory with body, but it shares texts and lists with earlier results: don't change it.
func DecodeContractEntries(body []byte) ([]ContractEntry, error) {
	return decode(body, answer{levels: 1}, (*decoder).entries)
}

// DecodeContractPage decodes the JSON object that /v2/state/active-contracts-page serves. Beside what holds for
// [DecodeContractEntries], the list must be there: a page without one is an error, not the end of the snapshot.
func DecodeContractPage(body []byte) (ContractPage, error) {
	return decode(body, answer{levels: 2, list: "activeContracts"}, func(d *decoder) (page ContractPage) {
		contractPageMembers.read(d, &page)
		return page
	})
}

var contractPageMembers = membersOf(
	must("activeContracts", func(d *decoder, p *ContractPage) { p.Entries = d.entries() }),
	must("activeAtOffset", func(d *decoder, p *ContractPage) { p.ActiveAt = d.bound() }),
	may("nextPageToken", func(d *decoder, p *ContractPage) { p.Next = string(d.chars()) }),
).withoutUnknown()

func (d *decoder) entries() []ContractEntry {
	list, started := takeBuffer(&d.lexicon.entries), d.at
	for next := d.begin(); next && !d.refused; next = d.more() {
		if len(list) == cap(list) {
			list = slices.Grow(list, d.expected(len(list), started))
		}
		list = append(list, ContractEntry{})
		entry, from, unusual := &list[len(list)-1], d.at, d.unusual
		extra := entryMembers.read(d, entry)
		// Extra held the members inside contractEntry
		entry.Extra = withEnvelope(extra, nil, "contractEntry", "JsEmpty", entry.Extra)
		entry.Plain = d.unusual == unusual && d.at-from <= mostPlain
	}
	if d.refused {
		return nil
	}
	return returnBuffer(&d.lexicon.entries, list)
}

var entryMembers = membersOf(
	may("workflowId", func(d *decoder, e *ContractEntry) { e.WorkflowID = d.rareText() }),
	must("contractEntry", (*decoder).contractEntry),
	may("streamContinuationToken", func(d *decoder, e *ContractEntry) { e.Token = d.copyText(d.chars()) }),
)

func (d *decoder) contractEntry(e *ContractEntry) {
	begun := d.here()
	if raw := entryVariants.variant(d, e); raw != nil && !d.refused {
		e.Unknown = new(d.unknownEvent(begun, raw))
	}
}

var entryVariants = membersOf(
	may("JsActiveContract", func(d *decoder, e *ContractEntry) {
		e.Active = d.active.one()
		e.Active.Extra = activeMembers.read(d, e.Active)
	}),
	may("JsIncompleteUnassigned", func(d *decoder, e *ContractEntry) {
		e.Unassigned = new(IncompleteUnassigned)
		e.Unassigned.Extra = incompleteUnassignedMembers.read(d, e.Unassigned)
	}),
	may("JsIncompleteAssigned", func(d *decoder, e *ContractEntry) {
		e.Assigned = new(IncompleteAssigned)
		e.Assigned.Extra = incompleteAssignedMembers.read(d, e.Assigned)
	}),
	may("JsEmpty", func(d *decoder, e *ContractEntry) {
		e.Empty = true
		e.Extra = emptyMembers.read(d, e)
	}),
).keep()

var activeMembers = membersOf(
	must("createdEvent", func(d *decoder, a *ActiveContract) { d.creation(&a.Created, OriginSnapshot) }),
	must("synchronizerId", func(d *decoder, a *ActiveContract) { a.SynchronizerID = *d.commonText() }),
	must("reassignmentCounter", func(d *decoder, a *ActiveContract) { a.ReassignmentCounter = d.int64() }),
)

var incompleteUnassignedMembers = membersOf(
	must("createdEvent", func(d *decoder, i *IncompleteUnassigned) { d.creation(&i.Created, OriginSnapshot) }),
	must("unassignedEvent", func(d *decoder,
		i *IncompleteUnassigned) {
		d.unassignment(&i.Unassigned, incompleteMembers)
	}),
)

var incompleteAssignedMembers = membersOf(
	must("assignedEvent", func(d *decoder, i *IncompleteAssigned) {
		a := d.assignment(OriginSnapshot)
		i.Assigned, i.Created = a.AssignedEvent, a.created
	}),
)

var emptyMembers = membersOf[ContractEntry]().keep()
