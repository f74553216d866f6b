package sandbox

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// updateVetting implements POST /v2/package-vetting/update (interface.md, endpoint 4).
func (s *Server) updateVetting(w http.ResponseWriter, r *http.Request) {
	body, ok := s.body(w, r)
	if !ok {
		return
	}
	var d decoder
	req := d.vettingRequest(body)
	if !accepted(w, &d, req.malformed()) {
		return
	}
	synchronizer, refused := s.vettingSynchronizer(req.synchronizer)
	if !accepted(w, &d, refused) {
		return
	}
	v := s.history.vettings()
	past, now, refused := v.update(&req, synchronizer)
	if !accepted(w, &d, refused) {
		return
	}
	var answer struct {
		Past *servedVetting `json:"pastVettedPackages"`
		New  servedVetting  `json:"newVettedPackages"`
	}
	if past.Serial != 0 {
		before := v.served(past)
		answer.Past = &before
	}
	answer.New = v.served(now)
	writeValue(w, answer)
}

// vettingSynchronizer returns the synchronizer that a request means.
func (s *Server) vettingSynchronizer(asked string) (string, *cantonError) {
	connected := s.connected()
	switch {
	case asked != "" && !slices.Contains(connected, asked):
		return "", refuse(9, "PACKAGE_SERVICE_NOT_CONNECTED_TO_SYNCHRONIZER",
			"Cannot upload a dar because the participant is not connected to synchronizer '%s'.", asked).with("synchronizerId",
			asked)
	case asked != "":
		return asked, nil
	case len(connected) == 1:
		return connected[0], nil
	}
	cause := "no synchronizers currently connected"
	if len(connected) > 0 {
		cause = "currently connected synchronizers " + strings.Join(connected, ", ")
	}
	return "", refuse(9, "PACKAGE_SERVICE_CANNOT_AUTODETECT_SYNCHRONIZER", "Cannot autodetect synchronizer: %s", cause).
		with("synchronizers", "List("+strings.Join(connected, ", ")+")")
}

// update changes what the participant has vetted on a synchronizer, or says what a
// dry run would. A past serial of 0 means that nothing had ever been vetted there.
func (v *vettings) update(req *vettingRequest, synchronizer string) (past, now Vetting, refused *cantonError) {
	targets, refused := v.packages.targets(req.changes)
	if refused != nil {
		return past, now, refused
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	past = Vetting{Synchronizer: synchronizer, Participant: v.participant}
	if at, ok := v.find(synchronizer, v.participant); ok {
		past = v.states[at].clone()
	}
	if refused = req.serial.check(past.Serial); refused != nil {
		return past, now, refused
	}
	now = past
	now.Packages = applyTargets(past.Packages, targets)
	if past.Serial != 0 && sameVetted(past.Packages, now.Packages) {
		return past, past, nil // nothing changes, so there is no topology transaction
	}
	now.Serial++
	if refused = v.packages.check(past.Packages, now.Packages, req); refused != nil {
		return past, now, refused
	}
	if !req.dryRun {
		v.set(now.clone())
	}
	return past, now, nil
}

func (e expectedSerial) check(current int32) *cantonError {
	if !e.given || e.prior == current {
		return nil
	}
	option := func(serial int32) string {
		if serial == 0 {
			return "None"
		}
		return fmt.Sprintf("Some(%d)", serial)
	}
	actual, expected := option(current), option(e.prior)
	return refuse(9, "TOPOLOGY_SERIAL_MISMATCH", "The provided serial %s did not match the expected serial %s.", actual,
		expected).
		with("actual", actual).with("expected", expected)
}

// A target is what becomes of a package: vetted as said, or not at all.
type target struct {
	Vetted
	vet bool
}

// targets resolves the changes, in order; the last one of a package counts.
func (s *packageSet) targets(changes []vettingChange) ([]target, *cantonError) {
	var list []target
	for _, c := range changes {
		for _, ref := range c.packages {
			vet := c.operation == "Vet"
			matching, reason := s.matches(ref)
			switch {
			case vet && len(matching) == 0:
				return nil, refuse(11, "UNRESOLVED_VETTING_REFERENCE",
					"The vetted package reference %v does not match any package in the package store. Reason: %s", ref, reason).
					with("reference", ref.String()).with("reason", reason)
			case vet && len(matching) > 1:
				return nil, refuse(9, "AMBIGUOUS_VETTING_REFERENCE",
					"The package reference %v matches multiple packages: [%s]", ref, strings.Join(matching, ", ")).
					with("reference", ref.String()).with("matchingPackages", setText(matching))
			}
			for _, id := range matching {
				list = slices.DeleteFunc(list, func(t target) bool { return t.PackageID == id })
				list = append(list, target{Vetted{id, c.validFrom, c.validUntil}, vet})
			}
		}
	}
	return list, nil
}

// applyTargets returns what is vetted after a change, in the order of before.
func applyTargets(before []Vetted, targets []target) []Vetted {
	after := []Vetted{}
	left := slices.Clone(targets)
	for _, p := range before {
		i := slices.IndexFunc(left, func(t target) bool { return t.PackageID == p.PackageID })
		if i < 0 {
			after = append(after, p)
			continue
		}
		if left[i].vet {
			after = append(after, left[i].Vetted)
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, t := range left {
		if t.vet {
			after = append(after, t.Vetted)
		}
	}
	return after
}

// sameVetted reports whether two states are the same, whatever their order.
func sameVetted(a, b []Vetted) bool {
	same := func(x, y *time.Time) bool { return x == nil && y == nil || x != nil && y != nil && x.Equal(*y) }
	in := func(p Vetted) bool {
		return slices.ContainsFunc(b, func(q Vetted) bool {
			return p.PackageID == q.PackageID && same(p.ValidFrom, q.ValidFrom) && same(p.ValidUntil, q.ValidUntil)
		})
	}
	return len(a) == len(b) && !slices.ContainsFunc(a, func(p Vetted) bool { return !in(p) })
}

// setText writes a set as the participant's errors do.
func setText(ids []string) string { return "Set(" + strings.Join(ids, ", ") + ")" }

// servedVetting is a Vetting as it is served.
type servedVetting struct {
	Packages     []servedPackage `json:"packages"`
	Participant  string          `json:"participantId"`
	Synchronizer string          `json:"synchronizerId"`
	Serial       int32           `json:"topologySerial"`
}

type servedPackage struct {
	ID         string  `json:"packageId"`
	ValidFrom  *string `json:"validFromInclusive"`
	ValidUntil *string `json:"validUntilExclusive"`
	Name       string  `json:"packageName"`
	Version    string  `json:"packageVersion"`
}

func (v *vettings) served(state Vetting) servedVetting {
	out := servedVetting{
		Packages: []servedPackage{}, Participant: state.Participant, Synchronizer: state.Synchronizer, Serial: state.Serial,
	}
	instant := func(t *time.Time) *string {
		if t == nil {
			return nil
		}
		text := string(appendInstant(nil, t.UnixMicro()))
		return &text
	}
	for _, p := range state.Packages {
		s := servedPackage{ID: p.PackageID, ValidFrom: instant(p.ValidFrom), ValidUntil: instant(p.ValidUntil)}
		if known := v.packages.uploaded[p.PackageID]; known != nil {
			s.Name, s.Version = known.Name, known.Version
		}
		out.Packages = append(out.Packages, s)
	}
	return out
}
