package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// templateKey is what a row of indexer.templates is for.
type templateKey struct {
	templateID        string
	packageName       string
	representative    string // meaningful where hasRepresentative
	hasRepresentative bool
}

func newTemplateKey(templateID, packageName string, representative *string) templateKey {
	key := templateKey{templateID: templateID, packageName: packageName}
	if representative != nil {
		key.representative, key.hasRepresentative = *representative, true
	}
	return key
}

func (k templateKey) compare(other templateKey) int {
	return cmp.Or(cmp.Compare(k.templateID, other.templateID), cmp.Compare(k.packageName, other.packageName),
		cmp.Compare(k.representative, other.representative))
}

// optionalRepresentative is the representative package's id; nil where there is none.
func (k templateKey) optionalRepresentative() *string {
	if !k.hasRepresentative {
		return nil
	}
	return &k.representative
}

// dictionary gives long names, and lists of parties, their numbers, and keeps which templates show which interfaces. Names are added in
// transactions of their own, before the rows that use them: a name that no row uses harms nobody.
type dictionary struct {
	leader *Leader
	lists  *listNumbers

	adding sync.Mutex // held while names are added: those who need known ones only go on

	mu            sync.Mutex
	loaded        bool
	templates     map[templateKey]int32
	synchronizers map[string]int32
	interfaces    map[templateInterface]struct{}
}

// templateInterface is a row of indexer.template_interfaces: a template that has shown a view of an interface.
type templateInterface struct {
	templateRef int32
	interfaceID string
}

func newDictionary(l *Leader) *dictionary {
	return &dictionary{leader: l, lists: &listNumbers{leader: l}}
}

// names collects what a batch needs numbers for, and which of its templates show views of which interfaces.
type names struct {
	templates     map[templateKey]struct{}
	synchronizers map[string]struct{}
	views         map[viewKey]struct{}
	lists         map[listKey]wantedList // of parties
	shared        map[*string]sharedList // where they are in memory, by their first party
}

type viewKey struct {
	template    templateKey
	interfaceID string
}

func newNames() names {
	return names{
		templates: map[templateKey]struct{}{}, synchronizers: map[string]struct{}{}, views: map[viewKey]struct{}{},
		lists: map[listKey]wantedList{}, shared: map[*string]sharedList{},
	}
}

// created collects the names of a creation event.
func (n names) created(c *ledger.CreatedEvent) {
	n.template(c.TemplateID, c.PackageName, c.RepresentativePackageID)
	n.parties(c.Signatories)
	n.parties(c.Observers)
	n.parties(c.WitnessParties)
	for i := range c.InterfaceViews {
		template := newTemplateKey(c.TemplateID, c.PackageName, c.RepresentativePackageID)
		n.views[viewKey{template, c.InterfaceViews[i].InterfaceID}] = struct{}{}
	}
}

func (n names) template(templateID, packageName string, representative *string) {
	n.templates[newTemplateKey(templateID, packageName, representative)] = struct{}{}
}

func (n names) synchronizer(id string) { n.synchronizers[id] = struct{}{} }

// refs answers with numbers for every name that was collected.
type refs struct {
	templates     map[templateKey]int32
	synchronizers map[string]int32
	wanted        names
	lists         []*int32 // of parties, by their places in wanted
}

func (r refs) template(templateID, packageName string, representative *string) int32 {
	return r.templates[newTemplateKey(templateID, packageName, representative)]
}

func (r refs) synchronizer(id string) int32 { return r.synchronizers[id] }

func (r refs) optionalSynchronizer(id *string) *int32 {
	if id == nil {
		return nil
	}
	ref := r.synchronizers[*id]
	return &ref
}

// resolve gives names and lists of parties their numbers, and adds those that are new. It is safe for concurrent use.
func (d *dictionary) resolve(ctx context.Context, wanted names) (refs, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout) // what a batch is made of is not looked for any longer than it is written
	defer cancel()
	numbers, err := d.resolveNames(ctx, wanted)
	if err == nil {
		numbers.wanted = wanted
		numbers.lists, err = d.lists.resolve(ctx, wanted.lists)
	}
	return numbers, err
}

func (d *dictionary) resolveNames(ctx context.Context, wanted names) (refs, error) {
	if found, complete := d.lookUp(wanted); complete {
		return found, nil
	}
	d.adding.Lock()
	defer d.adding.Unlock()
	if err := d.load(ctx, d.leader.pool); err != nil {
		return refs{}, err
	}
	if found, complete := d.lookUp(wanted); complete {
		return found, nil
	}
	err := d.leader.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := d.leader.store.queries.DictionariesLock(ctx, tx); err != nil {
			return fmt.Errorf("lock the dictionaries: %w", err)
		}
		return d.add(ctx, tx, wanted)
	})
	if err != nil {
		return refs{}, err
	}
	if err := d.load(ctx, d.leader.pool); err != nil {
		return refs{}, err
	}
	found, complete := d.lookUp(wanted)
	if !complete {
		return refs{}, fmt.Errorf("the dictionaries lack a name that was just added")
	}
	return found, nil
}

// add gives names numbers, in the order of the names: the same batches make the same dictionaries.
func (d *dictionary) add(ctx context.Context, tx pgx.Tx, wanted names) error {
	for _, key := range slices.SortedFunc(maps.Keys(wanted.templates), templateKey.compare) {
		if _, known := d.templates[key]; known {
			continue
		}
		id, err := ledger.ParseTemplateID(key.templateID)
		if err != nil {
			return err
		}
		row := dbsqlc.TemplateInsertParams{
			TemplateID: key.templateID, PackageID: id.Package, PackageName: key.packageName, ModuleName: id.Module, EntityName: id.Entity,
			RepresentativePackageID: key.optionalRepresentative(),
		}
		if err := d.leader.store.queries.TemplateInsert(ctx, tx, row); err != nil {
			return fmt.Errorf("add template %s: %w", key.templateID, err)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(wanted.synchronizers)) {
		if _, known := d.synchronizers[id]; known {
			continue
		}
		if err := d.leader.store.queries.SynchronizerInsert(ctx, tx, id); err != nil {
			return fmt.Errorf("add synchronizer %s: %w", id, err)
		}
	}
	for key := range wanted.views {
		if d.knowsView(key) {
			continue
		}
		row := dbsqlc.TemplateInterfaceInsertParams{
			InterfaceID: key.interfaceID, TemplateID: key.template.templateID, PackageName: key.template.packageName,
			RepresentativePackageID: key.template.optionalRepresentative(),
		}
		if err := d.leader.store.queries.TemplateInterfaceInsert(ctx, tx, row); err != nil {
			return fmt.Errorf("add interface %s of template %s: %w", key.interfaceID, key.template.templateID, err)
		}
	}
	return nil
}

// knowsView tells whether a template is known to show views of an interface.
func (d *dictionary) knowsView(key viewKey) bool {
	ref, known := d.templates[key.template]
	if known {
		_, known = d.interfaces[templateInterface{ref, key.interfaceID}]
	}
	return known
}

// lookUp answers from memory. complete is false where something is not known there, or nothing is yet.
func (d *dictionary) lookUp(wanted names) (found refs, complete bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.loaded {
		return refs{}, false
	}
	for key := range wanted.templates {
		if _, known := d.templates[key]; !known {
			return refs{}, false
		}
	}
	for id := range wanted.synchronizers {
		if _, known := d.synchronizers[id]; !known {
			return refs{}, false
		}
	}
	for key := range wanted.views {
		if !d.knowsView(key) {
			return refs{}, false
		}
	}
	// load replaces the maps as a whole, so they can be read on without the lock.
	return refs{templates: d.templates, synchronizers: d.synchronizers}, true
}

func (d *dictionary) load(ctx context.Context, db dbsqlc.DBTX) error {
	templates, err := d.leader.store.queries.TemplateList(ctx, db)
	if err != nil {
		return fmt.Errorf("read templates: %w", err)
	}
	synchronizers, err := d.leader.store.queries.SynchronizerList(ctx, db)
	if err != nil {
		return fmt.Errorf("read synchronizers: %w", err)
	}
	interfaces, err := d.leader.store.queries.TemplateInterfaceList(ctx, db)
	if err != nil {
		return fmt.Errorf("read the templates' interfaces: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.templates = make(map[templateKey]int32, len(templates))
	for _, t := range templates {
		d.templates[newTemplateKey(t.TemplateID, t.PackageName, t.RepresentativePackageID)] = t.TemplateRef
	}
	d.synchronizers = make(map[string]int32, len(synchronizers))
	for _, s := range synchronizers {
		d.synchronizers[s.SynchronizerID] = s.SynchronizerRef
	}
	d.interfaces = templateInterfaces(interfaces)
	d.loaded = true
	return nil
}

func templateInterfaces(rows []dbsqlc.IndexerTemplateInterfaces) map[templateInterface]struct{} {
	set := make(map[templateInterface]struct{}, len(rows))
	for _, row := range rows {
		set[templateInterface{row.TemplateRef, row.InterfaceID}] = struct{}{}
	}
	return set
}
