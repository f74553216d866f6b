package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/tables"
)

// UpdateRecord is what is stored of an update.
type UpdateRecord struct {
	bounds.Extent
	Offsets []ledger.Offset // where an update with its id is stored; more than one should not be
	Rows    []UpdateRow     // at these offsets, and at the offset that the ledger has; table by table

	// Where the ledger's update lies outside of what is indexed, it is not compared: Beyond the watermark, or at or
	// Below the history floor.
	Beyond, Below bool
	Differences   []Difference
	Redacted      *RedactedBefore // nil: it was not redacted
}

// UpdateRow is a stored row.
type UpdateRow struct {
	Relation string // a table
	// Columns is an object of the row's columns. Names stand in place of references, as in schema ledger; a binary
	// value is hexadecimal, and one of more than 1 MiB is given by its length and SHA-256.
	Columns ledger.JSON
}

// StoredUpdate returns what is stored of an update, whatever text its id is.
func (s *Stored) StoredUpdate(ctx context.Context, updateID string) (UpdateRecord, error) {
	var r UpdateRecord
	err := s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		if err := s.findUpdate(ctx, tx, updateID, &r); err != nil {
			return err
		}
		return s.readUpdate(ctx, tx, r.Offsets, &r)
	})
	return r, err
}

// CompareUpdate compares what is stored of an update with what the ledger shows, which is nil where it shows none. All
// is read in one snapshot of the database.
func (s *Stored) CompareUpdate(ctx context.Context, updateID string, shown *ledger.Update) (UpdateRecord, error) {
	var r UpdateRecord
	err := s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		if err := s.findUpdate(ctx, tx, updateID, &r); err != nil || !r.Started {
			return err
		}
		offsets := slices.Clone(r.Offsets)
		if shown != nil {
			r.Beyond, r.Below = shown.Offset > r.Watermark, shown.Offset <= r.HistoryFloor
			if !r.Beyond && !r.Below && !slices.Contains(offsets, shown.Offset) {
				offsets = append(offsets, shown.Offset)
			}
		}
		slices.Sort(offsets)
		for _, at := range offsets {
			page := ledger.Page{From: at - 1, To: at}
			if shown != nil && shown.Offset == at {
				page.Updates = []ledger.Update{*shown}
			}
			err := s.compare(ctx, tx, page, func(d Difference) { r.Differences = append(r.Differences, d) })
			if err != nil {
				return err
			}
		}
		return s.readUpdate(ctx, tx, offsets, &r)
	})
	return r, err
}

func (s *Stored) findUpdate(ctx context.Context, tx pgx.Tx, updateID string, r *UpdateRecord) error {
	var err error
	if r.Extent, err = bounds.Read(ctx, tx); err != nil || !r.Started || !rows.TextHolds(updateID) {
		return err
	}
	offsets, err := queries.UpdateOffsets(ctx, tx, &updateID)
	if err != nil {
		return fmt.Errorf("look for an update by its id: %w", err)
	}
	for _, offset := range offsets {
		r.Offsets = append(r.Offsets, ledger.Offset(offset))
	}
	r.Redacted, err = s.redactedBefore(ctx, tx, Redaction{UpdateID: updateID})
	return err
}

func (s *Stored) readUpdate(ctx context.Context, tx pgx.Tx, offsets []ledger.Offset, r *UpdateRecord) error {
	if len(offsets) == 0 {
		return nil
	}
	columns, err := s.factColumns(ctx, tx)
	if err != nil {
		return err
	}
	for _, table := range tables.In(tables.Facts) {
		var selected []string
		for _, c := range columns[table.Name] {
			selected = append(selected, selectNamed(c))
		}
		rows, err := pg.Column[string](ctx, tx, fmt.Sprintf("SELECT row_to_json(r)::text FROM (SELECT %s FROM %s s WHERE "+
			"%s ORDER BY %s) r",
			strings.Join(selected, ", "), table.Name, table.Rows("s.ledger_offset = ANY ($1)"), strings.Join(table.Key, ", ")),
			offsets)
		if err != nil {
			return fmt.Errorf("read the update's rows of %s: %w", table.Name, err)
		}
		for _, row := range rows {
			r.Rows = append(r.Rows, UpdateRow{Relation: table.Name, Columns: ledger.JSON(row)})
		}
	}
	return nil
}

// shownBytes is the length in bytes up to which binary values are shown in full.
const shownBytes = 1 << 20

// selectNamed selects a column of s, or what it refers to.
func selectNamed(c column) string {
	name := "s." + pgx.Identifier{c.name}.Sanitize()
	lookUp := func(dictionary, ref, field, as string) string {
		return fmt.Sprintf("(SELECT d.%s FROM %s d WHERE d.%s = %s) AS %s", field, dictionary, ref, name, as)
	}
	switch kind := tables.References[c.name]; {
	case kind == tables.Template:
		var list []string
		for _, field := range []string{"template_id", "package_name", "representative_package_id"} {
			list = append(list, lookUp("templates", "template_ref", field, field))
		}
		return strings.Join(list, ", ")
	case kind == tables.Synchronizer:
		as := strings.TrimSuffix(c.name, "_ref") + "_synchronizer_id"
		if c.name == "synchronizer_ref" {
			as = "synchronizer_id"
		}
		return lookUp("synchronizers", "synchronizer_ref", "synchronizer_id", as)
	case kind == tables.PartyList:
		return partiesSQL(name) + " AS " + strings.TrimSuffix(c.name, "_ref")
	case c.typeName == "bytea":
		return digestSQL(name, shownBytes) + " AS " + pgx.Identifier{c.name}.Sanitize()
	}
	return name
}
