package ledger

// TopologyEvent is a change of a party's hosting on a participant.
type TopologyEvent struct {
	NodeID        int32 // index in the update's list: the server sends no node id
	Kind          TopologyEventKind
	PartyID       *string // nil if Kind is TopologyUnknown
	ParticipantID *string
	Permission    *string // nil for a revocation
	Extra         JSON
}

// Table implements Element.
func (e *TopologyEvent) Table() string { return "topology_events" }

// Contract implements Element.
func (e *TopologyEvent) Contract() string { return "" }

// Redact implements Element.
func (e *TopologyEvent) Redact() { e.Extra = nil }

// TopologyEventKind is what happened to a party's hosting; its text is stored in the database.
type TopologyEventKind string

// The kinds of topology event.
const (
	TopologyAdded      TopologyEventKind = "added"
	TopologyChanged    TopologyEventKind = "changed"
	TopologyRevoked    TopologyEventKind = "revoked"
	TopologyOnboarding TopologyEventKind = "onboarding"
	TopologyUnknown    TopologyEventKind = "unknown"
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
