package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/active"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/writing"
)

// endSQL ends active contracts: it moves each active row to lifetimes. Contracts that were not active are found by NOT
// IN a list of numbers, because a join would be quadratic: neither side has statistics. The statement is not among the
// generated queries, because sqlc does not understand DELETE with USING.
const endSQL = `WITH ended AS MATERIALIZED (
    SELECT unnest($1::integer[]) AS synchronizer_ref, unnest($2::bigint[]) AS deactivated_offset,
        unnest($3::bigint[]) AS lookup_offset, unnest($4::integer[]) AS lookup_node_id,
        unnest($5::text[]) AS contract_id, generate_series(1, cardinality($1::integer[])) AS number
), closed AS (
    DELETE FROM active_contracts a USING ended e
    WHERE a.contract_id = e.contract_id AND a.synchronizer_ref = e.synchronizer_ref
    RETURNING e.number, e.deactivated_offset, a.activated_offset, a.reassignment_counter, a.activated_node_id,
        a.synchronizer_ref, a.template_ref,
        a.contract_id, a.position_id, a.amount, a.locked, a.locked_until, a.stakeholders_ref
), wanted AS (
    INSERT INTO lookups (contract_id, ledger_offset, node_id)
    SELECT e.contract_id, e.lookup_offset, e.lookup_node_id FROM ended e
    WHERE e.lookup_offset > 0 AND e.number NOT IN (SELECT c.number FROM closed c)
    ON CONFLICT DO NOTHING
)
INSERT INTO lifetimes (deactivated_offset, activated_offset, reassignment_counter, activated_node_id, synchronizer_ref,
    template_ref, contract_id, position_id,
    amount, locked, locked_until, stakeholders_ref)
SELECT c.deactivated_offset, c.activated_offset, c.reassignment_counter, c.activated_node_id, c.synchronizer_ref,
    c.template_ref, c.contract_id, c.position_id,
    c.amount, c.locked, c.locked_until, c.stakeholders_ref
FROM closed c`

func (l *UpdatesWriter) project(ctx context.Context, tx pgx.Tx, s *active.Step) error {
	if len(s.References)+len(s.Deactivations)+len(s.Lifetimes)+len(s.Activations) == 0 {
		return nil
	}
	started := time.Now()
	if err := queries.PlanByIndexOnly(ctx, tx); err != nil {
		return fmt.Errorf("have contracts looked up by index: %w", err)
	}
	if err := l.apply(ctx, tx, s); err != nil {
		return err
	}
	l.store.db.Config.Observe(ctx, "project", time.Since(started))
	return nil
}

// apply applies the step. What ends goes before what begins: a contract may leave a synchronizer and come
// back. What was used is compared with what was active before either.
func (l *UpdatesWriter) apply(ctx context.Context, tx pgx.Tx, s *active.Step) error {
	if len(s.References) > 0 {
		err := queries.ActiveContractsUse(ctx, tx, dbsqlc.ActiveContractsUseParams{
			LedgerOffsets: columnOf(s.References, func(u *active.Reference) int64 { return u.Offset }),
			NodeIds:       columnOf(s.References, func(u *active.Reference) int32 { return u.NodeID }),
			ContractIds:   columnOf(s.References, func(u *active.Reference) string { return u.ContractID }),
		})
		if err != nil {
			return fmt.Errorf("ask for %d exercised contracts: %w", len(s.References), err)
		}
	}
	if len(s.Deactivations) > 0 {
		_, err := tx.Exec(ctx, endSQL,
			columnOf(s.Deactivations, func(e *active.Deactivation) int32 { return e.Key.SynchronizerRef }),
			columnOf(s.Deactivations, func(e *active.Deactivation) int64 { return e.DeactivatedOffset }),
			columnOf(s.Deactivations, func(e *active.Deactivation) int64 { return e.LookupOffset }),
			columnOf(s.Deactivations, func(e *active.Deactivation) int32 { return e.LookupNodeID }),
			// the largest is the last one: they go one after the other
			columnOf(s.Deactivations, func(e *active.Deactivation) string { return e.Key.ContractID }))
		if err != nil {
			return fmt.Errorf("deactivate %d contracts: %w", len(s.Deactivations), err)
		}
	}
	if err := writing.CopyRows(ctx, tx, "lifetimes", s.Lifetimes); err != nil {
		return err
	}
	return writing.CopyRows(ctx, tx, "active_contracts", s.Activations)
}

// columnOf returns a column of rows, as statements take it.
func columnOf[R, T any](rows []R, value func(*R) T) []T {
	list := make([]T, len(rows))
	for i := range rows {
		list[i] = value(&rows[i])
	}
	return list
}
