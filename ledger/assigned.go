package ledger

import "errors"

// AssignedEvent is the arrival of a contract on the target synchronizer. Its creation event is in Update.Created, with
// the same NodeID.
type AssignedEvent struct {
	NodeID              int32
	ContractID          string
	TemplateID          string
	PackageName         string
	Source              string
	Target              string
	ReassignmentID      string
	Submitter           *string
	ReassignmentCounter int64
	Extra               JSON
}

// Table implements Element.
func (e *AssignedEvent) Table() string { return "reassignments" }

// Contract implements Element.
func (e *AssignedEvent) Contract() string { return e.ContractID }

// Redact implements Element.
func (e *AssignedEvent) Redact() { e.Extra = nil }

var assignedVariant = may("JsAssignmentEvent", func(d *decoder, _ *Update) {
	a := d.assignment(OriginAssignment)
	*d.assigned.add(), *d.created.add() = a.AssignedEvent, a.created
	d.nodes = append(d.nodes, a.NodeID)
})

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
