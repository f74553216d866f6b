package ledger

// The events of updates. What they repeat of their update is checked when that is known (see direct.update).

// belongs notes that an event is of an update's offset; servers leave it out or send zero where they do not populate it.
func (d *direct) belongs(offset Offset) {
	if d.eventsAt == 0 {
		d.eventsAt = offset
	}
	if offset != 0 && offset != d.eventsAt {
		d.refuse()
	}
}

// events reads the events of a transaction.
func (d *direct) events() {
	for next := d.begin(); next; next = d.more() {
		d.want('{')
		var node int32
		switch {
		case d.named(`"CreatedEvent"`):
			e := d.created.add()
			d.creation(e, OriginTransaction)
			d.belongs(e.Offset)
			node = e.NodeID
		case d.named(`"ArchivedEvent"`):
			e := d.archived.add()
			e.Extra = archivedMembers.read(d, e)
			node = e.NodeID
		case d.named(`"ExercisedEvent"`):
			e := d.exercised.add()
			e.Extra = exercisedMembers.read(d, e)
			node = e.NodeID
		default:
			d.refuse()
		}
		d.nodes = append(d.nodes, node)
		d.want('}')
	}
}

// creation reads a creation with the offset that it says, which may be none.
func (d *direct) creation(e *CreatedEvent, origin Origin) {
	e.Origin = origin
	e.Extra = createdMembers.read(d, e)
}

var createdMembers = membersOf(
	may("offset", func(d *direct, e *CreatedEvent) { e.Offset = Offset(d.int64()) }),
	must("nodeId", func(d *direct, e *CreatedEvent) { e.NodeID = d.nodeID() }),
	must("contractId", func(d *direct, e *CreatedEvent) { e.ContractID = d.unique() }),
	must("templateId", func(d *direct, e *CreatedEvent) { e.TemplateID = d.identifier() }),
	may("contractKey", func(d *direct, e *CreatedEvent) { e.ContractKey = d.payload() }),
	may("contractKeyHash", func(d *direct, e *CreatedEvent) { e.ContractKeyHash = d.bytes() }),
	may("createArgument", func(d *direct, e *CreatedEvent) { e.Argument = d.payload() }),
	may("createdEventBlob", func(d *direct, e *CreatedEvent) { e.Blob = d.bytes() }),
	may("interfaceViews", func(d *direct, e *CreatedEvent) { e.InterfaceViews = d.interfaceViews() }),
	must("witnessParties", func(d *direct, e *CreatedEvent) { e.WitnessParties = d.partyList() }),
	must("signatories", func(d *direct, e *CreatedEvent) { e.Signatories = d.partyList() }),
	may("observers", func(d *direct, e *CreatedEvent) { e.Observers = d.partyList() }),
	must("createdAt", func(d *direct, e *CreatedEvent) { e.CreatedAt = d.time() }),
	must("packageName", func(d *direct, e *CreatedEvent) { e.PackageName = *d.shared() }),
	may("representativePackageId", func(d *direct, e *CreatedEvent) { e.RepresentativePackageID = d.shared() }),
	may("acsDelta", func(d *direct, e *CreatedEvent) { e.ACSDelta = d.optionalBool() }),
)

func (d *direct) interfaceViews() []InterfaceView {
	for next := d.begin(); next; next = d.more() {
		d.statusExtra = nil
		view := d.views.add()
		view.Extra = appendMember(viewMembers.read(d, view), extraStatus, d.statusExtra)
	}
	if list := d.views.take(); list != nil {
		return list
	}
	return []InterfaceView{}
}

var viewMembers = membersOf(
	must("interfaceId", func(d *direct, v *InterfaceView) { v.InterfaceID = d.identifier() }),
	must("viewStatus", func(d *direct, v *InterfaceView) { d.statusExtra = statusMembers.read(d, v) }),
	may("viewValue", func(d *direct, v *InterfaceView) { v.Value = d.payload() }),
	may("implementationPackageId", func(d *direct, v *InterfaceView) { v.ImplementationPackageID = d.shared() }),
)

var statusMembers = membersOf(
	must("code", func(d *direct, v *InterfaceView) {
		code := int32(d.integer(32))
		v.StatusCode = &code
	}),
	must("message", func(d *direct, v *InterfaceView) { v.StatusMessage = d.shared() }),
	may("details", func(d *direct, v *InterfaceView) {
		if d.peek() != '[' {
			d.refuse()
		}
		v.StatusDetails = d.payload()
	}),
)

var archivedMembers = membersOf(
	may("offset", func(d *direct, _ *ArchivedEvent) { d.belongs(Offset(d.int64())) }),
	must("nodeId", func(d *direct, e *ArchivedEvent) { e.NodeID = d.nodeID() }),
	must("contractId", func(d *direct, e *ArchivedEvent) { e.ContractID = d.unique() }),
	must("templateId", func(d *direct, e *ArchivedEvent) { e.TemplateID = d.identifier() }),
	must("witnessParties", func(d *direct, e *ArchivedEvent) { e.WitnessParties = d.partyList() }),
	must("packageName", func(d *direct, e *ArchivedEvent) { e.PackageName = *d.shared() }),
	may("implementedInterfaces", func(d *direct, e *ArchivedEvent) { e.ImplementedInterfaces = d.interfaceList() }),
)

var exercisedMembers = membersOf(
	may("offset", func(d *direct, _ *ExercisedEvent) { d.belongs(Offset(d.int64())) }),
	must("nodeId", func(d *direct, e *ExercisedEvent) { e.NodeID = d.nodeID() }),
	must("contractId", func(d *direct, e *ExercisedEvent) { e.ContractID = d.unique() }),
	must("templateId", func(d *direct, e *ExercisedEvent) { e.TemplateID = d.identifier() }),
	may("interfaceId", func(d *direct, e *ExercisedEvent) {
		e.InterfaceID = d.singles.one()
		*e.InterfaceID = d.identifier()
	}),
	must("choice", func(d *direct, e *ExercisedEvent) { e.Choice = *d.shared() }),
	may("choiceArgument", func(d *direct, e *ExercisedEvent) { e.Argument = d.payload() }),
	must("actingParties", func(d *direct, e *ExercisedEvent) { e.ActingParties = d.partyList() }),
	must("consuming", func(d *direct, e *ExercisedEvent) { e.Consuming = d.boolean() }),
	must("witnessParties", func(d *direct, e *ExercisedEvent) { e.WitnessParties = d.partyList() }),
	must("lastDescendantNodeId", func(d *direct, e *ExercisedEvent) { e.LastDescendantNodeID = d.nodeID() }),
	may("exerciseResult", func(d *direct, e *ExercisedEvent) { e.Result = d.payload() }),
	must("packageName", func(d *direct, e *ExercisedEvent) { e.PackageName = *d.shared() }),
	may("implementedInterfaces", func(d *direct, e *ExercisedEvent) { e.ImplementedInterfaces = d.interfaceList() }),
	may("acsDelta", func(d *direct, e *ExercisedEvent) { e.ACSDelta = d.optionalBool() }),
)

// reassignmentEvents reads the events of a reassignment.
func (d *direct) reassignmentEvents() {
	for next := d.begin(); next; next = d.more() {
		d.want('{')
		var node int32
		switch {
		case d.named(`"JsAssignmentEvent"`):
			a := d.assignment(OriginAssignment)
			d.belongs(a.created.Offset)
			*d.assigned.add(), *d.created.add() = a.AssignedEvent, a.created
			node = a.NodeID
		case d.named(`"JsUnassignedEvent"`):
			d.open(`"value"`)
			e := d.unassigned.add()
			d.unassignment(e)
			d.belongs(e.Offset)
			node = e.NodeID
			d.want('}')
		default:
			d.refuse()
		}
		d.nodes = append(d.nodes, node)
		d.want('}')
	}
}

// assignment is an assignment with the creation inside it.
type assignment struct {
	AssignedEvent
	created CreatedEvent
}

func (d *direct) assignment(origin Origin) (a assignment) {
	a.created.Origin = origin
	a.Extra = assignedMembers.read(d, &a)
	a.NodeID, a.ContractID, a.TemplateID, a.PackageName = a.created.NodeID, a.created.ContractID, a.created.TemplateID, a.created.PackageName
	if a.ReassignmentID == "" {
		d.refuse()
	}
	return a
}

var assignedMembers = membersOf(
	must("source", func(d *direct, a *assignment) { a.Source = *d.shared() }),
	must("target", func(d *direct, a *assignment) { a.Target = *d.shared() }),
	may("reassignmentId", func(d *direct, a *assignment) { d.reassignmentID(&a.ReassignmentID) }),
	may("unassignId", func(d *direct, a *assignment) { d.reassignmentID(&a.ReassignmentID) }),
	may("submitter", func(d *direct, a *assignment) { a.Submitter = d.single() }),
	must("reassignmentCounter", func(d *direct, a *assignment) { a.ReassignmentCounter = d.int64() }),
	must("createdEvent", func(d *direct, a *assignment) { d.creation(&a.created, a.created.Origin) }),
)

// reassignmentID reads the id under its name, or under the one that it has in 3.3.
func (d *direct) reassignmentID(id *string) {
	text := d.unique()
	if *id != "" && *id != text {
		d.refuse()
	}
	*id = text
}

// unassignment reads an unassignment with the offset that it says, which may be zero.
func (d *direct) unassignment(e *UnassignedEvent) {
	e.Extra = unassignedMembers.read(d, e)
	if e.ReassignmentID == "" {
		d.refuse()
	}
}

var unassignedMembers = membersOf(
	may("reassignmentId", func(d *direct, e *UnassignedEvent) { d.reassignmentID(&e.ReassignmentID) }),
	may("unassignId", func(d *direct, e *UnassignedEvent) { d.reassignmentID(&e.ReassignmentID) }),
	must("contractId", func(d *direct, e *UnassignedEvent) { e.ContractID = d.unique() }),
	must("templateId", func(d *direct, e *UnassignedEvent) { e.TemplateID = d.identifier() }),
	must("source", func(d *direct, e *UnassignedEvent) { e.Source = *d.shared() }),
	must("target", func(d *direct, e *UnassignedEvent) { e.Target = *d.shared() }),
	may("submitter", func(d *direct, e *UnassignedEvent) { e.Submitter = d.single() }),
	must("reassignmentCounter", func(d *direct, e *UnassignedEvent) { e.ReassignmentCounter = d.int64() }),
	may("assignmentExclusivity", func(d *direct, e *UnassignedEvent) { e.AssignmentExclusivity = d.time() }),
	must("witnessParties", func(d *direct, e *UnassignedEvent) { e.WitnessParties = d.partyList() }),
	must("packageName", func(d *direct, e *UnassignedEvent) { e.PackageName = *d.shared() }),
	must("offset", func(d *direct, e *UnassignedEvent) { e.Offset = Offset(d.int64()) }),
	must("nodeId", func(d *direct, e *UnassignedEvent) { e.NodeID = d.nodeID() }),
)

// topologyEvents reads the events of a topology transaction. The server numbers none: their index serves as node id.
func (d *direct) topologyEvents() {
	node := int32(0)
	for next := d.begin(); next; next = d.more() {
		e := d.topology.add()
		e.NodeID = node
		node++
		d.open(`"event"`)
		d.want('{')
		switch {
		case d.named(`"ParticipantAuthorizationAdded"`):
			e.Kind = TopologyAdded
		case d.named(`"ParticipantAuthorizationChanged"`):
			e.Kind = TopologyChanged
		case d.named(`"ParticipantAuthorizationRevoked"`):
			e.Kind = TopologyRevoked
		case d.named(`"ParticipantAuthorizationOnboarding"`):
			e.Kind = TopologyOnboarding
		default:
			d.refuse()
		}
		d.open(`"value"`)
		e.Extra = authorizationMembers.read(d, e)
		if e.Permission == nil && e.Kind != TopologyRevoked {
			d.refuse()
		}
		d.want('}')
		d.want('}')
		d.want('}')
	}
}

var authorizationMembers = membersOf(
	must("partyId", func(d *direct, e *TopologyEvent) { e.PartyID = d.shared() }),
	must("participantId", func(d *direct, e *TopologyEvent) { e.ParticipantID = d.shared() }),
	may("participantPermission", func(d *direct, e *TopologyEvent) { e.Permission = d.shared() }),
)
