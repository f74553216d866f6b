package ledger

// DecodeContract decodes the JSON object that /v2/contracts/contract-by-id serves (interface.md, endpoint 3). By rule 3
// there, offset, nodeId, createdEventBlob, interfaceViews and acsDelta are not parsed: they may be missing or hold
// anything. The representative package is not read either (rule 1). Unknown members are ignored. All errors are
// *DecodeError. The result shares no memory with body, but it shares texts and lists with earlier results: don't change
// it.
func DecodeContract(body []byte) (Contract, error) {
	return decode(body, answer{plain: true}, func(d *decoder) (contract Contract) {
		lookupMembers.read(d, &contract)
		return contract
	})
}

var lookupMembers = membersOf(
	must("createdEvent", func(d *decoder, c *Contract) { contractMembers.read(d, c) }),
).withoutUnknown()

var contractMembers = membersOf(
	must("contractId", func(d *decoder, c *Contract) { c.ContractID = d.rareID() }),
	must("templateId", func(d *decoder, c *Contract) { c.TemplateID = d.identifier() }),
	may("contractKey", func(d *decoder, c *Contract) { c.ContractKey = d.payload() }),
	may("contractKeyHash", func(d *decoder, c *Contract) { c.ContractKeyHash = d.base64() }),
	may("createArgument", func(d *decoder, c *Contract) { c.Argument = d.payload() }),
	must("witnessParties", func(d *decoder, c *Contract) { c.WitnessParties = d.partyList() }),
	must("signatories", func(d *decoder, c *Contract) { c.Signatories = d.partyList() }),
	may("observers", func(d *decoder, c *Contract) { c.Observers = d.partyList() }),
	must("createdAt", func(d *decoder, c *Contract) { c.CreatedAt = d.time() }),
	must("packageName", func(d *decoder, c *Contract) { c.PackageName = *d.commonText() }),
).withoutUnknown()
