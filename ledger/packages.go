package ledger

// VettedPackages is what a participant has vetted on a synchronizer (interface.md, "VettedPackages"). Unknown members are left
// out.
type VettedPackages struct {
	ParticipantID  string
	SynchronizerID string
	TopologySerial int32           // of the participant's last vetting transaction on the synchronizer; not negative
	Packages       []VettedPackage // in the server's order, with distinct package ids
}

// VettedPackage is a package that may be used from ValidFrom (inclusive) until ValidUntil (exclusive). A bound that is
// not Valid is none.
type VettedPackage struct {
	PackageID      string
	PackageName    string // empty if the package has not been uploaded to the participant
	PackageVersion string // empty if PackageName is
	ValidFrom      Time
	ValidUntil     Time
}
