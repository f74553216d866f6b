package audit

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/tables"
)

// dictionaries has what tables templates, synchronizers and template_interfaces say, for reading, and of table
// party_lists the lists that were asked for.
type dictionaries struct {
	names.Entries
	names map[string]map[string]string // per kind of reference, by its number as text
}

// partiesSQL returns the expression for the list of parties that a number stands for.
func partiesSQL(number string) string {
	return "(SELECT p.parties FROM party_lists p WHERE p.party_list_ref = " + number + ")"
}

// listText returns the expression for the list of parties that a number stands for, as text; for the number, if it is
// not in the dictionary.
func listText(number string) string {
	return fmt.Sprintf("coalesce(%s::text, %s::text)", partiesSQL(number), number)
}

func (s *Stored) readDictionaries(ctx context.Context, db dbsqlc.DBTX) (*dictionaries, error) {
	entries, err := names.ReadEntries(ctx, db)
	if err != nil {
		return nil, err
	}
	d := &dictionaries{entries, map[string]map[string]string{tables.Template: {}, tables.Synchronizer: {},
		tables.PartyList: {}}}
	for key, ref := range d.Templates {
		d.names[tables.Template][number(ref)] = key.String()
	}
	for id, ref := range d.Synchronizers {
		d.names[tables.Synchronizer][number(ref)] = id
	}
	return d, nil
}

// resolve reads the dictionaries, and gives what is wanted its numbers.
func (s *Stored) resolve(ctx context.Context, db dbsqlc.DBTX, wanted *names.References) (*dictionaries, error) {
	dictionaries, err := s.readDictionaries(ctx, db)
	if err != nil {
		return nil, err
	}
	return dictionaries, dictionaries.resolve(ctx, db, wanted)
}

func number(ref int32) string { return strconv.Itoa(int(ref)) }

// resolve gives every name, and every list of parties, its number. What the dictionary lacks gets a number that no row
// can have: the rows that should refer to it will differ.
func (d *dictionaries) resolve(ctx context.Context, db dbsqlc.DBTX, wanted *names.References) error {
	next := int32(math.MinInt32)
	unknown := func(kind, name string) int32 {
		next++
		d.names[kind][number(next)] = name
		return next
	}
	for i, key := range wanted.Templates.Keys {
		ref, known := d.Templates[key]
		if !known {
			ref = unknown(tables.Template, key.String())
		}
		*wanted.Templates.Numbers[i] = ref
	}
	for i, id := range wanted.Synchronizers.Keys {
		ref, known := d.Synchronizers[id]
		if !known {
			ref = unknown(tables.Synchronizer, id)
		}
		*wanted.Synchronizers.Numbers[i] = ref
	}
	missing, err := names.FindLists(ctx, db, wanted.Lists, wanted.Places())
	if err != nil {
		return err
	}
	for _, place := range missing {
		*wanted.Lists[place].Number = unknown(tables.PartyList, names.ArrayText(wanted.Lists[place].Parties))
	}
	for _, list := range wanted.Lists {
		d.names[tables.PartyList][number(*list.Number)] = names.ArrayText(list.Parties)
	}
	return nil
}

// storedView reports whether a template's contracts have views of an interface, among those stored after an offset up
// to another, and in the snapshot.
const storedView = "SELECT EXISTS (SELECT FROM shown_interfaces($1, $2) i WHERE i.template_ref = $3 AND " +
	"i.interface_id = $4)"

// check looks for the interfaces that templates have shown after an offset up to another, or in the snapshot. One that
// is not known is a difference only if such views are stored: else the participant renders them since. Templates that
// are missing differ in the rows that refer to them.
func (d *dictionaries) check(ctx context.Context, tx pgx.Tx, wanted *names.References, from, to ledger.Offset,
	found Found) error {
	for _, view := range wanted.Views {
		ref, known := d.Templates[wanted.Templates.Keys[view.Template]]
		if !known {
			continue
		}
		if _, known := d.Interfaces[names.TemplateInterface{TemplateRef: ref, InterfaceID: view.InterfaceID}]; known {
			continue
		}
		row := "template_ref " + number(ref) + ", interface_id " + view.InterfaceID
		d, stored := Difference{Kind: Missing, Relation: "template_interfaces", Row: row}, false
		if err := tx.QueryRow(ctx, storedView, int64(from), int64(to), ref, view.InterfaceID).Scan(&stored); err != nil {
			return fmt.Errorf("look for the views that are stored: %w", err)
		}
		if !stored {
			d.Rendering = &Rendering{}
		}
		found(d)
	}
	return nil
}

// name returns what a column's value refers to. Other columns' values, and NULL, stay as they are.
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

// reportRows reports how the stored row of a table differs from the wanted one; the one that is nil is not there. of
// names the row.
func (d *dictionaries) reportRows(of Difference, columns []string, wanted, stored []*string, found Found) {
	switch {
	case stored == nil:
		of.Kind = Missing
		found(of)
		return
	case wanted == nil:
		of.Kind = Extra
		found(of)
		return
	}
	of.Kind = Altered
	for i, column := range columns {
		if Quoted(wanted[i]) == Quoted(stored[i]) {
			continue
		}
		of.Column, of.Wanted, of.Stored = column, d.name(column, wanted[i]), d.name(column, stored[i])
		found(of)
	}
}
