package ledger

// VettedPackages is what a participant has vetted on a synchronizer (interface.md, "VettedPackages"). Members that are
// not known are left out.
type VettedPackages struct {
	ParticipantID  string
	SynchronizerID string
	TopologySerial int32           // of the participant's last vetting transaction on the synchronizer; not negative
	Packages       []VettedPackage // in the server's order; no package id stands twice
}

// VettedPackage is a package that may be used from ValidFrom (inclusive) until ValidUntil (exclusive). A bound that is
// not Valid is none.
type VettedPackage struct {
	PackageID      string
	PackageName    string // empty where the package has not been uploaded to the participant
	PackageVersion string // empty as PackageName
	ValidFrom      Time
	ValidUntil     Time
}
