// Package names gives names and lists of parties, which are long and come again and again, their numbers in the dictionaries: for a
// writer, which adds what is new, and for readers.
package names

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

// TemplateKey is what a row of table templates is for.
type TemplateKey struct {
	TemplateID        string
	PackageName       string
	representative    string // meaningful where hasRepresentative
	hasRepresentative bool
}

// NewTemplateKey is the key of a template; representative is nil where there is none.
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

// OptionalRepresentative is the representative package's id; nil where there is none.
func (k TemplateKey) OptionalRepresentative() *string {
	if !k.hasRepresentative {
		return nil
	}
	return &k.representative
}

// String is the key for people.
func (k TemplateKey) String() string {
	text := k.TemplateID + " of " + k.PackageName
	if k.hasRepresentative {
		text += ", represented by " + k.representative
	}
	return text
}

// Dictionary gives long names, and lists of parties, their numbers, and keeps which templates show which interfaces. Names are added in
// transactions of their own, before the rows that use them: a name that no row uses does no harm.
type Dictionary struct {
	queries *dbsqlc.Queries
	db      dbsqlc.DBTX
	write   WriteFunc
	lists   *listNumbers
	held    *positions

	adding sync.Mutex // held while names are added: those who need known ones only continue

	mu            sync.Mutex
	loaded        bool
	templates     map[TemplateKey]int32
	synchronizers map[string]int32
	interfaces    map[TemplateInterface]struct{}
}

// TemplateInterface is a row of table template_interfaces: a template that has shown a view of an interface.
type TemplateInterface struct {
	TemplateRef int32
	InterfaceID string
}

// WriteFunc runs fn in a transaction that commits where fn returns nil.
type WriteFunc func(ctx context.Context, fn func(context.Context, pgx.Tx) error) error

// New is empty; it reads from a database, and adds names in transactions of their own.
func New(queries *dbsqlc.Queries, db dbsqlc.DBTX, write WriteFunc) *Dictionary {
	return &Dictionary{
		queries: queries, db: db, write: write, lists: &listNumbers{queries: queries, db: db, write: write},
		held: &positions{queries: queries, db: db, write: write},
	}
}

// Wanted collects what a batch needs numbers for, which of its templates show views of which interfaces, and what its contracts hold.
type Wanted struct {
	Templates     map[TemplateKey]struct{}
	Synchronizers map[string]struct{}
	Views         map[viewKey]struct{}
	Lists         []List // of parties, by their places
	placesByKey   map[listKey]ListPlace
	places        map[listAddress]ListPlace               // by where lists are in memory
	unions        map[[mostRemembered]ListPlace]ListPlace // of audiences
	creations     map[*ledger.CreatedEvent]creation
	seenBy        map[*ledger.Update][3]ListPlace
	Positions     map[PositionID]Position
}

// creation is what was collected of a creation event.
type creation struct {
	signatories, observers, witnesses, stakeholders, seenBy ListPlace
	holding                                                 *Holding
}

type viewKey struct {
	Template    TemplateKey
	InterfaceID string
}

// wantedPool keeps the room of what was collected for other batches: their maps are as large.
var wantedPool sync.Pool

// mostKeptLists is of how many lists the room is kept. Batches have some thousand.
const mostKeptLists = 10_000

// NewWanted is empty, with the room of that of another batch, if there is any.
func NewWanted() *Wanted {
	if n, ok := wantedPool.Get().(*Wanted); ok {
		return n
	}
	return &Wanted{
		Templates: map[TemplateKey]struct{}{}, Synchronizers: map[string]struct{}{}, Views: map[viewKey]struct{}{},
		placesByKey: map[listKey]ListPlace{}, places: map[listAddress]ListPlace{}, unions: map[[mostRemembered]ListPlace]ListPlace{},
		creations: map[*ledger.CreatedEvent]creation{}, seenBy: map[*ledger.Update][3]ListPlace{}, Positions: map[PositionID]Position{},
	}
}

// Release keeps the room of what was collected for another batch. Neither it nor its numbers may be used any more.
func (n *Wanted) Release() {
	if len(n.Lists) > mostKeptLists {
		return
	}
	clear(n.Lists)
	n.Lists = n.Lists[:0]
	clear(n.Templates)
	clear(n.Synchronizers)
	clear(n.Views)
	clear(n.placesByKey)
	clear(n.places)
	clear(n.unions)
	clear(n.creations)
	clear(n.seenBy)
	clear(n.Positions)
	wantedPool.Put(n)
}

// Created collects the names of a creation event, and what it holds, if anything. It returns who may see the event.
func (n *Wanted) Created(c *ledger.CreatedEvent, holding *Holding) (witnesses, stakeholders ListPlace) {
	n.Template(c.TemplateID, c.PackageName, c.RepresentativePackageID)
	e := creation{
		signatories: n.Parties(c.Signatories), observers: n.Parties(c.Observers), witnesses: n.Parties(c.WitnessParties), holding: holding,
		seenBy: Nobody,
	}
	e.stakeholders = n.Union(Audience{}.With(e.signatories, e.observers))
	if len(c.InterfaceViews) > 0 {
		e.seenBy = n.Union(Audience{}.With(e.witnesses, e.stakeholders))
	}
	for i := range c.InterfaceViews {
		template := NewTemplateKey(c.TemplateID, c.PackageName, c.RepresentativePackageID)
		n.Views[viewKey{template, c.InterfaceViews[i].InterfaceID}] = struct{}{}
	}
	n.creations[c] = e
	return e.witnesses, e.stakeholders
}

// Template collects a template.
func (n *Wanted) Template(templateID, packageName string, representative *string) {
	n.Templates[NewTemplateKey(templateID, packageName, representative)] = struct{}{}
}

// Synchronizer collects a synchronizer.
func (n *Wanted) Synchronizer(id string) { n.Synchronizers[id] = struct{}{} }

// Numbers answers with numbers for every name that was collected.
type Numbers struct {
	Templates     map[TemplateKey]int32
	Synchronizers map[string]int32
	Wanted        *Wanted
	Lists         []*int32 // of parties, by their places in wanted
}

// Template is the number of a template that was collected.
func (r Numbers) Template(templateID, packageName string, representative *string) int32 {
	return r.Templates[NewTemplateKey(templateID, packageName, representative)]
}

// Synchronizer is the number of a synchronizer that was collected.
func (r Numbers) Synchronizer(id string) int32 { return r.Synchronizers[id] }

// OptionalSynchronizer is Synchronizer; nil for nil.
func (r Numbers) OptionalSynchronizer(id *string) *int32 {
	if id == nil {
		return nil
	}
	ref := r.Synchronizers[*id]
	return &ref
}

// CreatedNumbers are the numbers of lists of parties of a creation event, each nil where the list was not served, and what it holds; nil
// where that is nothing.
type CreatedNumbers struct {
	Signatories, Observers, Witnesses *int32
	Stakeholders                      *int32 // the signatories and observers
	SeenBy                            *int32 // the witnesses and stakeholders, of one with interface views
	Holding                           *Holding
}

// Created is what there is of a creation event that was collected.
func (r Numbers) Created(c *ledger.CreatedEvent) CreatedNumbers {
	e, has := r.Wanted.creations[c]
	if !has {
		return CreatedNumbers{}
	}
	return CreatedNumbers{
		Signatories: r.at(e.signatories), Observers: r.at(e.observers), Witnesses: r.at(e.witnesses),
		Stakeholders: r.at(e.stakeholders), SeenBy: r.at(e.seenBy), Holding: e.holding,
	}
}

// Resolve gives names and lists of parties their numbers, and adds those that are new. It is safe for concurrent use.
func (d *Dictionary) Resolve(ctx context.Context, wanted *Wanted) (Numbers, error) {
	numbers, err := d.resolveNames(ctx, wanted)
	if err == nil {
		numbers.Wanted = wanted
		numbers.Lists, err = d.lists.resolve(ctx, wanted.Lists)
	}
	if err == nil {
		err = d.held.add(ctx, numbers)
	}
	return numbers, err
}

func (d *Dictionary) resolveNames(ctx context.Context, wanted *Wanted) (Numbers, error) {
	if found, complete := d.lookUp(wanted); complete {
		return found, nil
	}
	d.adding.Lock()
	defer d.adding.Unlock()
	if err := d.load(ctx, d.db); err != nil {
		return Numbers{}, err
	}
	if found, complete := d.lookUp(wanted); complete {
		return found, nil
	}
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := d.queries.DictionariesLock(ctx, tx); err != nil {
			return fmt.Errorf("lock the dictionaries: %w", err)
		}
		return d.add(ctx, tx, wanted)
	})
	if err != nil {
		return Numbers{}, err
	}
	if err := d.load(ctx, d.db); err != nil {
		return Numbers{}, err
	}
	found, complete := d.lookUp(wanted)
	if !complete {
		return Numbers{}, fmt.Errorf("the dictionaries lack a name that was just added")
	}
	return found, nil
}

// add gives names numbers, in the order of the names: the same batches make the same dictionaries.
func (d *Dictionary) add(ctx context.Context, tx pgx.Tx, wanted *Wanted) error {
	for _, key := range slices.SortedFunc(maps.Keys(wanted.Templates), TemplateKey.compare) {
		if _, known := d.templates[key]; known {
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
			TemplateID: key.TemplateID, PackageID: id.Package, PackageName: key.PackageName, ModuleName: id.Module, EntityName: id.Entity,
			RepresentativePackageID: key.OptionalRepresentative(),
		}
		if err := d.queries.TemplateInsert(ctx, tx, row); err != nil {
			return fmt.Errorf("add template %s: %w", key.TemplateID, err)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(wanted.Synchronizers)) {
		if _, known := d.synchronizers[id]; known {
			continue
		}
		if err := d.queries.SynchronizerInsert(ctx, tx, id); err != nil {
			return fmt.Errorf("add synchronizer %s: %w", id, err)
		}
	}
	for key := range wanted.Views {
		if d.knowsView(key) {
			continue
		}
		row := dbsqlc.TemplateInterfaceInsertParams{
			InterfaceID: key.InterfaceID, TemplateID: key.Template.TemplateID, PackageName: key.Template.PackageName,
			RepresentativePackageID: key.Template.OptionalRepresentative(),
		}
		if err := d.queries.TemplateInterfaceInsert(ctx, tx, row); err != nil {
			return fmt.Errorf("add interface %s of template %s: %w", key.InterfaceID, key.Template.TemplateID, err)
		}
	}
	return nil
}

// knowsView reports whether a template is known to show views of an interface.
func (d *Dictionary) knowsView(key viewKey) bool {
	ref, known := d.templates[key.Template]
	if known {
		_, known = d.interfaces[TemplateInterface{ref, key.InterfaceID}]
	}
	return known
}

// lookUp answers from memory. complete is false where something is not known there, or nothing is yet.
func (d *Dictionary) lookUp(wanted *Wanted) (found Numbers, complete bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.loaded {
		return Numbers{}, false
	}
	for key := range wanted.Templates {
		if _, known := d.templates[key]; !known {
			return Numbers{}, false
		}
	}
	for id := range wanted.Synchronizers {
		if _, known := d.synchronizers[id]; !known {
			return Numbers{}, false
		}
	}
	for key := range wanted.Views {
		if !d.knowsView(key) {
			return Numbers{}, false
		}
	}
	// load replaces the maps as a whole, so they can be read on without the lock.
	return Numbers{Templates: d.templates, Synchronizers: d.synchronizers}, true
}

func (d *Dictionary) load(ctx context.Context, db dbsqlc.DBTX) error {
	templates, err := d.queries.TemplateList(ctx, db)
	if err != nil {
		return fmt.Errorf("read templates: %w", err)
	}
	synchronizers, err := d.queries.SynchronizerList(ctx, db)
	if err != nil {
		return fmt.Errorf("read synchronizers: %w", err)
	}
	interfaces, err := d.queries.TemplateInterfaceList(ctx, db)
	if err != nil {
		return fmt.Errorf("read the templates' interfaces: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.templates = make(map[TemplateKey]int32, len(templates))
	for _, t := range templates {
		d.templates[NewTemplateKey(t.TemplateID, t.PackageName, t.RepresentativePackageID)] = t.TemplateRef
	}
	d.synchronizers = make(map[string]int32, len(synchronizers))
	for _, s := range synchronizers {
		d.synchronizers[s.SynchronizerID] = s.SynchronizerRef
	}
	d.interfaces = TemplateInterfaces(interfaces)
	d.loaded = true
	return nil
}

// TemplateInterfaces are the rows of table template_interfaces as a set.
func TemplateInterfaces(rows []dbsqlc.TemplateInterfaces) map[TemplateInterface]struct{} {
	set := make(map[TemplateInterface]struct{}, len(rows))
	for _, row := range rows {
		set[TemplateInterface{row.TemplateRef, row.InterfaceID}] = struct{}{}
	}
	return set
}
