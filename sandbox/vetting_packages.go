package sandbox

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Package is a package that the simulated participant has, or has only heard of.
type Package struct {
	ID, Name, Version string
	// Dependencies are the ids of the packages that it needs directly.
	Dependencies []string
	// Uploaded reports whether the participant has the package. Of one that it does not
	// have it knows nothing but the id, from what others vetted: lists of vetted
	// packages show it without name and version.
	Uploaded bool
	// Utility packages come with the compiler; the rules of upgrades do not apply to
	// them.
	Utility bool
	// Breaks means that the package is no valid upgrade of the version before it.
	Breaks bool
}

// The packages are the same on every ledger, as the templates are. Beside those
// of the templates there is one for every way in which vetting can fail.
var knownPackages = newPackageSet([]Package{
	{ID: packageID("daml-prim-1"), Name: "daml-prim", Version: "3.4.0", Utility: true},
	{ID: packageID("daml-stdlib-1"), Name: "daml-stdlib", Version: "3.4.0", Utility: true,
		Dependencies: packageIDs("daml-prim-1")},
	{ID: packageID("time-types-1"), Name: "daml-stdlib-DA-Time-Types", Version: "1.0.0", Utility: true},
	{ID: packageID("bank-api-1"), Name: "bank-api", Version: "1.0.0", Dependencies: packageIDs("daml-prim-1",
		"daml-stdlib-1")},
	{ID: packageID("trade-api-1"), Name: "trade-api", Version: "1.0.0", Dependencies: packageIDs("daml-prim-1",
		"daml-stdlib-1")},
	{ID: packageID("splice-api-token-holding-v1-1"), Name: "splice-api-token-holding-v1", Version: "1.0.0",
		Dependencies: packageIDs("daml-prim-1", "daml-stdlib-1")},
	{ID: packageID("bank-1"), Name: "bank", Version: "1.9.0", Dependencies: packageIDs("daml-prim-1", "daml-stdlib-1",
		"bank-api-1", "splice-api-token-holding-v1-1")},
	{ID: packageID("bank-2"), Name: "bank", Version: "1.10.0", Dependencies: packageIDs("daml-prim-1", "daml-stdlib-1",
		"bank-api-1", "splice-api-token-holding-v1-1")},
	{ID: packageID("trade-1"), Name: "trade", Version: "1.0.0", Dependencies: packageIDs("daml-prim-1", "time-types-1",
		"trade-api-1")},
	{ID: packageID("trade-2"), Name: "trade", Version: "1.1.0", Dependencies: packageIDs("daml-prim-1", "time-types-1",
		"trade-api-1")},
	{ID: packageID("registry-1"), Name: "registry", Version: "1.0.0", Dependencies: packageIDs("daml-prim-1")},
	{ID: packageID("splice-amulet-1"), Name: "splice-amulet", Version: "0.1.15", Dependencies: packageIDs("daml-prim-1",
		"splice-api-token-holding-v1-1")},
	{ID: packageID("splice-amulet-2"), Name: "splice-amulet", Version: "0.1.16", Dependencies: packageIDs("daml-prim-1",
		"splice-api-token-holding-v1-1")},

	// Utility packages may share name and version.
	{ID: packageID("daml-prim-2"), Name: "daml-prim", Version: "3.4.0", Utility: true},
	// No valid upgrade, and a second package of the same name and version.
	{ID: packageID("bank-3"), Name: "bank", Version: "2.0.0", Breaks: true, Dependencies: packageIDs("daml-prim-1",
		"bank-api-1")},
	{ID: packageID("trade-2-fork"), Name: "trade", Version: "1.1.0", Dependencies: packageIDs("daml-prim-1",
		"trade-api-1")},
	// Uploaded and not vetted, with a dependency of which the same is true.
	{ID: packageID("audit-api-1"), Name: "audit-api", Version: "1.0.0", Dependencies: packageIDs("daml-prim-1")},
	{ID: packageID("audit-1"), Name: "audit", Version: "1.0.0", Dependencies: packageIDs("daml-prim-1", "audit-api-1",
		"bank-api-1")},
	// Uploaded without its dependency.
	{ID: packageID("orphan-1"), Name: "orphan", Version: "0.9.0", Dependencies: packageIDs("daml-prim-1", "lost-1")},
}, packageIDs("lost-1", "foreign-1", "foreign-2"), payloads)

func packageIDs(names ...string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = packageID(name)
	}
	return out
}

// packageSet is what a participant knows of packages. It never changes.
type packageSet struct {
	list     []Package
	uploaded map[string]*Package
	payloads map[string][]byte // by id
}

func newPackageSet(uploaded []Package, others []string, payloads map[string][]byte) *packageSet {
	set := &packageSet{uploaded: map[string]*Package{}, payloads: payloads}
	for i := range uploaded {
		p := &uploaded[i]
		p.Uploaded = true
		set.uploaded[p.ID] = p
	}
	set.list = slices.Clone(uploaded)
	for _, id := range others {
		set.list = append(set.list, Package{ID: id})
	}
	return set
}

// label returns how errors name a package.
func (p *Package) label() string { return p.ID + " (" + p.Name + " v" + p.Version + ")" }

// compareVersions compares versions number by number: 1.10.0 is after 1.9.0.
func compareVersions(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
		n, _ := strconv.Atoi(x)
		m, _ := strconv.Atoi(y)
		return cmp.Compare(n, m)
	})
}

// closure returns the packages and everything that they need, dependencies first,
// and the ids of what is needed and not there.
func (s *packageSet) closure(ids []string) (found []*Package, missing []string) {
	seen := map[string]bool{}
	var visit func(id string)
	visit = func(id string) {
		if seen[id] {
			return
		}
		seen[id] = true
		p := s.uploaded[id]
		if p == nil {
			missing = append(missing, id)
			return
		}
		for _, needed := range p.Dependencies {
			visit(needed)
		}
		found = append(found, p)
	}
	for _, id := range ids {
		visit(id)
	}
	return found, missing
}

// packageRef names packages; an empty part is not given.
type packageRef struct{ id, name, version string }

func (r packageRef) String() string {
	switch {
	case r.id != "" && r.name != "":
		return "All(id = " + r.id + ", name = " + r.name + ", version = " + r.version + ")"
	case r.id != "":
		return "package-id: '" + r.id + "'"
	case r.version != "":
		return "NameAndVersion(name = " + r.name + ", version = " + r.version + ")"
	}
	return "package-name: '" + r.name + "'"
}

// malformed returns what is wrong with a reference itself. An id alone, a name alone, a
// name with a version, and all three are the forms that participants take.
func (r packageRef) malformed() *cantonError {
	switch {
	case r.id != "" && !consistsOf(r.id, "-_ ", 64):
		return malformed("ValueConversionError(package_id,%q is not a package id)", r.id)
	case r.name != "" && !consistsOf(r.name, "-_", 255):
		return malformed("ValueConversionError(package_name,%q is not a package name)", r.name)
	case r.version != "" && !isVersion(r.version):
		return malformed("ValueConversionError(package_version,%q is not a package version)", r.version)
	case r.id == "" && r.name == "", r.id != "" && (r.name == "") != (r.version == ""):
		return malformed("InvariantViolation(Some(package_name),Either package_id must be set, or package_name and " +
			"package_version must be set, or all three must be set.)")
	}
	return nil
}

// matches returns the ids of the uploaded packages that a reference names, or why
// there are none.
func (s *packageSet) matches(r packageRef) (matching []string, reason string) {
	if r.id != "" {
		p := s.uploaded[r.id]
		switch {
		case p == nil:
			return nil, "No packages with package ID " + r.id
		case r.name != "" && (p.Name != r.name || p.Version != r.version):
			return nil, "Package with package ID " + r.id + " has name " + p.Name + " and version " + p.Version +
				", but filter specifies name " + r.name + " and version " + r.version
		}
		return []string{r.id}, ""
	}
	for _, p := range s.list {
		if p.Uploaded && p.Name == r.name && (r.version == "" || p.Version == r.version) {
			matching = append(matching, p.ID)
		}
	}
	switch {
	case len(matching) > 0:
		return matching, ""
	case r.version != "":
		return nil, "No packages with name " + r.name + " have version " + r.version + "."
	}
	return nil, "No packages with name " + r.name
}

func isVersion(s string) bool {
	for _, part := range strings.Split(s, ".") {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil || strconv.FormatUint(n, 10) != part {
			return false
		}
	}
	return true
}

// consistsOf reports whether s is 1 to most letters, digits and others.
func consistsOf(s, others string, most int) bool {
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte(others, c) >= 0:
		default:
			return false
		}
	}
	return s != "" && len(s) <= most
}
