package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// part is a part of an update: the update itself, an event, or an interface view, from the ledger or from the database.
type part struct {
	Relation string `json:"-"`

	Offset      ledger.Offset `json:"ledger_offset"`
	NodeID      *int32        `json:"node_id"`
	Ordinal     int           `json:"ordinal"`
	Kind        string        `json:"kind"`
	Origin      ledger.Origin `json:"origin"`
	UpdateID    *string       `json:"update_id"`
	ContractID  string        `json:"contract_id"`
	TemplateID  string        `json:"template_id"`
	Choice      string        `json:"choice"`
	Consuming   bool          `json:"consuming"`
	InterfaceID *string       `json:"interface_id"`
	PartyID     *string       `json:"party_id"`
}

// compareParts orders the update itself first, then its events by node id, then parts without one.
func compareParts(a, b part) int {
	node := func(p part) int64 {
		switch {
		case p.Relation == "updates":
			return -1
		case p.NodeID == nil:
			return 1 << 32
		}
		return int64(*p.NodeID)
	}
	return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(node(a), node(b)), cmp.Compare(a.Relation, b.Relation),
		cmp.Compare(a.Ordinal, b.Ordinal))
}

// partsOf splits the ledger's update into parts, as they would be stored.
func partsOf(u *ledger.Update) []part {
	if u == nil {
		return nil
	}
	list := []part{{Relation: "updates", Kind: string(u.Kind), UpdateID: &u.ID}}
	ordinal := 0 // of an unknown element
	for e := range u.All {
		p := part{
			Relation: e.Table(), ContractID: e.Contract(), TemplateID: field[string](e, "TemplateID"),
			NodeID: new(field[int32](e, "NodeID")), Origin: field[ledger.Origin](e, "Origin"),
			Kind: field[string](e, "Kind"), Choice: field[string](e, "Choice"), Consuming: field[bool](e, "Consuming"),
			InterfaceID: field[*string](e, "InterfaceID"), PartyID: field[*string](e, "PartyID"),
		}
		switch e := e.(type) {
		case *ledger.CreatedEvent:
			for i := range e.InterfaceViews {
				list = append(list, part{Relation: "interface_views", NodeID: &e.NodeID, Ordinal: i,
					InterfaceID: &e.InterfaceViews[i].InterfaceID})
			}
		case *ledger.AssignedEvent:
			p.Kind = store.EventAssigned
		case *ledger.UnassignedEvent:
			p.Kind = store.EventUnassigned
		case *ledger.TopologyEvent:
			p.Kind = string(e.Kind)
		case *ledger.UnknownElement:
			p.NodeID, p.Ordinal = e.NodeID, ordinal
			ordinal++
		}
		list = append(list, p)
	}
	for i := range list {
		list[i].Offset = u.Offset
	}
	return list
}

// field returns an element's field of a name, if it has one of the type.
func field[T any](e ledger.Element, name string) (value T) {
	if f := reflect.ValueOf(e).Elem().FieldByName(name); f.IsValid() {
		value, _ = reflect.TypeAssert[T](f)
	}
	return value
}

// parts returns the stored parts.
func (s *updateStored) parts() ([]part, error) {
	var list []part
	for _, row := range s.rows {
		p := part{Relation: row.Relation}
		if err := json.Unmarshal(row.Columns, &p); err != nil {
			return nil, fmt.Errorf("a row of %s: %w", row.Relation, err)
		}
		list = append(list, p)
	}
	return list, nil
}

func (p part) String() string {
	switch p.Relation {
	case "updates":
		return fmt.Sprintf("%s %s", p.Kind, brief(text(p.UpdateID)))
	case "created":
		if p.Origin != ledger.OriginTransaction {
			return fmt.Sprintf("created by %s %s %s", p.Origin, entity(p.TemplateID), brief(p.ContractID))
		}
		return fmt.Sprintf("created %s %s", entity(p.TemplateID), brief(p.ContractID))
	case "exercised":
		verb := "exercised"
		if p.Consuming {
			verb = "exercised, consuming,"
		}
		return fmt.Sprintf("%s %s on %s %s", verb, brief(p.Choice), entity(p.TemplateID), brief(p.ContractID))
	case "interface_views":
		return "view of " + entity(text(p.InterfaceID))
	case "reassignments":
		return fmt.Sprintf("%s %s %s", p.Kind, entity(p.TemplateID), brief(p.ContractID))
	case "topology_events":
		return fmt.Sprintf("party hosting %s: %s", p.Kind, brief(text(p.PartyID)))
	case "unknown_elements":
		return "unknown: " + brief(p.Kind)
	}
	return fmt.Sprintf("%s %s %s", p.Relation, entity(p.TemplateID), brief(p.ContractID))
}

// entity returns an identifier without its package.
func entity(id string) string {
	parsed, err := ledger.ParseTemplateID(id)
	if err != nil {
		return brief(id)
	}
	return brief(parsed.Module + ":" + parsed.Entity)
}

func (r *updateReport) print(out io.Writer) error {
	l := newLabelled(out)
	l.line("update", brief(r.UpdateID))
	if u := r.update; u != nil {
		l.line("ledger", fmt.Sprintf("%s at offset %d", u.Kind, u.Offset))
		for _, field := range []struct {
			label, value string
		}{
			{"synchronizer", text(u.SynchronizerID)}, {"record time", u.RecordTime.String()},
			{"effective at", u.EffectiveAt.String()},
			{"workflow id", text(u.WorkflowID)}, {"command id", text(u.CommandID)},
		} {
			if field.value != "" && field.value != "-" {
				l.line(field.label, brief(field.value))
			}
		}
	} else if r.Ledger.Error != "" {
		l.line("ledger", noAnswer)
	} else {
		l.line("ledger", "does not show it")
	}
	l.line("database", fmt.Sprintf("%s, events after offset %d up to %d", r.Database.Address, r.Database.HistoryFloor,
		r.Database.Watermark))
	l.line("result", r.Explanation)
	if err := l.w.Flush(); err != nil {
		return err
	}
	if err := r.printParts(out); err != nil {
		return err
	}
	return r.printDifferences(out)
}

// printParts prints what the ledger shows beside what is stored.
func (r *updateReport) printParts(out io.Writer) error {
	ofLedger := partsOf(r.update)
	stored, err := r.Database.parts()
	if err != nil || len(ofLedger)+len(stored) == 0 {
		return err
	}
	slices.SortStableFunc(ofLedger, compareParts)
	slices.SortStableFunc(stored, compareParts)
	altered := r.altered()
	fmt.Fprintln(out)
	w := newTable(out, "OFFSET", "NODE", "LEDGER", "STORED")
	for len(ofLedger)+len(stored) > 0 {
		side := 0 // which one is next: the ledger's, the stored one, or both
		switch {
		case len(ofLedger) == 0:
			side = 1
		case len(stored) == 0:
			side = -1
		default:
			side = compareParts(ofLedger[0], stored[0])
		}
		var left, right string
		var of part
		if side >= 0 {
			of, right, stored = stored[0], stored[0].String(), stored[1:]
		}
		if side <= 0 {
			of, left, ofLedger = ofLedger[0], ofLedger[0].String(), ofLedger[1:]
		}
		if left == right {
			right = "the same"
			if altered(of) {
				right = "differs"
			}
		}
		node := ""
		if of.NodeID != nil {
			node = strconv.Itoa(int(*of.NodeID))
		}
		row(w, strconv.FormatInt(int64(of.Offset), 10), node, left, right)
	}
	return w.Flush()
}

type place struct {
	offset   ledger.Offset
	nodeID   int64 // -1: nowhere in particular
	relation string
}

func placeOf(relation string, offset ledger.Offset, nodeID *int32) place {
	at := place{offset, -1, relation}
	if nodeID != nil {
		at.nodeID = int64(*nodeID)
	}
	return at
}

// altered says where something is stored with other values than the ledger shows.
func (r *updateReport) altered() func(part) bool {
	places := map[place]bool{}
	for _, d := range r.Differences {
		places[placeOf(d.Relation, d.Offset, d.NodeID)] = true
	}
	return func(p part) bool {
		return places[placeOf(p.Relation, p.Offset, p.NodeID)]
	}
}

func (r *updateReport) printDifferences(out io.Writer) error {
	if len(r.Differences) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	w := newTable(out, "RELATION", "OFFSET", "ROW", "COLUMN", "LEDGER", "STORED")
	for _, d := range r.Differences {
		left, right := "a row", "a row"
		switch d.Kind {
		case "missing":
			right = "no row"
		case "extra":
			left = "no row"
		default:
			left, right = excerpts(d.Wanted, d.Stored)
		}
		column := d.Column
		if d.Rendering != nil {
			column = strings.TrimSpace(column + " (rendered otherwise)")
		}
		row(w, d.Relation, strconv.FormatInt(int64(d.Offset), 10), d.Row, column, left, right)
		if r := d.Rendering; r != nil && d.Column != audit.PackageColumn {
			left, right = excerpts(r.Ledger, r.Stored)
			row(w, d.Relation, strconv.FormatInt(int64(d.Offset), 10), d.Row, audit.PackageColumn, left, right)
		}
	}
	return w.Flush()
}

// excerpts shortens two values to where they differ.
func excerpts(a, b *string) (string, string) {
	const before, after = 20, 80
	if a == nil || b == nil {
		return excerpt(a, 0, before+after), excerpt(b, 0, before+after)
	}
	same := 0
	for same < min(len(*a), len(*b)) && (*a)[same] == (*b)[same] {
		same++
	}
	return excerpt(a, same-before, same+after), excerpt(b, same-before, same+after)
}

func excerpt(value *string, from, to int) string {
	if value == nil {
		return "NULL"
	}
	from, to = max(0, from), min(len(*value), to)
	cut := `"` + (*value)[from:to] + `"`
	if from > 0 {
		cut = "…" + cut
	}
	if to < len(*value) {
		cut += "…"
	}
	return cut
}
