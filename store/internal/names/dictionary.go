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
	queries *dbsqlc.Queries
	db      dbsqlc.DBTX
	write   WriteFunc
	lists   *listNumbers
	held    *positions

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
func New(queries *dbsqlc.Queries, db dbsqlc.DBTX, write WriteFunc) *Dictionary {
	return &Dictionary{
		queries: queries, db: db, write: write, lists: &listNumbers{queries: queries, db: db, write: write},
		held: &positions{queries: queries, db: db, write: write},
	}
}

// Wanted collects the names and lists that a batch needs numbers for, which of its templates show views of which
// interfaces, and what its contracts hold.
type Wanted struct {
	Templates     Places[TemplateKey]
	Synchronizers Places[string]
	Views         Places[View]
	Lists         []List // of parties, by their places
	placesByKey   map[listKey]ListPlace
	places        map[listAddress]ListPlace               // by where lists are in memory
	unions        map[[mostRemembered]ListPlace]ListPlace // of audiences
	creations     []creation
	creationsOf   map[*ledger.CreatedEvent]int32 // their places
	seenBy        map[*ledger.Update][3]ListPlace
	Positions     map[PositionID]Position
}

// creation is what was collected of a creation event.
type creation struct {
	template                                                Place
	signatories, observers, witnesses, stakeholders, seenBy ListPlace
	holding                                                 *Holding
}

// View is an interface of which a template shows views.
type View struct {
	Template    Place
	InterfaceID string
}

// wantedPool keeps the memory of written batches for later ones.
var wantedPool sync.Pool

// mostKeptLists is the most lists for which memory is kept. Batches have some thousand.
const mostKeptLists = 10_000

// NewWanted returns an empty Wanted, with the memory of an earlier batch if there is one.
func NewWanted() *Wanted {
	if n, ok := wantedPool.Get().(*Wanted); ok {
		return n
	}
	return &Wanted{
		Templates: newPlaces[TemplateKey](), Synchronizers: newPlaces[string](), Views: newPlaces[View](),
		placesByKey: map[listKey]ListPlace{}, places: map[listAddress]ListPlace{},
		unions:      map[[mostRemembered]ListPlace]ListPlace{},
		creationsOf: map[*ledger.CreatedEvent]int32{}, seenBy: map[*ledger.Update][3]ListPlace{},
		Positions: map[PositionID]Position{},
	}
}

// Release keeps the memory for another batch. Neither n nor its numbers may be used any more.
func (n *Wanted) Release() {
	if len(n.Lists) > mostKeptLists {
		return
	}
	clear(n.Lists)
	n.Lists = n.Lists[:0]
	n.Templates.clear()
	n.Synchronizers.clear()
	n.Views.clear()
	clear(n.placesByKey)
	clear(n.places)
	clear(n.unions)
	clear(n.creations)
	n.creations = n.creations[:0]
	clear(n.creationsOf)
	clear(n.seenBy)
	clear(n.Positions)
	wantedPool.Put(n)
}

// Created collects the names of a creation event, and what it holds, if anything. It returns who may see the event.
func (n *Wanted) Created(c *ledger.CreatedEvent, holding *Holding) (witnesses, stakeholders ListPlace) {
	e := creation{
		template: n.Template(c.TemplateID, c.PackageName, c.RepresentativePackageID), signatories: n.Parties(c.Signatories),
		observers: n.Parties(c.Observers), witnesses: n.Parties(c.WitnessParties), seenBy: Nobody, holding: holding,
	}
	e.stakeholders = n.Union(Audience{}.With(e.signatories, e.observers))
	if len(c.InterfaceViews) > 0 {
		e.seenBy = n.Union(Audience{}.With(e.witnesses, e.stakeholders))
	}
	for i := range c.InterfaceViews {
		id := c.InterfaceViews[i].InterfaceID
		n.Views.add(id, View{e.template, id})
	}
	n.creationsOf[c] = int32(len(n.creations))
	n.creations = append(n.creations, e)
	return e.witnesses, e.stakeholders
}

// Template collects a template.
func (n *Wanted) Template(templateID, packageName string, representative *string) Place {
	return n.Templates.add(templateID, NewTemplateKey(templateID, packageName, representative))
}

// Synchronizer collects a synchronizer.
func (n *Wanted) Synchronizer(id string) { n.Synchronizers.add(id, id) }

// Numbers answers with numbers for every name that was collected.
type Numbers struct {
	Wanted        *Wanted
	Templates     []int32 // by their places in wanted
	Synchronizers []int32
	Lists         []*int32 // of parties
}

// Template returns the number of a template that was collected; 0 for others.
func (r Numbers) Template(templateID, packageName string, representative *string) int32 {
	place, has := r.Wanted.Templates.find(templateID, NewTemplateKey(templateID, packageName, representative))
	if !has {
		return 0
	}
	return r.Templates[place]
}

// Synchronizer returns the number of a synchronizer that was collected; 0 for others.
func (r Numbers) Synchronizer(id string) int32 { return *r.OptionalSynchronizer(&id) }

// OptionalSynchronizer is like Synchronizer; it returns nil for nil.
func (r Numbers) OptionalSynchronizer(id *string) *int32 {
	if id == nil {
		return nil
	}
	place, has := r.Wanted.Synchronizers.find(*id, *id)
	if !has {
		return new(int32)
	}
	return &r.Synchronizers[place]
}

// CreatedNumbers are the numbers of a creation event's template and of its lists of parties, each nil where the list
// was not served, and what it holds; nil where that is nothing.
type CreatedNumbers struct {
	Template                          int32
	Signatories, Observers, Witnesses *int32
	Stakeholders                      *int32 // the signatories and observers
	SeenBy                            *int32 // the witnesses and stakeholders, of one with interface views
	Holding                           *Holding
}

// Created returns what is known of a creation event that was collected.
func (r Numbers) Created(c *ledger.CreatedEvent) CreatedNumbers {
	place, has := r.Wanted.creationsOf[c]
	if !has {
		return CreatedNumbers{}
	}
	e := &r.Wanted.creations[place]
	return CreatedNumbers{
		Template: r.Templates[e.template], Signatories: r.at(e.signatories), Observers: r.at(e.observers),
		Witnesses: r.at(e.witnesses), Stakeholders: r.at(e.stakeholders), SeenBy: r.at(e.seenBy), Holding: e.holding,
	}
}

// Resolve gives names and lists of parties their numbers, and adds those that are new. It is safe for concurrent use.
func (d *Dictionary) Resolve(ctx context.Context, wanted *Wanted) (Numbers, error) {
	numbers, err := d.resolveNames(ctx, wanted)
	if err == nil {
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
		if err := d.queries.TemplateInsert(ctx, tx, row); err != nil {
			return fmt.Errorf("add template %s: %w", key.TemplateID, err)
		}
	}
	for _, id := range slices.Sorted(slices.Values(wanted.Synchronizers.Keys)) {
		if _, known := d.Synchronizers[id]; known {
			continue
		}
		if err := d.queries.SynchronizerInsert(ctx, tx, id); err != nil {
			return fmt.Errorf("add synchronizer %s: %w", id, err)
		}
	}
	for _, view := range wanted.Views.Keys {
		template := wanted.Templates.Keys[view.Template]
		if d.knowsView(template, view.InterfaceID) {
			continue
		}
		row := dbsqlc.TemplateInterfaceInsertParams{
			InterfaceID: view.InterfaceID, TemplateID: template.TemplateID, PackageName: template.PackageName,
			RepresentativePackageID: template.OptionalRepresentative(),
		}
		if err := d.queries.TemplateInterfaceInsert(ctx, tx, row); err != nil {
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
func (d *Dictionary) lookUp(wanted *Wanted) (found Numbers, complete bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.loaded {
		return Numbers{}, false
	}
	for _, view := range wanted.Views.Keys {
		if !d.knowsView(wanted.Templates.Keys[view.Template], view.InterfaceID) {
			return Numbers{}, false
		}
	}
	templates, known := numbersOf(wanted.Templates.Keys, d.Templates)
	synchronizers, alsoKnown := numbersOf(wanted.Synchronizers.Keys, d.Synchronizers)
	return Numbers{Wanted: wanted, Templates: templates, Synchronizers: synchronizers}, known && alsoKnown
}

// numbersOf returns the numbers of names, by their places. complete is false where one is not known.
func numbersOf[K comparable](names []K, known map[K]int32) (numbers []int32, complete bool) {
	numbers = make([]int32, len(names))
	for i, name := range names {
		if numbers[i], complete = known[name]; !complete {
			return nil, false
		}
	}
	return numbers, true
}

func (d *Dictionary) load(ctx context.Context, db dbsqlc.DBTX) error {
	entries, err := ReadEntries(ctx, d.queries, db)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Entries, d.loaded = entries, true
	return nil
}

// ReadEntries reads what tables templates, synchronizers and template_interfaces say.
func ReadEntries(ctx context.Context, q *dbsqlc.Queries, db dbsqlc.DBTX) (e Entries, err error) {
	templates, err := q.TemplateList(ctx, db)
	if err != nil {
		return e, fmt.Errorf("read templates: %w", err)
	}
	synchronizers, err := q.SynchronizerList(ctx, db)
	if err != nil {
		return e, fmt.Errorf("read synchronizers: %w", err)
	}
	interfaces, err := q.TemplateInterfaceList(ctx, db)
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
