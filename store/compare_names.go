package store

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/tables"
)

// dictionaries are what table templates, table synchronizers and table template_interfaces say, for reading, and of
// table party_lists what was asked for.
type dictionaries struct {
	queries       *dbsqlc.Queries
	templates     map[names.TemplateKey]dbsqlc.Templates
	synchronizers map[string]int32
	interfaces    map[names.TemplateInterface]struct{}
	names         map[string]map[string]string // per kind of reference, by its number as text
}

// partiesSQL is the list of parties that a number stands for.
func partiesSQL(number string) string {
	return "(SELECT p.parties FROM party_lists p WHERE p.party_list_ref = " + number + ")"
}

func (s *Store) readDictionaries(ctx context.Context, db dbsqlc.DBTX) (*dictionaries, error) {
	templates, err := s.queries.TemplateListWhole(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	synchronizers, err := s.queries.SynchronizerList(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("read synchronizers: %w", err)
	}
	interfaces, err := s.queries.TemplateInterfaceList(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("read the templates' interfaces: %w", err)
	}
	d := &dictionaries{
		queries: s.queries, templates: make(map[names.TemplateKey]dbsqlc.Templates, len(templates)), synchronizers: make(map[string]int32, len(synchronizers)),
		interfaces: names.TemplateInterfaces(interfaces), names: map[string]map[string]string{tables.Template: {}, tables.Synchronizer: {}, tables.PartyList: {}},
	}
	for _, t := range templates {
		key := names.NewTemplateKey(t.TemplateID, t.PackageName, t.RepresentativePackageID)
		d.templates[key] = t
		d.names[tables.Template][number(t.TemplateRef)] = key.String()
	}
	for _, s := range synchronizers {
		d.synchronizers[s.SynchronizerID] = s.SynchronizerRef
		d.names[tables.Synchronizer][number(s.SynchronizerRef)] = s.SynchronizerID
	}
	return d, nil
}

func number(ref int32) string { return strconv.Itoa(int(ref)) }

// resolve gives every name, and every list of parties, its number. What the dictionary lacks gets a number that no row can
// have: the rows that should refer to it will differ.
func (d *dictionaries) resolve(ctx context.Context, db dbsqlc.DBTX, wanted names.Wanted) (names.Numbers, error) {
	numbers := names.Numbers{
		Templates: make(map[names.TemplateKey]int32, len(wanted.Templates)), Synchronizers: make(map[string]int32, len(wanted.Synchronizers)),
		Wanted: wanted, Lists: make([]*int32, len(wanted.Lists)),
	}
	next := int32(math.MinInt32)
	unknown := func(kind, name string) int32 {
		next++
		d.names[kind][number(next)] = name
		return next
	}
	for key := range wanted.Templates {
		if t, known := d.templates[key]; known {
			numbers.Templates[key] = t.TemplateRef
		} else {
			numbers.Templates[key] = unknown(tables.Template, key.String())
		}
	}
	for id := range wanted.Synchronizers {
		if ref, known := d.synchronizers[id]; known {
			numbers.Synchronizers[id] = ref
		} else {
			numbers.Synchronizers[id] = unknown(tables.Synchronizer, id)
		}
	}
	missing, err := names.FindLists(ctx, d.queries, db, wanted.Lists, slices.Collect(maps.Keys(wanted.Lists)), numbers.Lists)
	if err != nil {
		return names.Numbers{}, err
	}
	for _, key := range missing {
		list := wanted.Lists[key]
		ref := unknown(tables.PartyList, names.ArrayText(list.Parties))
		numbers.Lists[list.Place] = &ref
	}
	for _, list := range wanted.Lists {
		d.names[tables.PartyList][number(*numbers.Lists[list.Place])] = names.ArrayText(list.Parties)
	}
	return numbers, nil
}

// invented tells whether a number is one that resolve made up. Others that are not positive can only be damage.
func invented(number int32) bool { return number < math.MinInt32/2 }

// check compares what the dictionaries say of the parts of each template's id with the id itself, and looks for the
// interfaces that templates have shown. Templates that are missing differ in the rows that refer to them.
func (d *dictionaries) check(wanted names.Wanted, found func(ledger.Difference) error) error {
	for key := range wanted.Templates {
		stored, known := d.templates[key]
		if !known {
			continue
		}
		id, err := ledger.ParseTemplateID(key.TemplateID)
		if err != nil {
			return err
		}
		for _, part := range []struct{ column, ledger, stored string }{
			{"package_id", id.Package, stored.PackageID}, {"module_name", id.Module, stored.ModuleName}, {"entity_name", id.Entity, stored.EntityName},
		} {
			if part.ledger == part.stored {
				continue
			}
			err := found(ledger.Difference{
				Kind: ledger.Altered, Relation: "templates", Row: "template_ref " + number(stored.TemplateRef),
				Column: part.column, Wanted: &part.ledger, Stored: &part.stored,
			})
			if err != nil {
				return err
			}
		}
	}
	for key := range wanted.Views {
		stored, known := d.templates[key.Template]
		if !known {
			continue
		}
		if _, known := d.interfaces[names.TemplateInterface{TemplateRef: stored.TemplateRef, InterfaceID: key.InterfaceID}]; known {
			continue
		}
		row := "template_ref " + number(stored.TemplateRef) + ", interface_id " + key.InterfaceID
		if err := found(ledger.Difference{Kind: ledger.Missing, Relation: "template_interfaces", Row: row}); err != nil {
			return err
		}
	}
	return nil
}

// name says what a column's value refers to; other columns' values, and NULL, stay as they are.
func (d *dictionaries) name(column string, value *string) *string {
	kind, isRef := tables.References[column]
	if !isRef || value == nil {
		return value
	}
	name, known := d.names[kind][*value]
	if !known {
		if kind == tables.PartyList && strings.ContainsAny(*value, "{[") {
			return value // the list itself: PostgreSQL has looked it up
		}
		name = *value + ", which is not in the dictionary"
	}
	return &name
}
