package sandbox

import (
	"fmt"
	"time"
)

// vettingRequest is the body of a request to change what is vetted.
type vettingRequest struct {
	changes      []vettingChange
	dryRun       bool
	synchronizer string // empty: the only one
	serial       expectedSerial

	allowIncompatible, allowUnvetted bool
}

// vettingChange vets packages within bounds, or unvets them.
type vettingChange struct {
	operation  string // "Vet", "Unvet" or "Empty"
	packages   []packageRef
	validFrom  *time.Time
	validUntil *time.Time
}

// expectedSerial guards against concurrent changes, if it is given at all.
type expectedSerial struct {
	given bool
	prior int32 // 0: there must be none
}

const forceFlagPrefix = "UPDATE_VETTED_PACKAGES_FORCE_FLAG_"

func (d *decoder) vettingRequest(body object) (r vettingRequest) {
	for _, item := range decode[[]object](d, body["changes"], "changes") {
		r.changes = append(r.changes, d.vettingChange(item))
	}
	r.dryRun = decode[bool](d, body["dryRun"], "dryRun")
	r.synchronizer = decode[string](d, body["synchronizerId"], "synchronizerId")
	const serial = "expectedTopologySerial"
	switch name, value := d.variant(d.object(body[serial], serial)["serial"], serial); name {
	case "Empty":
	case "NoPrior":
		r.serial.given = true
	case "Prior":
		r.serial = expectedSerial{given: true, prior: decode[int32](d, d.object(value, serial)["value"],
			serial+".Prior.value")}
		if r.serial.prior == 0 {
			r.serial.prior = -1 // not NoPrior, and refused as all that is not positive
		}
	default:
		d.fail(serial, fmt.Errorf("type %s has no variant", name))
	}
	for _, flag := range decode[[]string](d, body["updateVettedPackagesForceFlags"], "updateVettedPackagesForceFlags") {
		switch flag {
		case forceFlagPrefix + "ALLOW_VET_INCOMPATIBLE_UPGRADES":
			r.allowIncompatible = true
		case forceFlagPrefix + "ALLOW_UNVETTED_DEPENDENCIES":
			r.allowUnvetted = true
		case forceFlagPrefix + "UNSPECIFIED":
		default:
			d.fail("updateVettedPackagesForceFlags", fmt.Errorf("'%s' is not a member of enum UpdateVettedPackagesForceFlag",
				flag))
		}
	}
	return r
}

func (d *decoder) vettingChange(item object) (c vettingChange) {
	const path = "changes.operation"
	name, value := d.variant(item["operation"], path)
	body := d.object(d.object(value, path)["value"], path)
	c.operation = name
	for _, ref := range decode[[]object](d, body["packages"], path+".packages") {
		c.packages = append(c.packages, packageRef{
			id: decode[string](d, ref["packageId"], "packageId"), name: decode[string](d, ref["packageName"], "packageName"),
			version: decode[string](d, ref["packageVersion"], "packageVersion"),
		})
	}
	switch name {
	case "Empty", "Unvet":
	case "Vet":
		c.validFrom = d.instant(body["newValidFromInclusive"], "newValidFromInclusive")
		c.validUntil = d.instant(body["newValidUntilExclusive"], "newValidUntilExclusive")
	default:
		d.fail(path, fmt.Errorf("type %s has no variant", name))
	}
	return c
}

// instant reads a time and cuts it to the microsecond, as the participant does.
func (d *decoder) instant(raw []byte, path string) *time.Time {
	t := decode[*time.Time](d, raw, path)
	if t != nil {
		*t = t.UTC().Truncate(time.Microsecond)
	}
	return t
}

// malformed returns the answer to a request that is JSON of the right types and can't be
// a message for the participant all the same.
func malformed(reason string, args ...any) *cantonError {
	e := refuse(8, "PROTO_DESERIALIZATION_FAILURE", "Deserialization of protobuf message failed")
	return e.with("reason", fmt.Sprintf(reason, args...))
}

// malformed returns what is wrong with the request itself. Real participants take no
// changes at all for a change of nothing; interface.md (endpoint 4) wants some.
func (r *vettingRequest) malformed() *cantonError {
	if len(r.changes) == 0 {
		return malformed("FieldNotSet(changes)")
	}
	for _, c := range r.changes {
		if c.operation == "Empty" {
			return malformed("FieldNotSet(operation)")
		}
		for _, ref := range c.packages {
			if err := ref.malformed(); err != nil {
				return err
			}
		}
		for _, t := range []*time.Time{c.validFrom, c.validUntil} {
			if t != nil && (t.Year() < 1 || t.Year() > 9999) {
				return malformed("TimestampConversionError(%v is out of range)", t)
			}
		}
	}
	if r.synchronizer != "" && !isIdentifier(r.synchronizer) {
		return malformed("ValueConversionError(synchronizer_id,Invalid unique identifier `%s`)", r.synchronizer)
	}
	if r.serial.prior < 0 {
		return malformed("ValueConversionError(expected_topology_serial,the serial must be positive)")
	}
	return nil
}
