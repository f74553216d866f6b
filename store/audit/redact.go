package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/redacted"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// PlanRedaction reports what a redaction would erase, without changing anything. For something unknown or active the
// error is a *ledger.Problem.
func (s *Stored) PlanRedaction(ctx context.Context, what Redaction) (report RedactionReport, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		t, err := s.findTargets(ctx, tx, what)
		if err != nil {
			return err
		}
		report = t.report
		for _, table := range redactable() {
			var rows int64
			if err := tx.QueryRow(ctx, "SELECT count(*) FROM "+table.Name+" s WHERE "+t.where(&table),
				t.args).Scan(&rows); err != nil {
				return fmt.Errorf("count what is to be erased from %s: %w", table.Name, err)
			}
			report.add(table.Name, rows)
		}
		return nil
	})
	return report, err
}

// Redact erases the content of a contract, or of an update and the contracts that it created, wherever it is stored,
// and notes that it must not come back, in one transaction that excludes all writers. The seals of the windows that
// have some of it go: they are compared and sealed again. The terms of all other leaders end, because they may remember
// erased content. At last it frees the space of the erased row versions.
//
// Errors: those of PlanRedaction, a *ledger.Problem where another process prunes for long,
// store.ErrNotLeader, or the database's. After an error the repairer is closed, because what it may write depends on
// whether the redaction was made, which is unknown only after an error of the commit.
func (r *Repairer) Redact(ctx context.Context, what Redaction, reason string) (RedactionReport, error) {
	report, err := r.redactAll(ctx, what, reason)
	if pg.HasCode(err, pg.LockNotAvailable) {
		err = &ledger.Problem{
			What: "another process has a transaction open that writes this database for long: it indexes, prunes or repairs",
			Do:   "redact again when it is done", Err: err,
		}
	}
	if err != nil {
		r.Close()
		return RedactionReport{}, fmt.Errorf("redact %s: %w", what, session.Refused(err))
	}
	return report, nil
}

func (r *Repairer) redactAll(ctx context.Context, what Redaction, reason string) (RedactionReport, error) {
	var t *redactionTargets
	err := r.stored.db.ReadOnly(ctx, func(tx pgx.Tx) (err error) { // what is refused excludes nobody
		t, err = r.stored.findTargets(ctx, tx, what)
		return err
	})
	if err != nil {
		return RedactionReport{}, err
	}
	err = r.repair(ctx, leasesThatRemember, func(ctx context.Context, tx pgx.Tx) (err error) {
		if t, err = r.stored.findTargets(ctx, tx, what); err != nil {
			return err
		}
		return r.redact(ctx, tx, t, what, reason)
	})
	if err != nil {
		return RedactionReport{}, err
	}
	var updates []string
	if what.UpdateID != "" {
		updates = []string{what.UpdateID}
	}
	r.term.Redacted = r.term.Redacted.With(t.report.Contracts, updates)
	t.report.Vacuumed, t.report.VacuumFailed = r.vacuum(ctx, t.touched)
	return t.report, nil
}

func (r *Repairer) redact(ctx context.Context, tx pgx.Tx, t *redactionTargets, what Redaction, reason string) error {
	at := dbsqlc.RedactionPositionsParams{LedgerOffsets: t.events.offsets, NodeIds: t.events.nodeIDs}
	positions, err := queries.RedactionPositions(ctx, tx, at)
	if err != nil {
		return fmt.Errorf("read what the contracts held: %w", err)
	}
	if err := r.noteRecords(ctx, tx, t); err != nil {
		return err
	}
	if err := writing.DropResync(ctx, tx); err != nil { // it begins again, without what is erased
		return err
	}
	for _, table := range redactable() {
		rows, err := t.erase(ctx, tx, &table)
		if err != nil {
			return fmt.Errorf("erase from %s: %w", table.Name, err)
		}
		t.report.add(table.Name, rows)
	}
	if len(positions) > 0 {
		if err := queries.RedactionHold(ctx, tx, dbsqlc.RedactionHoldParams(at)); err != nil {
			return fmt.Errorf("note what the contracts hold: %w", err)
		}
		gone, err := queries.RedactionLetGo(ctx, tx, positions)
		if err != nil {
			return fmt.Errorf("remove positions that no contract has: %w", err)
		}
		if t.report.add("positions", gone); gone > 0 {
			t.touched = append(t.touched, "positions")
		}
	}
	if err := r.note(ctx, tx, t, what, reason); err != nil {
		return err
	}
	for _, stream := range []string{tables.StreamUpdates, tables.StreamTransactions, tables.StreamSnapshot} {
		if err := r.unseal(ctx, tx, stream, t.changed[stream]); err != nil {
			return err
		}
	}
	return r.term.EndTerms(ctx, tx, leasesThatRemember...)
}

// unseal removes the seals of the windows of a stream in which something was erased, at some places, and notes these
// for readers.
func (r *Repairer) unseal(ctx context.Context, tx pgx.Tx, stream string, places []int64) error {
	at := dbsqlc.RedactionUnsealParams{Stream: stream, Places: places}
	if err := queries.RedactionUnseal(ctx, tx, at); err != nil {
		return fmt.Errorf("remove the seals of what was erased of %s: %w", stream, err)
	}
	for _, place := range places {
		if err := writing.NoteRewrite(ctx, tx, stream, place-1, place, writing.Redacted); err != nil {
			return err
		}
	}
	return nil
}

// note notes what must not come back. What was redacted before keeps its row.
func (r *Repairer) note(ctx context.Context, tx pgx.Tx, t *redactionTargets, what Redaction, reason string) error {
	erased := map[string]int64{}
	for _, rows := range t.report.Rows {
		erased[rows.Relation] = rows.Rows
	}
	counts, err := json.Marshal(erased)
	if err != nil {
		return err
	}
	known := r.term.Redacted
	add := func(kind, id string, ofUpdate *string, erased []byte) error {
		if known.Has(kind, id) {
			return nil
		}
		row := dbsqlc.RedactionAddParams{Kind: kind, ID: id, OfUpdate: ofUpdate, Reason: reason, Erased: erased}
		if err := queries.RedactionAdd(ctx, tx, row); err != nil {
			return fmt.Errorf("note that %s %s was redacted: %w", kind, id, err)
		}
		return nil
	}
	if what.UpdateID == "" {
		return add(redacted.Contract, what.ContractID, nil, counts)
	}
	if err := add(redacted.Update, what.UpdateID, nil, counts); err != nil {
		return err
	}
	for _, id := range t.report.Contracts {
		if err := add(redacted.Contract, id, &what.UpdateID, []byte("{}")); err != nil {
			return err
		}
	}
	return nil
}

// vacuum frees the space of versions of rows that are not seen any more, and renews the planner's statistics, which may
// have values that were erased. The database does both some time by itself, unless rows are locked by old transactions.
func (r *Repairer) vacuum(ctx context.Context, names []string) (done []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, leadership.LongTimeout)
	defer cancel()
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if _, err := r.term.Pool.Exec(ctx, "VACUUM (ANALYZE) "+name); err != nil {
			return done, fmt.Errorf("VACUUM (ANALYZE) %s: %w", name, err)
		}
		done = append(done, name)
	}
	return done, pg.Analyze(ctx, r.term.Pool, r.stored.db.Config.Schemas.Tables, tables.Names(redactable()))
}
