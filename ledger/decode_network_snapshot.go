package ledger

// NetworkContract is a contract in a snapshot of a network: its id, its stakeholders, and which update created it. All
// else is in that update.
type NetworkContract struct {
	ContractID  string
	CreatedAt   Time
	Signatories []string
	Observers   []string
	UpdateID    string // of the update that created it; empty for one that was created in an earlier migration
}

// NetworkSnapshotPage is an answer of a Scan's POST /v1/state/acs.
type NetworkSnapshotPage struct {
	MigrationID int64
	RecordTime  Time
	Contracts   []NetworkContract
	Next        *int64 // token of the next page; nil: none follows
}

// DecodeNetworkSnapshot decodes an answer of a Scan's POST /v1/state/acs (interface.md, "Updates of a network"). All
// errors are *DecodeError.
func DecodeNetworkSnapshot(body []byte) (NetworkSnapshotPage, error) {
	return decodeNetworkContracts(body, networkSnapshotMembers)
}

func decodeNetworkContracts(body []byte, members *known[NetworkSnapshotPage]) (NetworkSnapshotPage, error) {
	form := answer{levels: 2, list: "created_events", plain: true}
	return decode(body, form, func(d *decoder) (page NetworkSnapshotPage) {
		members.read(d, &page)
		return page
	})
}

// DecodeNetworkContracts decodes contracts of a snapshot that a Scan service keeps in files: an object that has them as
// its list created_events. All errors are *DecodeError.
func DecodeNetworkContracts(body []byte) ([]NetworkContract, error) {
	page, err := decodeNetworkContracts(body, networkContractsMembers)
	return page.Contracts, err
}

var networkContractsMembers = membersOf(
	must("created_events", readNetworkContracts),
).withoutUnknown()

func readNetworkContracts(d *decoder, p *NetworkSnapshotPage) {
	for next := d.begin(); next && !d.refused; next = d.more() {
		if len(p.Contracts) == mostElements {
			d.refuse(errTooMany)
			return
		}
		p.Contracts = append(p.Contracts, NetworkContract{})
		networkContractMembers.read(d, &p.Contracts[len(p.Contracts)-1])
	}
}

var networkSnapshotMembers = membersOf(
	must("migration_id", func(d *decoder, p *NetworkSnapshotPage) { p.MigrationID = d.int64() }),
	must("record_time", func(d *decoder, p *NetworkSnapshotPage) { p.RecordTime = d.time() }),
	must("created_events", readNetworkContracts),
	may("next_page_token", func(d *decoder, p *NetworkSnapshotPage) { p.Next = d.optionalInt64() }),
).withoutUnknown()

var networkContractMembers = membersOf(
	must("contract_id", func(d *decoder, c *NetworkContract) { c.ContractID = d.rareID() }),
	must("created_at", func(d *decoder, c *NetworkContract) { c.CreatedAt = d.time() }),
	must("signatories", func(d *decoder, c *NetworkContract) { c.Signatories = d.partyList() }),
	must("observers", func(d *decoder, c *NetworkContract) { c.Observers = d.partyList() }),
	may("created_in_update_id", func(d *decoder, c *NetworkContract) { c.UpdateID = d.rareID() }),
).withoutUnknown()
