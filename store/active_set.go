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

// activeSet is a table of active contracts.
type activeSet struct {
	table string
	// wants look-ups of contracts that were used and are not active
	use func(context.Context, dbsqlc.DBTX, dbsqlc.ActiveContractsUseParams) error
	// unknown further limits the look-ups of contracts that end and were not active: it begins with AND.
	unknown string
}

func (s *Store) activeContracts() activeSet {
	return activeSet{"active_contracts", s.db.Queries.ActiveContractsUse, ""}
}

// fillActive returns the set that is computed from filled-in history. It wants no look-up of a contract whose creation
// is stored anywhere.
func (s *Store) fillActive() activeSet {
	use := func(ctx context.Context, db dbsqlc.DBTX, used dbsqlc.ActiveContractsUseParams) error {
		return s.db.Queries.FillActiveUse(ctx, db, dbsqlc.FillActiveUseParams(used))
	}
	return activeSet{"fill_active", use, " AND NOT EXISTS (SELECT FROM created c WHERE c.contract_id = e.contract_id)"}
}

// endSQL ends active contracts: it moves each active row to lifetimes. Contracts that were not active are found by NOT
// IN a list of numbers, because a join would be quadratic: neither side has statistics. The statement is not among the
// generated queries, because sqlc does not understand DELETE with USING.
func (set *activeSet) endSQL() string {
	return `WITH ended AS MATERIALIZED (
    SELECT unnest($1::integer[]) AS synchronizer_ref, unnest($2::bigint[]) AS deactivated_offset, unnest($3::bigint[]) AS lookup_offset,
        unnest($4::integer[]) AS lookup_node_id, unnest($5::text[]) AS contract_id, generate_series(1, cardinality($1::integer[])) AS number
), closed AS (
    DELETE FROM ` + set.table + ` a USING ended e
    WHERE a.contract_id = e.contract_id AND a.synchronizer_ref = e.synchronizer_ref
    RETURNING e.number, e.deactivated_offset, a.activated_offset, a.reassignment_counter, a.activated_node_id, a.synchronizer_ref, a.template_ref,
        a.contract_id, a.position_id, a.amount, a.locked, a.locked_until, a.stakeholders_ref
), wanted AS (
    INSERT INTO lookups (contract_id, ledger_offset, node_id)
    SELECT e.contract_id, e.lookup_offset, e.lookup_node_id FROM ended e
    WHERE e.lookup_offset > 0 AND e.number NOT IN (SELECT c.number FROM closed c)` + set.unknown + `
    ON CONFLICT DO NOTHING
)
INSERT INTO lifetimes (deactivated_offset, activated_offset, reassignment_counter, activated_node_id, synchronizer_ref, template_ref, contract_id, position_id,
    amount, locked, locked_until, stakeholders_ref)
SELECT c.deactivated_offset, c.activated_offset, c.reassignment_counter, c.activated_node_id, c.synchronizer_ref, c.template_ref, c.contract_id, c.position_id,
    c.amount, c.locked, c.locked_until, c.stakeholders_ref
FROM closed c`
}

func (l *UpdatesWriter) project(ctx context.Context, tx pgx.Tx, s *active.Step) error {
	if len(s.References)+len(s.Deactivations)+len(s.Lifetimes)+len(s.Activations) == 0 {
		return nil
	}
	started := time.Now()
	if err := l.store.db.Queries.DerivePlainly(ctx, tx); err != nil {
		return fmt.Errorf("have contracts looked up by index: %w", err)
	}
	if err := l.apply(ctx, tx, l.store.activeContracts(), s); err != nil {
		return err
	}
	l.store.db.Config.Observe(ctx, "project", time.Since(started))
	return nil
}

// apply applies the step to a set. What ends goes before what begins: a contract may leave a synchronizer and come
// back. What was used is compared with what was active before either.
func (l *Leader) apply(ctx context.Context, tx pgx.Tx, set activeSet, s *active.Step) error {
	if len(s.References) > 0 {
		err := set.use(ctx, tx, dbsqlc.ActiveContractsUseParams{
			LedgerOffsets: columnOf(s.References, func(u *active.Reference) int64 { return u.Offset }),
			NodeIds:       columnOf(s.References, func(u *active.Reference) int32 { return u.NodeID }),
			ContractIds:   columnOf(s.References, func(u *active.Reference) string { return u.ContractID }),
		})
		if err != nil {
			return fmt.Errorf("ask for %d exercised contracts: %w", len(s.References), err)
		}
	}
	if len(s.Deactivations) > 0 {
		_, err := tx.Exec(ctx, set.endSQL(),
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
	return writing.CopyRows(ctx, tx, set.table, s.Activations)
}

// columnOf returns a column of rows, as statements take it.
func columnOf[R, T any](rows []R, value func(*R) T) []T {
	list := make([]T, len(rows))
	for i := range rows {
		list[i] = value(&rows[i])
	}
	return list
}
