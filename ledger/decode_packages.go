package ledger

import "errors"

// VettedPackagesPage is a response of /v2/package-vetting/list.
type VettedPackagesPage struct {
	List []VettedPackages // one for each participant and synchronizer
	Next string           // token of the next page; empty where the server gives none
}

// DecodeVettedPackagesPage decodes the JSON object that /v2/package-vetting/list serves. The list must be there: a page
// without one is an error, not the end. Unknown members are ignored. All errors are *DecodeError. The result shares no
// memory with body.
func DecodeVettedPackagesPage(body []byte) (VettedPackagesPage, error) {
	return decode(body, answer{plain: true}, func(d *decoder) (page VettedPackagesPage) {
		vettedPageMembers.read(d, &page)
		return page
	})
}

var vettedPageMembers = membersOf(
	must("vettedPackages", func(d *decoder, p *VettedPackagesPage) {
		p.List = []VettedPackages{}
		for next := d.begin(); next && !d.refused; next = d.more() {
			var vetted VettedPackages
			vettedMembers.read(d, &vetted)
			p.List = append(p.List, vetted)
		}
	}),
	may("nextPageToken", func(d *decoder, p *VettedPackagesPage) { p.Next = string(d.chars()) }),
).withoutUnknown()

// DecodeVettingUpdate decodes the JSON object that /v2/package-vetting/update serves (interface.md, endpoint 4): what
// was vetted before and what is vetted after. past is nil if nothing ever was: the member may then be absent, null, or
// an object without content. Unknown members are ignored. All errors are *DecodeError. The results share no memory with
// body.
func DecodeVettingUpdate(body []byte) (past *VettedPackages, now VettedPackages, err error) {
	both, err := decode(body, answer{plain: true}, func(d *decoder) (u vettingUpdate) {
		vettingUpdateMembers.read(d, &u)
		return u
	})
	return both.past, both.now, err
}

type vettingUpdate struct {
	past *VettedPackages
	now  VettedPackages
}

var vettingUpdateMembers = membersOf(
	may("pastVettedPackages", func(d *decoder, u *vettingUpdate) {
		begun := d.mark()
		if unpopulatedMembers.read(d, u); d.refused {
			d.goBack(begun)
			u.past = new(VettedPackages)
			vettedMembers.read(d, u.past)
		}
	}),
	must("newVettedPackages", func(d *decoder, u *vettingUpdate) { vettedMembers.read(d, &u.now) }),
).withoutUnknown()

// unpopulatedMembers accept vetted packages without content, and refuse all others.
var unpopulatedMembers = membersOf(
	may("packages", func(d *decoder, _ *vettingUpdate) {
		if d.begin() {
			d.stop()
		}
	}),
	may("participantId", (*decoder).unpopulated),
	may("synchronizerId", (*decoder).unpopulated),
	may("topologySerial", (*decoder).unpopulated),
).withoutUnknown()

func (d *decoder) unpopulated(*vettingUpdate) {
	if value := string(d.value()); value != `""` && value != "0" {
		d.stop()
	}
}

var vettedMembers = membersOf(
	must("packages", func(d *decoder, v *VettedPackages) {
		v.Packages = []VettedPackage{}
		seen := map[string]bool{}
		for next := d.begin(); next && !d.refused; next = d.more() {
			begun := d.here()
			var p VettedPackage
			packageMembers.read(d, &p)
			if seen[p.PackageID] {
				d.refuseAt(begun, "packageId", errors.New("stands twice in the list"))
			}
			seen[p.PackageID] = true
			v.Packages = append(v.Packages, p)
		}
	}),
	must("participantId", func(d *decoder, v *VettedPackages) { v.ParticipantID = d.commonID() }),
	must("synchronizerId", func(d *decoder, v *VettedPackages) { v.SynchronizerID = d.commonID() }),
	must("topologySerial", func(d *decoder, v *VettedPackages) { v.TopologySerial = d.natural("serial") }),
).withoutUnknown()

var packageMembers = membersOf(
	must("packageId", func(d *decoder, p *VettedPackage) { p.PackageID = d.commonID() }),
	may("validFromInclusive", func(d *decoder, p *VettedPackage) { p.ValidFrom = d.time() }),
	may("validUntilExclusive", func(d *decoder, p *VettedPackage) { p.ValidUntil = d.time() }),
	may("packageName", func(d *decoder, p *VettedPackage) { p.PackageName = *d.commonText() }),
	may("packageVersion", func(d *decoder, p *VettedPackage) { p.PackageVersion = *d.commonText() }),
).withoutUnknown()
