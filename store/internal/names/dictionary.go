// Package names gives names and lists of parties, which are long and come again and again, their numbers in the
// dictionaries: for a writer, which adds what is new, and for readers.
package names

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

var queries = dbsqlc.New()

// TemplateKey is what a row of table templates is for.
type TemplateKey struct {
	TemplateID        string
	PackageName       string
	representative    string // meaningful where hasRepresentative
	hasRepresentative bool
}

// NewTemplateKey returns the key of a template; representative is nil where there is none.
func NewTemplateKey(templateID, packageName string, representative *string) TemplateKey {
	key := TemplateKey{TemplateID: templateID, PackageName: packageName}
	if representative != nil {
		key.representative, key.hasRepresentative = *representative, true
	}
	return key
}

func (k TemplateKey) compare(other TemplateKey) int {
	return cmp.Or(cmp.Compare(k.TemplateID, other.TemplateID), cmp.Compare(k.PackageName, other.PackageName),
		cmp.Compare(k.representative, other.representative))
}

// OptionalRepresentative returns the representative package's id; nil where there is none.
func (k TemplateKey) OptionalRepresentative() *string {
	if !k.hasRepresentative {
		return nil
	}
	return &k.representative
}

// String returns the key for people.
func (k TemplateKey) String() string {
	text := k.TemplateID + " of " + k.PackageName
	if k.hasRepresentative {
		text += ", represented by " + k.representative
	}
	return text
}

// Dictionary gives long names, and lists of parties, their numbers, and keeps which templates show which interfaces.
// Names are added in transactions of their own, before the rows that use them: a name that no row uses does no harm.
type Dictionary struct {
	db    dbsqlc.DBTX
	write WriteFunc
	lists *listNumbers
	held  *positions

	adding sync.Mutex // held while names are added; it does not block those who need only known names

	mu     sync.Mutex
	loaded bool
	Entries
}

// Entries are the numbers of templates and synchronizers, and which templates have shown which interfaces.
type Entries struct {
	Templates     map[TemplateKey]int32
	Synchronizers map[string]int32
	Interfaces    map[TemplateInterface]struct{}
}

// TemplateInterface is a row of table template_interfaces: a template that has shown a view of an interface.
type TemplateInterface struct {
	TemplateRef int32
	InterfaceID string
}

// WriteFunc runs fn in a transaction that commits where fn returns nil.
type WriteFunc func(ctx context.Context, fn func(context.Context, pgx.Tx) error) error

// New returns an empty dictionary, which reads from a database, and adds names in transactions of their own.
func New(db dbsqlc.DBTX, write WriteFunc) *Dictionary {
	return &Dictionary{db: db, write: write, lists: &listNumbers{db: db, write: write},
		held: &positions{db: db, write: write}}
}

// Resolve gives names and lists of parties their numbers, and adds those that are new. It is safe for concurrent use.
func (d *Dictionary) Resolve(ctx context.Context, wanted *References) error {
	err := d.resolveNames(ctx, wanted)
	if err == nil {
		err = d.lists.resolve(ctx, wanted.Lists)
	}
	if err == nil {
		err = d.held.add(ctx, wanted)
	}
	return err
}

func (d *Dictionary) resolveNames(ctx context.Context, wanted *References) error {
	if d.lookUp(wanted) {
		return nil
	}
	d.adding.Lock()
	defer d.adding.Unlock()
	if err := d.load(ctx, d.db); err != nil {
		return err
	}
	if d.lookUp(wanted) {
		return nil
	}
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := queries.DictionariesLock(ctx, tx); err != nil {
			return fmt.Errorf("lock the dictionaries: %w", err)
		}
		return d.add(ctx, tx, wanted)
	})
	if err != nil {
		return err
	}
	if err := d.load(ctx, d.db); err != nil {
		return err
	}
	if !d.lookUp(wanted) {
		return fmt.Errorf("the dictionaries lack a name that was just added")
	}
	return nil
}

// add gives names numbers, in the order of the names: the same batches make the same dictionaries.
func (d *Dictionary) add(ctx context.Context, tx pgx.Tx, wanted *References) error {
	for _, key := range slices.SortedFunc(slices.Values(wanted.Templates.Keys), TemplateKey.compare) {
		if _, known := d.Templates[key]; known {
			continue
		}
		var id ledger.TemplateID
		if key.TemplateID != "" { // a network's unassignments do not say of which template the contract is
			var err error
			if id, err = ledger.ParseTemplateID(key.TemplateID); err != nil {
				return err
			}
		}
		row := dbsqlc.TemplateInsertParams{
			TemplateID: key.TemplateID, PackageID: id.Package, PackageName: key.PackageName, ModuleName: id.Module,
			EntityName:              id.Entity,
			RepresentativePackageID: key.OptionalRepresentative(),
		}
		if err := queries.TemplateInsert(ctx, tx, row); err != nil {
			return fmt.Errorf("add template %s: %w", key.TemplateID, err)
		}
	}
	for _, id := range slices.Sorted(slices.Values(wanted.Synchronizers.Keys)) {
		if _, known := d.Synchronizers[id]; known {
			continue
		}
		if err := queries.SynchronizerInsert(ctx, tx, id); err != nil {
			return fmt.Errorf("add synchronizer %s: %w", id, err)
		}
	}
	for _, view := range wanted.Views {
		template := wanted.Templates.Keys[view.Template]
		if d.knowsView(template, view.InterfaceID) {
			continue
		}
		row := dbsqlc.TemplateInterfaceInsertParams{
			InterfaceID: view.InterfaceID, TemplateID: template.TemplateID, PackageName: template.PackageName,
			RepresentativePackageID: template.OptionalRepresentative(),
		}
		if err := queries.TemplateInterfaceInsert(ctx, tx, row); err != nil {
			return fmt.Errorf("add interface %s of template %s: %w", view.InterfaceID, template.TemplateID, err)
		}
	}
	return nil
}

// knowsView reports whether a template is known to show views of an interface.
func (d *Dictionary) knowsView(template TemplateKey, interfaceID string) bool {
	ref, known := d.Templates[template]
	if known {
		_, known = d.Interfaces[TemplateInterface{ref, interfaceID}]
	}
	return known
}

// lookUp answers from memory. complete is false where something is not known there, or nothing is yet.
func (d *Dictionary) lookUp(wanted *References) (complete bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.loaded {
		return false
	}
	for _, view := range wanted.Views {
		if !d.knowsView(wanted.Templates.Keys[view.Template], view.InterfaceID) {
			return false
		}
	}
	return number(&wanted.Templates, d.Templates) && number(&wanted.Synchronizers, d.Synchronizers)
}

// number gives names the numbers that are known. complete is false where one is not.
func number[K comparable](names *Names[K], known map[K]int32) (complete bool) {
	for i, name := range names.Keys {
		if *names.Numbers[i], complete = known[name]; !complete {
			return false
		}
	}
	return true
}

func (d *Dictionary) load(ctx context.Context, db dbsqlc.DBTX) error {
	entries, err := ReadEntries(ctx, db)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Entries, d.loaded = entries, true
	return nil
}

// ReadEntries reads what tables templates, synchronizers and template_interfaces say.
func ReadEntries(ctx context.Context, db dbsqlc.DBTX) (e Entries, err error) {
	templates, err := queries.TemplateList(ctx, db)
	if err != nil {
		return e, fmt.Errorf("read templates: %w", err)
	}
	synchronizers, err := queries.SynchronizerList(ctx, db)
	if err != nil {
		return e, fmt.Errorf("read synchronizers: %w", err)
	}
	interfaces, err := queries.TemplateInterfaceList(ctx, db)
	if err != nil {
		return e, fmt.Errorf("read the templates' interfaces: %w", err)
	}
	e.Templates = make(map[TemplateKey]int32, len(templates))
	for _, t := range templates {
		e.Templates[NewTemplateKey(t.TemplateID, t.PackageName, t.RepresentativePackageID)] = t.TemplateRef
	}
	e.Synchronizers = make(map[string]int32, len(synchronizers))
	for _, s := range synchronizers {
		e.Synchronizers[s.SynchronizerID] = s.SynchronizerRef
	}
	e.Interfaces = make(map[TemplateInterface]struct{}, len(interfaces))
	for _, i := range interfaces {
		e.Interfaces[TemplateInterface{i.TemplateRef, i.InterfaceID}] = struct{}{}
	}
	return e, nil
}
