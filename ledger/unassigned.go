package ledger

import "slices"

// UnassignedEvent is the unassignment of a contract from the source synchronizer.
type UnassignedEvent struct {
	Offset                Offset
	NodeID                int32
	ContractID            string
	TemplateID            string
	PackageName           string
	Source                string
	Target                string
	ReassignmentID        string
	Submitter             *string
	ReassignmentCounter   int64
	AssignmentExclusivity Time
	WitnessParties        []string
	Extra                 JSON
}

// Table implements Element.
func (e *UnassignedEvent) Table() string { return "reassignments" }

// Contract implements Element.
func (e *UnassignedEvent) Contract() string { return e.ContractID }

// Redact implements Element.
func (e *UnassignedEvent) Redact() { e.Extra = nil }

var unassignedVariant = may("JsUnassignedEvent", func(d *decoder, _ *Update) {
	e := d.unassigned.add()
	beside := unassignedWrapper.read(d, e)
	e.Extra = withEnvelope(e.Extra, nil, "", "JsUnassignedEvent", beside)
	d.nodes = append(d.nodes, e.NodeID)
})

var unassignedWrapper = wrapped(func(d *decoder, e *UnassignedEvent) { d.unassignment(e, unassignedMembers) })

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
