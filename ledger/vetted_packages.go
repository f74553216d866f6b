package ledger

// VettedPackages is what a participant has vetted on a synchronizer (interface.md, "VettedPackages"). Unknown members
// are left out.
type VettedPackages struct {
	ParticipantID  string `json:"participant_id"`
	SynchronizerID string `json:"synchronizer_id"`
	// of the participant's last vetting transaction on the synchronizer; not negative
	TopologySerial int32           `json:"topology_serial"`
	Packages       []VettedPackage `json:"packages"` // in the server's order, with distinct package ids
}

// VettedPackage is a package that may be used from ValidFrom (inclusive) until ValidUntil (exclusive). A bound that is
// not Valid is none.
type VettedPackage struct {
	PackageID      string `json:"package_id"`
	PackageName    string `json:"package_name"`    // empty if the package has not been uploaded to the participant
	PackageVersion string `json:"package_version"` // empty if PackageName is
	ValidFrom      Time   `json:"valid_from"`
	ValidUntil     Time   `json:"valid_until"`
}
