package participant

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// VettingRequest asks to change what this participant has vetted on a synchronizer (interface.md, endpoint 4).
type VettingRequest struct {
	Changes []VettingChange `json:"changes"` // at least one; applied in order
	DryRun  bool            `json:"dryRun"`  // return the result of the changes without applying them
	// SynchronizerID is empty for the only synchronizer that the participant is connected to.
	SynchronizerID string         `json:"synchronizerId,omitzero"`
	ExpectedSerial ExpectedSerial `json:"expectedTopologySerial,omitzero"`
	ForceFlags     []ForceFlag    `json:"updateVettedPackagesForceFlags,omitzero"`
}

// VettingChange is one change: at most one of Vet and Unvet is set. The zero value is the operation Empty of
// interface.md, which changes nothing. Servers of 3.4 to 3.6 refuse it, but accept an Unvet of no packages instead.
type VettingChange struct {
	Vet   *Vet
	Unvet *Unvet
}

// Vet makes packages usable within the bounds, which replace earlier ones. Each reference must name exactly one
// package.
type Vet struct {
	Packages   []PackageRef // at least one
	ValidFrom  *time.Time   // inclusive, in whole microseconds; nil: unbounded
	ValidUntil *time.Time   // exclusive, in whole microseconds, above ValidFrom; nil: unbounded
}

// Unvet makes packages unusable. A reference may name several.
type Unvet struct {
	Packages []PackageRef `json:"packages"`
}

// PackageRef refers to packages by id, by name, by name and version, or by all three.
type PackageRef struct {
	PackageID      string `json:"packageId,omitzero"`
	PackageName    string `json:"packageName,omitzero"`
	PackageVersion string `json:"packageVersion,omitzero"`
}

// ExpectedSerial guards a change against a concurrent one: it is refused unless the last vetting transaction of the
// participant on the synchronizer has the serial. The zero value does not guard.
type ExpectedSerial struct {
	Prior   *int32 // the serial, not negative; servers count from 1
	NoPrior bool   // there must be no vetting transaction
}

// ForceFlag allows a potentially unsafe change.
type ForceFlag string

// The force flags.
const (
	ForceAllowIncompatibleUpgrades ForceFlag = "UPDATE_VETTED_PACKAGES_FORCE_FLAG_ALLOW_VET_INCOMPATIBLE_UPGRADES"
	ForceAllowUnvettedDependencies ForceFlag = "UPDATE_VETTED_PACKAGES_FORCE_FLAG_ALLOW_UNVETTED_DEPENDENCIES"
)

// MarshalJSONTo writes the variant that is set.
func (c VettingChange) MarshalJSONTo(enc *jsontext.Encoder) error {
	switch {
	case c.Vet != nil:
		return writeVariant(enc, "operation", "Vet", c.Vet)
	case c.Unvet != nil:
		return writeVariant(enc, "operation", "Unvet", c.Unvet)
	}
	return writeVariant(enc, "operation", "Empty", nil)
}

// MarshalJSONTo writes the times in the servers' form.
func (v Vet) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, struct {
		Packages   []PackageRef `json:"packages"`
		ValidFrom  string       `json:"newValidFromInclusive,omitzero"`
		ValidUntil string       `json:"newValidUntilExclusive,omitzero"`
	}{v.Packages, instant(v.ValidFrom), instant(v.ValidUntil)})
}

// instant formats a time in UTC and microseconds; nil gives "".
func instant(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.999999Z")
}

// MarshalJSONTo writes the variant that is set.
func (s ExpectedSerial) MarshalJSONTo(enc *jsontext.Encoder) error {
	switch {
	case s.Prior != nil:
		return writeVariant(enc, "serial", "Prior", s.Prior)
	case s.NoPrior:
		return writeVariant(enc, "serial", "NoPrior", nil)
	}
	return writeVariant(enc, "serial", "Empty", nil)
}

// writeVariant writes one of several variants as the API does: {"member":{"variant":{"value":…}}}. value is nil for a
// variant without members.
func writeVariant(enc *jsontext.Encoder, member, variant string, value any) error {
	members := map[string]any{}
	if value != nil {
		members["value"] = value
	}
	return json.MarshalEncode(enc, map[string]map[string]any{member: {variant: members}})
}
