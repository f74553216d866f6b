package ledger

import (
	"errors"
	"fmt"
)

// VettedPackagesPage is a response of /v2/package-vetting/list.
type VettedPackagesPage struct {
	List []VettedPackages // one for each participant and synchronizer
	Next string           // token of the next page; empty where the server gives none
}

// DecodeVettedPackagesPage decodes the JSON object that /v2/package-vetting/list serves. The list must be there: a page
// without one is not taken for the end. Members that are not known are left out. All errors are *DecodeError. What is
// returned shares no memory with body.
func DecodeVettedPackagesPage(body []byte) (VettedPackagesPage, error) {
	var wire struct {
		List []wireVetted `json:"vettedPackages"`
		Next span         `json:"nextPageToken"`
	}
	d := newDecoding(body)
	if err := d.object(&wire); err != nil {
		return VettedPackagesPage{}, err
	}
	o := object{reader: d.reader}
	if wire.List == nil {
		o.fail("vettedPackages", errMissing)
	}
	page := VettedPackagesPage{
		List: make([]VettedPackages, len(wire.List)),
		Next: string(o.text("nextPageToken", o.at(wire.Next))),
	}
	for i := range wire.List {
		vetted, err := d.vetted(&wire.List[i])
		if err != nil {
			o.fail(index("vettedPackages", i), err)
			break
		}
		page.List[i] = vetted
	}
	if o.err != nil {
		return VettedPackagesPage{}, inElement(-1, 0, o.err)
	}
	return page, nil
}

// DecodeVettingUpdate decodes the JSON object that /v2/package-vetting/update serves (interface.md, endpoint 4): what
// was vetted before, nil where nothing ever was, and what is vetted after. Where nothing was, the first may be absent,
// null, or an object in which nothing is populated. Members that are not known are left out. All errors are
// *DecodeError. What is returned shares no memory with body.
func DecodeVettingUpdate(body []byte) (past *VettedPackages, now VettedPackages, err error) {
	var wire struct {
		Past *wireVetted `json:"pastVettedPackages"`
		New  *wireVetted `json:"newVettedPackages"`
	}
	d := newDecoding(body)
	if err := d.object(&wire); err != nil {
		return nil, VettedPackages{}, err
	}
	if wire.New == nil {
		return nil, VettedPackages{}, inElement(-1, 0, below("newVettedPackages", errMissing))
	}
	if now, err = d.vetted(wire.New); err != nil {
		return nil, VettedPackages{}, inElement(-1, 0, below("newVettedPackages", err))
	}
	if wire.Past == nil || wire.Past.empty(d.reader) {
		return nil, now, nil
	}
	before, err := d.vetted(wire.Past)
	if err != nil {
		return nil, VettedPackages{}, inElement(-1, 0, below("pastVettedPackages", err))
	}
	return &before, now, nil
}

type wireVetted struct {
	Packages       []wireVettedPackage `json:"packages"`
	ParticipantID  span                `json:"participantId"`
	SynchronizerID span                `json:"synchronizerId"`
	TopologySerial span                `json:"topologySerial"`
}

type wireVettedPackage struct {
	PackageID      span `json:"packageId"`
	PackageName    span `json:"packageName"`
	PackageVersion span `json:"packageVersion"`
	ValidFrom      span `json:"validFromInclusive"`
	ValidUntil     span `json:"validUntilExclusive"`
}

// empty says whether nothing in the object is populated.
func (w *wireVetted) empty(r *reader) bool {
	for _, s := range []span{w.ParticipantID, w.SynchronizerID, w.TopologySerial} {
		if value := string(r.at(s)); value != "" && value != `""` && value != "0" {
			return false
		}
	}
	return len(w.Packages) == 0
}

func (r *reader) vetted(w *wireVetted) (VettedPackages, error) {
	o := object{reader: r}
	vetted := VettedPackages{
		ParticipantID:  o.sharedID("participantId", w.ParticipantID),
		SynchronizerID: o.sharedID("synchronizerId", w.SynchronizerID),
		TopologySerial: o.int32("topologySerial", w.TopologySerial),
		Packages:       make([]VettedPackage, len(w.Packages)),
	}
	if vetted.TopologySerial < 0 {
		o.fail("topologySerial", fmt.Errorf("is a negative serial: %d", vetted.TopologySerial))
	}
	if w.Packages == nil {
		o.fail("packages", errMissing)
	}
	seen := make(map[string]bool, len(w.Packages))
	for i := range w.Packages {
		item, err := r.vettedPackage(&w.Packages[i])
		if err == nil && seen[item.PackageID] {
			err = below("packageId", errors.New("stands twice in the list"))
		}
		if err != nil {
			o.fail(index("packages", i), err)
			break
		}
		seen[item.PackageID] = true
		vetted.Packages[i] = item
	}
	return vetted, o.err
}

func (r *reader) vettedPackage(w *wireVettedPackage) (VettedPackage, error) {
	o := object{reader: r}
	item := VettedPackage{
		PackageID:      o.sharedID("packageId", w.PackageID),
		PackageName:    *o.name(o.text("packageName", o.at(w.PackageName))),
		PackageVersion: *o.name(o.text("packageVersion", o.at(w.PackageVersion))),
		ValidFrom:      o.optionalTime("validFromInclusive", w.ValidFrom),
		ValidUntil:     o.optionalTime("validUntilExclusive", w.ValidUntil),
	}
	return item, o.err
}

// sharedID reads a required identifier of the sort that comes again and again and is never empty.
func (o *object) sharedID(field string, s span) string {
	id := o.shared(field, s)
	if o.err == nil && id == "" {
		o.fail(field, errors.New("is an empty text"))
	}
	return id
}
