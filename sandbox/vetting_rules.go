package sandbox

import (
	"cmp"
	"slices"
)

// check applies the rules of a participant on a synchronizer whose protocol wants
// dependencies to be vetted (34 and below; later ones do not): what is added must be
// there with all that it needs, what is needed must be vetted, and the vetted
// versions of a package must be valid upgrades, each of the one before.
func (s *packageSet) check(before, after []Vetted, req *vettingRequest) *cantonError {
	for _, p := range after {
		if p.ValidFrom != nil && p.ValidUntil != nil && !p.ValidFrom.Before(*p.ValidUntil) {
			return refuse(8, "TOPOLOGY_INVALID_MAPPING",
				"The topology transaction was rejected due to an invalid mapping: packages with empty validity period: %s",
				p.PackageID)
		}
	}
	next, added, removed := compareVetted(before, after)
	needed, missing := s.closure(added)
	if len(missing) > 0 {
		return refuse(11, "TOPOLOGY_CANNOT_VET_DUE_TO_MISSING_PACKAGES",
			"Package vetting failed due to packages not existing on the local node").with("packages", setText(missing))
	}
	if unvetted := s.unvetted(needed, next, removed); len(unvetted) > 0 && !req.allowUnvetted {
		return refuse(9, "TOPOLOGY_DEPENDENCIES_NOT_VETTED",
			"Package vetting failed due to dependencies not being vetted").with("unvetted", setText(unvetted))
	}
	if req.allowIncompatible {
		return nil
	}
	return s.checkUpgrades(needed, next)
}

// compareVetted returns the ids vetted next, those that are new and those that are
// gone.
func compareVetted(before, after []Vetted) (next, added, removed []string) {
	list := func(from []Vetted) (ids []string) {
		for _, p := range from {
			ids = append(ids, p.PackageID)
		}
		return ids
	}
	without := func(ids, others []string) []string {
		return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(others, id) })
	}
	past, next := list(before), list(after)
	return next, without(next, past), without(past, next)
}

// unvetted returns what would be needed and not be vetted: by the packages that are
// added, directly or not, and directly by any other if it is removed now.
func (s *packageSet) unvetted(needed []*Package, next, removed []string) (ids []string) {
	for _, p := range needed {
		if !slices.Contains(next, p.ID) {
			ids = append(ids, p.ID)
		}
	}
	for _, id := range removed {
		if !slices.Contains(ids, id) && slices.ContainsFunc(next, func(of string) bool {
			p := s.uploaded[of]
			return p != nil && slices.Contains(p.Dependencies, id)
		}) {
			ids = append(ids, id)
		}
	}
	return ids
}

// checkUpgrades looks at every vetted version of the packages that a change touches:
// those that are added and those that they need.
func (s *packageSet) checkUpgrades(touched []*Package, next []string) *cantonError {
	var names []string
	for _, p := range touched {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	for _, name := range names {
		var lineage []*Package
		for _, id := range next {
			if p := s.uploaded[id]; p != nil && p.Name == name && !p.Utility {
				lineage = append(lineage, p)
			}
		}
		slices.SortFunc(lineage, func(a, b *Package) int {
			return cmp.Or(compareVersions(a.Version, b.Version), cmp.Compare(a.ID, b.ID))
		})
		if err := checkLineage(lineage); err != nil {
			return err
		}
	}
	return nil
}

func checkLineage(lineage []*Package) *cantonError {
	for i := 1; i < len(lineage); i++ {
		if old, p := lineage[i-1], lineage[i]; old.Version == p.Version {
			return refuse(8, "KNOWN_PACKAGE_VERSION", "Tried to vet two packages with the same name and version: %s and %s.",
				old.label(), p.label()).
				with("firstPackage", old.label()).with("secondPackage", p.label())
		}
	}
	for i := 1; i < len(lineage); i++ {
		if old, p := lineage[i-1], lineage[i]; p.Breaks {
			const reason = "The upgraded template has changed the types of some of its original fields."
			return refuse(8, "NOT_VALID_UPGRADE_PACKAGE",
				"Upgrade checks indicate that %s cannot be an upgrade of %s. Reason: %s", p.label(), old.label(), reason).
				with("oldPackage", old.label()).with("newPackage", p.label()).with("upgradeError", reason)
		}
	}
	return nil
}
