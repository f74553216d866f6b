package sandbox

import (
	"maps"
	"slices"
	"strings"
)

// names is what a request's filters are resolved against.
type names struct {
	participant   string
	synchronizers []string
	aliases       []string
	numbers       map[string]uint16 // of parties
	hosted        int               // how many of them the participant hosts: the first ones
	recorded      bool              // a recording: filters match every template, and ids have any form
	packageIDs    bool              // the release accepts package ids in filters
}

func (n *names) compileUpdates(f *updateFormat) (*updateFilter, *cantonError) {
	out := &updateFilter{effects: f.Shape == shapeLedgerEffects, topology: f.Topology, trees: f.Trees}
	var err *cantonError
	if f.Transactions != nil {
		if f.Shape != shapeACSDelta && f.Shape != shapeLedgerEffects {
			return nil, missingField("transaction_shape")
		}
		if out.transactions, err = n.compile(f.Transactions); err != nil {
			return nil, err
		}
	}
	if f.Reassignments != nil {
		if out.reassignments, err = n.compile(f.Reassignments); err != nil {
			return nil, err
		}
	}
	if len(f.TopologyParties) > 0 {
		out.parties = map[string]bool{}
		for _, p := range f.TopologyParties {
			out.parties[p] = true
		}
	}
	return out, nil
}

func (n *names) compile(f *eventFormat) (*eventFilter, *cantonError) {
	if len(f.ByParty) == 0 && f.Any == nil {
		return nil, invalidArgument("filtersByParty and filtersForAnyParty cannot be empty simultaneously")
	}
	if refused := checkParties(slices.Sorted(maps.Keys(f.ByParty))); refused != nil && !n.recorded {
		return nil, refused
	}
	out := &eventFilter{parties: map[uint16]*grants{}}
	if f.Any != nil {
		g, err := n.grants(f.Any)
		if err != nil {
			return nil, err
		}
		out.any = g
	}
	for party, clauses := range f.ByParty {
		g, err := n.grants(clauses)
		if err != nil {
			return nil, err
		}
		if number, ok := n.numbers[party]; ok {
			out.parties[number] = g
		}
	}
	return out, nil
}

func (n *names) grants(clauses []clause) (*grants, *cantonError) {
	var g grants
	for _, c := range clauses {
		if n.recorded || c.Kind == clauseWildcard {
			for k := range g {
				g[k] = g[k].merge(grant{match: true, arguments: true, blob: c.Blob})
				if c.View {
					g[k].views = 1
				}
			}
			continue
		}
		pkg, module, entity, err := n.reference(c.ID)
		if err != nil {
			return nil, err
		}
		if c.Kind == clauseTemplate {
			err = g.addTemplate(c, pkg, module, entity)
		} else {
			err = g.addInterface(c, pkg, module, entity)
		}
		if err != nil {
			return nil, err
		}
	}
	return &g, nil
}

// reference splits "#package-name:Module:Entity" (or a package id instead of the
// name, where the release takes one).
func (n *names) reference(id string) (pkg, module, entity string, err *cantonError) {
	parts := strings.Split(id, ":")
	if len(parts) != 3 {
		return "", "", "", invalidField("identifier", "expected package:module:entity, got %q", id)
	}
	if !strings.HasPrefix(parts[0], "#") && !n.packageIDs {
		return "", "", "", invalidField("packageId", "Expected a package-name in the form #package-name, got %q", parts[0])
	}
	return parts[0], parts[1], parts[2], nil
}

func (g *grants) addTemplate(c clause, pkg, module, entity string) *cantonError {
	name, byName := strings.CutPrefix(pkg, "#")
	known, found := false, false
	for k := range kind(kindCount) {
		if !k.exists() {
			continue
		}
		t := k.template()
		inPackage := byName && t.packageName == name || !byName && k.packageID() == pkg
		known = known || inPackage
		if inPackage && t.module == module && t.entity == entity {
			found = true
			g[k] = g[k].merge(grant{match: true, arguments: true, blob: c.Blob})
		}
	}
	return unknownName(known, found, byName, "TEMPLATES", pkg, module, entity)
}

func (g *grants) addInterface(c clause, pkg, module, entity string) *cantonError {
	name, byName := strings.CutPrefix(pkg, "#")
	known, found := false, false
	for i, d := range interfaces {
		inPackage := byName && d.packageName == name || !byName && d.packageID == pkg
		known = known || inPackage
		if !inPackage || d.module != module || d.entity != entity {
			continue
		}
		found = true
		for k := range kind(kindCount) {
			if k.exists() && k.template().implements(i) {
				add := grant{match: true, blob: c.Blob}
				if c.View {
					add.views = 1 << i
				}
				g[k] = g[k].merge(add)
			}
		}
	}
	return unknownName(known, found, byName, "INTERFACE", pkg, module, entity)
}

func unknownName(known, found, byName bool, what, pkg, module, entity string) *cantonError {
	switch {
	case found:
		return nil
	case !byName:
		return refuse(11, "TEMPLATES_OR_INTERFACES_NOT_FOUND", "Templates or interfaces do not exist: [%s:%s:%s].", pkg,
			module, entity)
	case !known:
		return refuse(11, "PACKAGE_NAMES_NOT_FOUND", "The following package names do not match upgradable packages "+
			"uploaded on this participant: [%s].", pkg[1:])
	}
	return refuse(11, "NO_"+what+"_FOR_PACKAGE_NAME_AND_QUALIFIED_NAME",
		"The following package-name/template qualified-name pairs do not reference any template-id uploaded on this "+
			"participant: [(%s,%s:%s)].", pkg[1:], module, entity)
}
