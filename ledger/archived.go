package ledger

// ArchivedEvent is the archival of a contract in the ACS_DELTA shape. It implies acs_delta true.
type ArchivedEvent struct {
	NodeID                int32
	ContractID            string
	TemplateID            string // may name another package than the creation does
	PackageName           string
	WitnessParties        []string
	ImplementedInterfaces []string
	Extra                 JSON
}

// Table implements Element.
func (e *ArchivedEvent) Table() string { return "archived" }

// Contract implements Element.
func (e *ArchivedEvent) Contract() string { return e.ContractID }

// Redact implements Element.
func (e *ArchivedEvent) Redact() { e.Extra = nil }

var archivedVariant = may("ArchivedEvent", func(d *decoder, _ *Update) {
	e := d.archived.add()
	e.Extra = archivedMembers.read(d, e)
	d.nodes = append(d.nodes, e.NodeID)
})

var archivedMembers = membersOf(
	may("offset", func(d *decoder, _ *ArchivedEvent) { d.repeatedUpdateOffset() }),
	must("nodeId", func(d *decoder, e *ArchivedEvent) { e.NodeID = d.nodeID() }),
	must("contractId", func(d *decoder, e *ArchivedEvent) { e.ContractID = d.rareID() }),
	must("templateId", func(d *decoder, e *ArchivedEvent) { e.TemplateID = d.identifier() }),
	must("witnessParties", func(d *decoder, e *ArchivedEvent) { e.WitnessParties = d.partyList() }),
	must("packageName", func(d *decoder, e *ArchivedEvent) { e.PackageName = *d.commonText() }),
	may("implementedInterfaces", func(d *decoder, e *ArchivedEvent) { e.ImplementedInterfaces = d.interfaceList() }),
)
