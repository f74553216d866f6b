package ledger

import "slices"

// CreatedEvent is the creation of a contract, or its arrival on a synchronizer (interface.md, "CreatedEvent").
type CreatedEvent struct {
	Offset                  Offset
	NodeID                  int32
	Origin                  Origin
	ContractID              string
	TemplateID              string // package-id:Module:Entity as served
	PackageName             string
	RepresentativePackageID *string
	Argument                JSON // nil if only an interface filter matched
	ContractKey             JSON
	ContractKeyHash         []byte
	Signatories             []string
	Observers               []string
	WitnessParties          []string
	CreatedAt               Time
	ACSDelta                *bool // nil: the server (3.3) does not say
	Blob                    []byte
	InterfaceViews          []InterfaceView
	Extra                   JSON
}

// Table implements Element.
func (e *CreatedEvent) Table() string { return "created" }

// Contract implements Element.
func (e *CreatedEvent) Contract() string { return e.ContractID }

// Redact implements Element.
func (e *CreatedEvent) Redact() {
	e.Argument, e.ContractKey, e.ContractKeyHash, e.Blob, e.Extra = nil, nil, nil, nil, nil
	e.InterfaceViews = slices.Clone(e.InterfaceViews)
	for i := range e.InterfaceViews {
		e.InterfaceViews[i].redact()
	}
}

// Origin is what a creation event was part of; its text is stored in the database.
type Origin string

// The origins of a creation event.
const (
	OriginTransaction Origin = "transaction"
	OriginAssignment  Origin = "assignment"
	OriginSnapshot    Origin = "snapshot"
)

var createdVariant = may("CreatedEvent", func(d *decoder, _ *Update) {
	e := d.created.add()
	d.creation(e, OriginTransaction)
	d.nodes = append(d.nodes, e.NodeID)
})

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

// networkCreation reads a creation, and returns its event id.
func (d *decoder) networkCreation(origin Origin) (eventID string) {
	c := networkCreationEvent{CreatedEvent: d.created.add()}
	c.Origin = origin
	c.Extra = networkCreatedMembers.read(d, &c)
	return c.id
}

type networkCreationEvent struct {
	*CreatedEvent
	id string
}

var networkCreatedMembers = membersOf(
	may("event_type", func(d *decoder, _ *networkCreationEvent) { d.value() }),
	must("event_id", func(d *decoder, c *networkCreationEvent) { c.id = d.copyText(d.chars()) }),
	must("contract_id", func(d *decoder, c *networkCreationEvent) { c.ContractID = d.rareID() }),
	must("template_id", func(d *decoder, c *networkCreationEvent) { c.TemplateID = d.identifier() }),
	must("package_name", func(d *decoder, c *networkCreationEvent) { c.PackageName = *d.commonText() }),
	may("create_arguments", func(d *decoder, c *networkCreationEvent) { c.Argument = d.payload() }),
	must("created_at", func(d *decoder, c *networkCreationEvent) { c.CreatedAt = d.time() }),
	must("signatories", func(d *decoder, c *networkCreationEvent) { c.Signatories = d.partyList() }),
	must("observers", func(d *decoder, c *networkCreationEvent) { c.Observers = d.partyList() }),
)
