package ledger

import (
	"errors"
	"slices"
)

var reassignmentEvents = membersOf(
	may("JsAssignmentEvent", func(d *decoder, _ *Update) {
		a := d.assignment(OriginAssignment)
		*d.assigned.add(), *d.created.add() = a.AssignedEvent, a.created
		d.nodes = append(d.nodes, a.NodeID)
	}),
	may("JsUnassignedEvent", func(d *decoder, _ *Update) {
		e := d.unassigned.add()
		beside := unassignedWrapper.read(d, e)
		e.Extra = withEnvelope(e.Extra, nil, "", "JsUnassignedEvent", beside)
		d.nodes = append(d.nodes, e.NodeID)
	}),
).keep()

var unassignedWrapper = wrapped(func(d *decoder, e *UnassignedEvent) { d.unassignment(e, unassignedMembers) })

// assignment is an assignment with the creation inside it, from which it takes its node id and its contract.
type assignment struct {
	AssignedEvent
	created CreatedEvent
}

func (d *decoder) assignment(origin Origin) (a assignment) {
	a.created.Origin = origin
	a.Extra = reassigned(d, assignedMembers, &a)
	a.NodeID, a.ContractID = a.created.NodeID, a.created.ContractID
	a.TemplateID, a.PackageName = a.created.TemplateID, a.created.PackageName
	return a
}

var assignedMembers = membersOf(
	must("source", func(d *decoder, a *assignment) { a.Source = *d.commonText() }),
	must("target", func(d *decoder, a *assignment) { a.Target = *d.commonText() }),
	may("reassignmentId", func(d *decoder, a *assignment) { d.reassignmentID(&a.ReassignmentID) }),
	may("unassignId", func(d *decoder, a *assignment) { d.reassignmentID(&a.ReassignmentID) }),
	may("submitter", func(d *decoder, a *assignment) { a.Submitter = d.rareText() }),
	must("reassignmentCounter", func(d *decoder, a *assignment) { a.ReassignmentCounter = d.int64() }),
	must("createdEvent", func(d *decoder, a *assignment) { d.creation(&a.created, a.created.Origin) }),
)

// reassigned reads an event that must have a reassignment id, under either name.
func reassigned[T any](d *decoder, members *known[T], into *T) (unknown JSON) {
	begun := d.here()
	d.reassigned = false
	unknown = members.read(d, into)
	if !d.reassigned {
		d.refuseAt(begun, "reassignmentId", errMissing)
	}
	return unknown
}

// reassignmentID reads the id under either name: release 3.3 calls it unassignId.
func (d *decoder) reassignmentID(id *string) {
	text := d.copyText(d.chars())
	if d.reassigned && *id != text {
		d.refuse(errors.New("differs: reassignmentId and unassignId are two names of one id"))
	}
	*id, d.reassigned = text, true
}

func (d *decoder) unassignment(e *UnassignedEvent, members *known[UnassignedEvent]) {
	e.Extra = reassigned(d, members, e)
}

var (
	unassignedMembers = membersOf(slices.Concat(unassignmentMembers, []member[UnassignedEvent]{
		must("offset", func(d *decoder, _ *UnassignedEvent) { d.repeatedUpdateOffset() }),
	})...)
	// incompleteMembers are those of an unassignment in a snapshot, which has its own offset.
	incompleteMembers = membersOf(slices.Concat(unassignmentMembers, []member[UnassignedEvent]{
		must("offset", func(d *decoder, e *UnassignedEvent) { e.Offset = d.updateOffset() }),
	})...)
)

var unassignmentMembers = []member[UnassignedEvent]{
	may("reassignmentId", func(d *decoder, e *UnassignedEvent) { d.reassignmentID(&e.ReassignmentID) }),
	may("unassignId", func(d *decoder, e *UnassignedEvent) { d.reassignmentID(&e.ReassignmentID) }),
	must("contractId", func(d *decoder, e *UnassignedEvent) { e.ContractID = d.rareID() }),
	must("templateId", func(d *decoder, e *UnassignedEvent) { e.TemplateID = d.identifier() }),
	must("source", func(d *decoder, e *UnassignedEvent) { e.Source = *d.commonText() }),
	must("target", func(d *decoder, e *UnassignedEvent) { e.Target = *d.commonText() }),
	may("submitter", func(d *decoder, e *UnassignedEvent) { e.Submitter = d.rareText() }),
	must("reassignmentCounter", func(d *decoder, e *UnassignedEvent) { e.ReassignmentCounter = d.int64() }),
	may("assignmentExclusivity", func(d *decoder, e *UnassignedEvent) { e.AssignmentExclusivity = d.time() }),
	must("witnessParties", func(d *decoder, e *UnassignedEvent) { e.WitnessParties = d.partyList() }),
	must("packageName", func(d *decoder, e *UnassignedEvent) { e.PackageName = *d.commonText() }),
	must("nodeId", func(d *decoder, e *UnassignedEvent) { e.NodeID = d.nodeID() }),
}
