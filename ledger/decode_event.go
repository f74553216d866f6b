package ledger

import (
	"slices"
	"strings"
)

// eventLists holds the events of the update that is being read.
type eventLists struct {
	created    arena[CreatedEvent]
	archived   arena[ArchivedEvent]
	exercised  arena[ExercisedEvent]
	assigned   arena[AssignedEvent]
	unassigned arena[UnassignedEvent]
	topology   arena[TopologyEvent]
}

func (l *eventLists) moveTo(u *Update) {
	u.Created, u.Archived, u.Exercised = l.created.take(), l.archived.take(), l.exercised.take()
	u.Assigned, u.Unassigned, u.Topology = l.assigned.take(), l.unassigned.take(), l.topology.take()
}

// repeatedOffset is the update's offset as an event repeats it.
type repeatedOffset struct {
	offset Offset
	at     int // position in the text
}

// repeatedUpdateOffset reads the offset of an event, which repeats that of its update. It is compared when the update
// was read, because the update's own offset may follow its events. Servers may omit it, or send 0.
func (d *decoder) repeatedUpdateOffset() {
	repeated := repeatedOffset{offset: Offset(d.int64()), at: d.begun}
	switch {
	case repeated.offset == 0:
	case d.repeated[0].offset == 0:
		d.repeated[0] = repeated
	case d.repeated[1].offset == 0 && repeated.offset != d.repeated[0].offset:
		d.repeated[1] = repeated
	}
}

func (d *decoder) transactionEvents(u *Update) {
	for next := d.begin(); next && !d.refused; next = d.more() {
		d.event(u, transactionEvents)
	}
}

func (d *decoder) reassignmentEvents(u *Update) {
	for next := d.begin(); next && !d.refused; next = d.more() {
		d.event(u, reassignmentEvents)
	}
}

func (d *decoder) event(u *Update, variants *known[Update]) {
	begun := d.here()
	if raw := variants.variant(d, u); raw != nil && !d.refused {
		u.Unknown = append(u.Unknown, d.unknownEvent(begun, raw))
	}
}

// unknownEvent keeps an event of an unknown kind, with its node id if that can be read.
func (d *decoder) unknownEvent(begun int, raw JSON) UnknownElement {
	event, r := d.unknownElement(begun, raw)
	event.NodeID = r.nodeID
	return event
}

var transactionEvents = membersOf(
	may("CreatedEvent", func(d *decoder, _ *Update) {
		e := d.created.add()
		d.creation(e, OriginTransaction)
		d.nodes = append(d.nodes, e.NodeID)
	}),
	may("ArchivedEvent", func(d *decoder, _ *Update) {
		e := d.archived.add()
		e.Extra = archivedMembers.read(d, e)
		d.nodes = append(d.nodes, e.NodeID)
	}),
	may("ExercisedEvent", func(d *decoder, _ *Update) {
		e := d.exercised.add()
		e.Extra = exercisedMembers.read(d, e)
		d.nodes = append(d.nodes, e.NodeID)
	}),
).keep()

// creation reads a creation. In a snapshot its offset is its own; in an update it repeats that of the update.
func (d *decoder) creation(e *CreatedEvent, origin Origin) {
	e.Origin = origin
	members := createdMembers
	if origin == OriginSnapshot {
		members = carriedMembers
	}
	e.Extra = members.read(d, e)
}

var (
	createdMembers = membersOf(slices.Concat([]member[CreatedEvent]{
		may("offset", func(d *decoder, _ *CreatedEvent) { d.repeatedUpdateOffset() }),
	}, creationMembers)...)
	carriedMembers = membersOf(slices.Concat([]member[CreatedEvent]{
		must("offset", func(d *decoder, e *CreatedEvent) { e.Offset = d.updateOffset() }),
	}, creationMembers)...)
)

var creationMembers = []member[CreatedEvent]{
	must("nodeId", func(d *decoder, e *CreatedEvent) { e.NodeID = d.nodeID() }),
	must("contractId", func(d *decoder, e *CreatedEvent) { e.ContractID = d.rareID() }),
	must("templateId", func(d *decoder, e *CreatedEvent) { e.TemplateID = d.identifier() }),
	may("contractKey", func(d *decoder, e *CreatedEvent) { e.ContractKey = d.payload() }),
	may("contractKeyHash", func(d *decoder, e *CreatedEvent) { e.ContractKeyHash = d.base64() }),
	may("createArgument", func(d *decoder, e *CreatedEvent) { e.Argument = d.payload() }),
	may("createdEventBlob", func(d *decoder, e *CreatedEvent) { e.Blob = d.base64() }),
	may("interfaceViews", func(d *decoder, e *CreatedEvent) { e.InterfaceViews = d.interfaceViews() }),
	must("witnessParties", func(d *decoder, e *CreatedEvent) { e.WitnessParties = d.partyList() }),
	must("signatories", func(d *decoder, e *CreatedEvent) { e.Signatories = d.partyList() }),
	may("observers", func(d *decoder, e *CreatedEvent) { e.Observers = d.partyList() }),
	must("createdAt", func(d *decoder, e *CreatedEvent) { e.CreatedAt = d.time() }),
	must("packageName", func(d *decoder, e *CreatedEvent) { e.PackageName = *d.commonText() }),
	// Release 3.3 has none of the following members.
	may("representativePackageId", func(d *decoder, e *CreatedEvent) { e.RepresentativePackageID = d.commonText() }),
	may("acsDelta", func(d *decoder, e *CreatedEvent) { e.ACSDelta = d.optionalBool() }),
}

// interfaceViews reads views, whose order means as little as that of parties.
func (d *decoder) interfaceViews() []InterfaceView {
	for next := d.begin(); next && !d.refused; next = d.more() {
		view := d.views.add()
		extra := viewMembers.read(d, view)
		view.Extra = appendMember(extra, extraStatus, view.Extra) // Extra held the status's unknown members
	}
	views := orEmpty(d.views.take())
	slices.SortStableFunc(views, func(a, b InterfaceView) int { return strings.Compare(a.InterfaceID, b.InterfaceID) })
	return views
}

// orEmpty returns the list, empty instead of nil: nil means that none was sent.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

var viewMembers = membersOf(
	must("interfaceId", func(d *decoder, v *InterfaceView) { v.InterfaceID = d.identifier() }),
	must("viewStatus", func(d *decoder, v *InterfaceView) { v.Extra = statusMembers.read(d, v) }),
	may("viewValue", func(d *decoder, v *InterfaceView) { v.Value = d.payload() }),
	may("implementationPackageId", func(d *decoder, v *InterfaceView) { v.ImplementationPackageID = d.commonText() }),
)

var statusMembers = membersOf(
	must("code", func(d *decoder, v *InterfaceView) { v.StatusCode = new(int32(d.integer(32))) }),
	must("message", func(d *decoder, v *InterfaceView) { v.StatusMessage = d.commonText() }),
	may("details", func(d *decoder, v *InterfaceView) {
		if d.peek() != '[' {
			d.mistyped("an array")
		}
		v.StatusDetails = d.payload()
	}),
).keep()

var archivedMembers = membersOf(
	may("offset", func(d *decoder, _ *ArchivedEvent) { d.repeatedUpdateOffset() }),
	must("nodeId", func(d *decoder, e *ArchivedEvent) { e.NodeID = d.nodeID() }),
	must("contractId", func(d *decoder, e *ArchivedEvent) { e.ContractID = d.rareID() }),
	must("templateId", func(d *decoder, e *ArchivedEvent) { e.TemplateID = d.identifier() }),
	must("witnessParties", func(d *decoder, e *ArchivedEvent) { e.WitnessParties = d.partyList() }),
	must("packageName", func(d *decoder, e *ArchivedEvent) { e.PackageName = *d.commonText() }),
	may("implementedInterfaces", func(d *decoder, e *ArchivedEvent) { e.ImplementedInterfaces = d.interfaceList() }),
)

var exercisedMembers = membersOf(
	may("offset", func(d *decoder, _ *ExercisedEvent) { d.repeatedUpdateOffset() }),
	must("nodeId", func(d *decoder, e *ExercisedEvent) { e.NodeID = d.nodeID() }),
	must("contractId", func(d *decoder, e *ExercisedEvent) { e.ContractID = d.rareID() }),
	must("templateId", func(d *decoder, e *ExercisedEvent) { e.TemplateID = d.identifier() }),
	may("interfaceId", func(d *decoder, e *ExercisedEvent) {
		e.InterfaceID = d.singles.one()
		*e.InterfaceID = d.identifier()
	}),
	must("choice", func(d *decoder, e *ExercisedEvent) { e.Choice = *d.commonText() }),
	may("choiceArgument", func(d *decoder, e *ExercisedEvent) { e.Argument = d.payload() }),
	must("actingParties", func(d *decoder, e *ExercisedEvent) { e.ActingParties = d.partyList() }),
	must("consuming", func(d *decoder, e *ExercisedEvent) { e.Consuming = d.boolean() }),
	must("witnessParties", func(d *decoder, e *ExercisedEvent) { e.WitnessParties = d.partyList() }),
	must("lastDescendantNodeId", func(d *decoder, e *ExercisedEvent) { e.LastDescendantNodeID = d.nodeID() }),
	may("exerciseResult", func(d *decoder, e *ExercisedEvent) { e.Result = d.payload() }),
	must("packageName", func(d *decoder, e *ExercisedEvent) { e.PackageName = *d.commonText() }),
	may("implementedInterfaces", func(d *decoder, e *ExercisedEvent) { e.ImplementedInterfaces = d.interfaceList() }),
	may("acsDelta", func(d *decoder, e *ExercisedEvent) { e.ACSDelta = d.optionalBool() }), // 3.3 leaves it out
)

// topologyEvents reads the events of a topology transaction. The server sends no node ids, so an event's index is its
// node id.
func (d *decoder) topologyEvents(u *Update) {
	node := int32(0)
	for next := d.begin(); next && !d.refused; next = d.more() {
		e := topologyEvent{TopologyEvent: d.topology.add(), update: u}
		e.NodeID = node
		node++
		beside := topologyEventMembers.read(d, &e)
		e.Extra = withEnvelope(e.Extra, beside, "event", e.variant, e.beside)
	}
}

type topologyEvent struct {
	*TopologyEvent
	update  *Update
	variant string
	beside  JSON // the variant's unknown members beside its value
}

var topologyEventMembers = membersOf(must("event", func(d *decoder, e *topologyEvent) {
	begun := d.here()
	if raw := topologyVariants.variant(d, e); raw != nil && !d.refused {
		unknown, _ := d.unknownElement(begun, raw)
		unknown.NodeID = new(e.NodeID)
		e.Kind = TopologyUnknown
		e.update.Unknown = append(e.update.Unknown, unknown)
	}
})).keep()

var topologyVariants = membersOf(
	hosting(TopologyAdded, "ParticipantAuthorizationAdded"),
	hosting(TopologyChanged, "ParticipantAuthorizationChanged"),
	hosting(TopologyRevoked, "ParticipantAuthorizationRevoked"),
	hosting(TopologyOnboarding, "ParticipantAuthorizationOnboarding"),
).keep()

func hosting(kind TopologyEventKind, name string) member[topologyEvent] {
	return may(name, func(d *decoder, e *topologyEvent) {
		e.Kind = kind
		e.variant, e.beside = name, authorizationWrapper.read(d, e.TopologyEvent)
	})
}

var authorizationWrapper = wrapped(func(d *decoder, e *TopologyEvent) {
	begun := d.here()
	e.Extra = authorizationMembers.read(d, e)
	if e.Permission == nil && e.Kind != TopologyRevoked {
		d.refuseAt(begun, "participantPermission", errMissing)
	}
})

var authorizationMembers = membersOf(
	must("partyId", func(d *decoder, e *TopologyEvent) { e.PartyID = d.commonText() }),
	must("participantId", func(d *decoder, e *TopologyEvent) { e.ParticipantID = d.commonText() }),
	may("participantPermission", func(d *decoder, e *TopologyEvent) { e.Permission = d.commonText() }),
)
