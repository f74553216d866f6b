package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// CompareDerived compares the projections with the facts from which they follow, after the floor up to the watermark,
// and looks for facts outside of coverage. It does not ask the ledger. Coverage, floors and watermark must be right:
// call CompareHeld first. It compares
//
//   - facts outside of that range that are not covered, and are of no snapshot;
//   - updates: one is missing if events are stored at an offset of the range, and no update;
//   - active_contracts and lifetimes;
//   - lookups: they have each contract without a known creation that has an event which should have shown it (an
//     archival, or an exercise whose acs_delta is not false); each look-up has such an event at its place, and an
//     outcome that does not contradict itself. A wanted look-up whose creation is known may be there or not: the
//     look-ups' task removes it;
//   - templates, synchronizers and lists of parties: one that rows refer to is missing. The difference has the lowest
//     offset of these rows;
//   - template_interfaces: those that views show. Others do no harm, and may be there for a batch that is about to be
//     written.
//
// found is called for each difference; step, if not nil, with what is compared next. Everything is read in one
// read-only snapshot, with memory that does not grow with what is stored: the server sorts every event once, on its
// disk where they are many.
func (s *Stored) CompareDerived(ctx context.Context, step func(what string), found Found) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		base, err := s.projectionBase(ctx, tx)
		if err != nil || !base.Started {
			return err
		}
		dictionaries, err := s.readDictionaries(ctx, tx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SET LOCAL work_mem = '"+derivedMemory+"'"); err != nil {
			return fmt.Errorf("set the memory for sorting: %w", err)
		}
		c := derivedComparison{tx: tx, base: base, found: found}
		f, err := s.newFollowing(ctx, tx, tables.Projections, base.arguments(), dictionaries)
		if err != nil {
			return err
		}
		parts := []part{{"facts outside of coverage", c.outOfCoverage}, {"events without their update", c.dangling}}
		for _, group := range tables.BySource(tables.Projections) {
			parts = append(parts, part{what(group), func(ctx context.Context) error { return f.compare(ctx, group, found) }})
		}
		return inTurn(ctx, append(parts,
			part{"references to templates, synchronizers and lists of parties",
				func(ctx context.Context) error { return c.references(ctx) }}), step)
	})
}

// derivedMemory limits the memory of a sort or a hash table of a comparison on the server, which then continues on
// disk.
const derivedMemory = "256MB"

type part struct {
	what string
	do   func(context.Context) error
}

// inTurn does one thing after the other. step, if not nil, is called before each.
func inTurn(ctx context.Context, parts []part, step func(what string)) error {
	for _, part := range parts {
		if step != nil {
			step(part.what)
		}
		if err := part.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.what, err)
		}
	}
	return nil
}

// derivedComparison looks for rows that are missing, or one too many, beside others.
type derivedComparison struct {
	tx    pgx.Tx
	base  *projectionBase
	found Found
}

// rows reads rows (relation, offset, row), all of which are missing, or all one too many.
func (c *derivedComparison) rows(ctx context.Context, kind Disagreement, sql string, args ...any) error {
	d := Difference{Kind: kind, Derived: true}
	return pg.Each(ctx, c.tx, sql, args, []any{&d.Relation, &d.Offset, &d.Row}, func() error { c.found(d); return nil })
}

// outOfCoverage looks for facts outside of coverage.
func (c *derivedComparison) outOfCoverage(ctx context.Context) error {
	arguments := c.base.arguments()
	for _, s := range c.base.outOfCoverage() {
		sql := fmt.Sprintf("SELECT '%s', s.ledger_offset, %s FROM %[1]s s WHERE %[3]s", s.table.Name, rowNameSQL(&s.table),
			s.table.Rows(s.where))
		if err := c.rows(ctx, Extra, sql, arguments); err != nil {
			return err
		}
	}
	return nil
}

// rowNameSQL identifies a row s among those at its offset.
func rowNameSQL(table *tables.Table) string {
	var parts []string
	for _, column := range table.Key {
		if column != "ledger_offset" {
			parts = append(parts, fmt.Sprintf("'%[1]s ' || s.%[1]s", column))
		}
	}
	if len(parts) == 0 {
		return "''"
	}
	return "concat_ws(', ', " + strings.Join(parts, ", ") + ")"
}

// dangling looks for offsets that have events and no update.
func (c *derivedComparison) dangling(ctx context.Context) error {
	var events []string
	for _, table := range tables.In(tables.Facts) {
		if table.Name != "updates" {
			events = append(events, "SELECT s.ledger_offset FROM "+table.Name+" s WHERE "+
				table.Rows("s.ledger_offset > $1 AND s.ledger_offset <= $2"))
		}
	}
	return c.rows(ctx, Missing, "SELECT DISTINCT 'updates', e.ledger_offset, '' FROM ("+
		strings.Join(events, " UNION ALL ")+") e WHERE NOT EXISTS (SELECT FROM updates u WHERE u.ledger_offset = "+
		"e.ledger_offset)", int64(c.base.HistoryFloor), int64(c.base.Watermark))
}

// referencesOf asks for all columns of some names.
func referencesOf(names []string) dbsqlc.ReferenceColumnsParams {
	var but []string
	for _, table := range tables.In(tables.Dictionaries) {
		but = append(but, table.Name)
	}
	return dbsqlc.ReferenceColumnsParams{Names: names, But: but}
}

// references looks for numbers that the dictionaries don't have.
func (c *derivedComparison) references(ctx context.Context) error {
	var names []string
	for name := range tables.References {
		if name != "domain_ref" { // of the transaction history
			names = append(names, name)
		}
	}
	columns, err := queries.ReferenceColumns(ctx, c.tx, referencesOf(names))
	if err != nil {
		return fmt.Errorf("look for the columns: %w", err)
	}
	type use struct{ kind, relation, at string }
	uses := map[use][]string{} // the columns: a table is read once for all of a kind
	for _, column := range columns {
		at := "0"
		if column.OffsetColumn != "" {
			at = "s." + column.OffsetColumn
		}
		u := use{tables.References[column.Name], column.Relation, at}
		uses[u] = append(uses[u], "(s."+pgx.Identifier{column.Name}.Sanitize()+")")
	}
	unknown := map[string][]string{}
	for u, list := range uses {
		condition := "r.ref IS NOT NULL"
		if u.kind == tables.Synchronizer && (u.relation == "active_contracts" || u.relation == "lifetimes") {
			condition = "r.ref <> 0" // the update was on none
		}
		unknown[u.kind] = append(unknown[u.kind], fmt.Sprintf(
			`SELECT r.ref, min(%[1]s) AS at FROM %[2]s s CROSS JOIN LATERAL (VALUES %[3]s) r (ref)
WHERE NOT EXISTS (SELECT FROM %[4]ss d WHERE d.%[4]s_ref = r.ref) AND %[5]s GROUP BY 1`,
			u.at, pgx.Identifier{u.relation}.Sanitize(), strings.Join(list, ", "), u.kind, condition))
	}
	for _, kind := range []string{tables.Template, tables.Synchronizer, tables.PartyList} {
		sql := fmt.Sprintf("SELECT '%[1]ss', min(u.at)::bigint, '%[1]s_ref ' || u.ref FROM (%[2]s) u GROUP BY u.ref "+
			"ORDER BY u.ref", kind, strings.Join(unknown[kind], " UNION ALL "))
		if err := c.rows(ctx, Missing, sql); err != nil {
			return err
		}
	}
	return nil
}

// projectionBase is the part of the updates from which the projections follow.
type projectionBase struct {
	bounds.Extent
	snapshot bool // one lies at the floor
}

func (s *Stored) projectionBase(ctx context.Context, tx pgx.Tx) (*projectionBase, error) {
	extent, err := bounds.Read(ctx, tx)
	if err != nil || !extent.Started {
		return &projectionBase{}, err
	}
	snapshot, err := queries.HeldSnapshot(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("read whether there is a snapshot: %w", err)
	}
	return &projectionBase{extent, snapshot}, nil
}

// arguments returns the arguments of the functions that the projections follow from. They use the facts after the
// floor up to the watermark, and return nothing that ended up to the floor.
func (b *projectionBase) arguments() pgx.NamedArgs {
	return pgx.NamedArgs{"floor": int64(b.HistoryFloor), "watermark": int64(b.Watermark)}
}

// chosenRows are rows s of a table, chosen by a condition with the arguments of projectionBase.
type chosenRows struct {
	table tables.Table
	where string
}

// outOfCoverage chooses facts outside of coverage, but for entries of a snapshot, and what a resync took in beyond the
// watermark.
func (b *projectionBase) outOfCoverage() (list []chosenRows) {
	for _, table := range tables.In(tables.Facts, tables.Resynced) {
		if !b.snapshot || table.Family == tables.Facts && table.Snapshot == nil {
			list = append(list, chosenRows{table, "s.ledger_offset <= @floor"})
		}
		beyond := "s.ledger_offset > @watermark"
		if table.Family == tables.Facts {
			beyond += " AND NOT " + bounds.CoveredS
		}
		list = append(list, chosenRows{table, beyond})
	}
	return list
}

// RepairDerived makes what follows from the facts follow from them, and removes facts outside of coverage: all that
// CompareDerived compares. Rows that are right are not touched. An update that is missing beside its events, and a name
// that rows refer to, can't be made right here: writing the updates again does that, and until then they stay. step, if
// not nil, is called with what is done next.
//
// It is one transaction, in which everything is computed again: it takes about as long as comparing does, and the
// writer of the updates waits meanwhile, or fails and tries again.
func (r *Repairer) RepairDerived(ctx context.Context, step func(what string)) error {
	if err := inTurn(ctx, []part{{"partitions of lifetimes", r.ensureLifetimes}}, step); err != nil {
		return fmt.Errorf("repair what follows from the facts: %w", err)
	}
	err := r.repair(ctx, []session.Lease{session.LeasePruning, session.LeaseUpdates},
		func(ctx context.Context, tx pgx.Tx) error { return r.derive(ctx, tx, step) })
	if err != nil {
		return fmt.Errorf("repair what follows from the facts: %w", err)
	}
	return nil
}

// derive computes what follows from the facts again, in a transaction that excludes the writer of the updates.
func (r *Repairer) derive(ctx context.Context, tx pgx.Tx, step func(what string)) error {
	base, err := r.stored.projectionBase(ctx, tx)
	if err != nil || !base.Started {
		return err
	}
	if _, err := tx.Exec(ctx, "SET LOCAL work_mem = '"+derivedMemory+"'"); err != nil {
		return fmt.Errorf("set the memory for sorting: %w", err)
	}
	f, err := r.stored.newFollowing(ctx, tx, tables.Projections, base.arguments(), nil)
	if err != nil {
		return err
	}
	parts := []part{{"facts outside of coverage", func(ctx context.Context) error {
		for _, s := range base.outOfCoverage() {
			if _, err := tx.Exec(ctx, s.table.Delete(s.where), base.arguments()); err != nil {
				return err
			}
		}
		return nil
	}}}
	for _, group := range tables.BySource(tables.Projections) {
		parts = append(parts, part{what(group), func(ctx context.Context) error {
			// a grant adds some, and what it has not committed would be removed as too much
			if group[0].Name == "reader_lists" {
				if err := names.Turn(ctx, tx); err != nil {
					return err
				}
			}
			return f.repair(ctx, group)
		}})
	}
	if err := inTurn(ctx, parts, step); err != nil {
		return err
	}
	return writing.NoteRewrite(ctx, tx, tables.StreamUpdates, 0, int64(base.Watermark), writing.Repaired)
}

// ensureLifetimes attaches the partitions that rows of lifetimes may need. It asks for one offset in each span of a
// smallest partition: all partitions begin and end where these spans do.
func (r *Repairer) ensureLifetimes(ctx context.Context) error {
	events := []string{"SELECT s.ledger_offset FROM resync_deactivations s"} // which end some too
	for _, table := range tables.In(tables.Facts) {
		if table.Activity {
			events = append(events, "SELECT s.ledger_offset FROM "+table.Name+" s")
		}
	}
	sql := "SELECT max(e.ledger_offset) FROM (" + strings.Join(events, " UNION ALL ") + ") e GROUP BY e.ledger_offset / $1"
	offsets, err := pg.Column[int64](ctx, r.term.Pool, sql, r.term.Partitions.Smallest())
	if err != nil {
		return fmt.Errorf("look for the offsets of events: %w", err)
	}
	r.term.Partitions.Forget() // the writer of the updates attaches some too
	return r.term.Partitions.Ensure(ctx, "lifetimes", slices.Values(offsets))
}
