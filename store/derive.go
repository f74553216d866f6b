package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// The SQL here says what follows from the facts and from the carried rows. Comparing reads it, repairing writes it. It is the
// meaning of projectionStep, which works step by step.

// spansSQL is every activation of a contract on a synchronizer, and where it ended; ended is NULL for what is active. A
// step's order is that of node ids, and of kinds where they share one. Contracts that have no synchronizer are on 0. See
// spansArguments.
const spansSQL = `activity AS (
    SELECT c.contract_id, coalesce(c.synchronizer_ref, 0) AS synchronizer_ref, c.ledger_offset, c.node_id, 0 AS kind, c.template_ref,
        c.reassignment_counter, true AS activates
    FROM indexer.carried_created c
    WHERE c.reassignment_counter IS NOT NULL
    UNION ALL
    SELECT c.contract_id, coalesce(c.synchronizer_ref, 0), c.ledger_offset, c.node_id, 1, c.template_ref, coalesce(r.reassignment_counter, 0), true
    FROM indexer.created c
    LEFT JOIN indexer.reassignments r
        ON c.origin = 'assignment' AND r.kind = 'assigned' AND r.ledger_offset = c.ledger_offset AND r.node_id = c.node_id
    WHERE c.ledger_offset > $1 AND c.ledger_offset <= $2 AND (c.origin = 'assignment' OR c.acs_delta IS NOT FALSE)
    UNION ALL
    SELECT a.contract_id, coalesce(a.synchronizer_ref, 0), a.ledger_offset, a.node_id, 2, NULL, NULL, false
    FROM indexer.archived a
    WHERE a.ledger_offset > $1 AND a.ledger_offset <= $2
    UNION ALL
    SELECT e.contract_id, coalesce(e.synchronizer_ref, 0), e.ledger_offset, e.node_id, 3, NULL, NULL, false
    FROM indexer.exercised e
    WHERE e.ledger_offset > $1 AND e.ledger_offset <= $2 AND e.consuming
    UNION ALL
    SELECT r.contract_id, r.source_ref, r.ledger_offset, r.node_id, 4, NULL, NULL, false
    FROM indexer.reassignments r
    WHERE r.ledger_offset > $1 AND r.ledger_offset <= $2 AND r.kind = 'unassigned'
), turns AS (
    SELECT a.*, lead(a.ledger_offset) OVER (
        PARTITION BY a.contract_id COLLATE "C", a.synchronizer_ref ORDER BY a.ledger_offset, a.node_id, a.kind
    ) AS ended
    FROM activity a
), spans AS MATERIALIZED (
    SELECT t.contract_id, t.synchronizer_ref, t.template_ref, t.ledger_offset AS activated_offset, t.node_id AS activated_node_id,
        t.reassignment_counter, t.ended
    FROM turns t
    WHERE t.activates AND (t.ended IS NULL OR t.ended > $3)
)`

// spansArguments are those of spansSQL: facts count after $1 up to $2, and what ended up to $3 does not. Filled history counts
// where it is known what was active at the base: then it is where that came from.
func (a *agreement) spansArguments() []any {
	from := a.base
	if a.stateFloor != nil {
		from = a.floor
	}
	return []any{from, a.watermark, a.base}
}

// beyondSpans is true of a row x of active_contracts or lifetimes of which spansSQL says nothing: the contract was activated in
// history that was filled in and does not reach up to the floor, so that what ended it may be missing. floor is the parameter that
// is the floor.
func beyondSpans(floor string) string {
	return "(x.activated_offset <= " + floor + " AND " + strings.ReplaceAll(coveredX, "x.ledger_offset", "x.activated_offset") + ")"
}

// replayedLifetimes is the offset up to which the activation of a lifetime says that it is being worked out, from the beginning of
// the ledger or from a snapshot on, while it is not known yet what was active at the base: spansSQL says nothing of it.
func (a *agreement) replayedLifetimes() int64 {
	if a.replaying && a.stateFloor == nil {
		return a.base
	}
	return -1
}

// judgedLifetimes is the offset behind which a lifetime has to have ended to be compared. None ended up to the base, unless
// those are being worked out.
func (a *agreement) judgedLifetimes() int64 {
	if a.replaying {
		return a.base
	}
	return -1
}

// asksSQL is every event of a contract whose creation should have been seen, up to $2.
const asksSQL = `asks AS (
    SELECT a.contract_id, a.ledger_offset, a.node_id
    FROM indexer.archived a
    WHERE a.ledger_offset <= $2
    UNION ALL
    SELECT e.contract_id, e.ledger_offset, e.node_id
    FROM indexer.exercised e
    WHERE e.ledger_offset <= $2 AND e.acs_delta IS NOT FALSE
)`

// unansweredSQL is the first such event after $1 of each contract whose creation is nowhere, and that is not in lookups. $1 is the
// base: history that is filled in asks for nothing until it reaches to the beginning of the ledger.
const unansweredSQL = `unanswered AS (
    SELECT DISTINCT ON (k.contract_id COLLATE "C") k.contract_id, k.ledger_offset, k.node_id
    FROM asks k
    WHERE k.ledger_offset > $1
      AND NOT EXISTS (SELECT FROM indexer.created c WHERE c.contract_id = k.contract_id AND c.ledger_offset <= $2)
      AND NOT EXISTS (SELECT FROM indexer.carried_created c WHERE c.contract_id = k.contract_id)
      AND NOT EXISTS (SELECT FROM indexer.lookups l WHERE l.contract_id = k.contract_id)
    ORDER BY k.contract_id COLLATE "C", k.ledger_offset, k.node_id
)`

// misplacedSQL is the look-ups that no event at their place asks for, with what they should be of: the first event of the
// contract that does ask; else the contract that the event at the place asks for and that is not in lookups; else NULL.
const misplacedSQL = `firsts AS (
    SELECT DISTINCT ON (k.contract_id COLLATE "C") k.contract_id, k.ledger_offset, k.node_id
    FROM asks k
    WHERE EXISTS (SELECT FROM indexer.lookups x WHERE x.contract_id = k.contract_id)
    ORDER BY k.contract_id COLLATE "C", k.ledger_offset, k.node_id
), misplaced AS (
    SELECT l.contract_id, l.ledger_offset, l.node_id, coalesce(f.contract_id, h.contract_id) AS wanted_contract,
        coalesce(f.ledger_offset, h.ledger_offset) AS wanted_offset, coalesce(f.node_id, h.node_id) AS wanted_node_id
    FROM indexer.lookups l
    LEFT JOIN firsts f ON f.contract_id = l.contract_id
    LEFT JOIN asks h ON f.contract_id IS NULL AND h.ledger_offset = l.ledger_offset AND h.node_id = l.node_id
        AND h.contract_id IN (SELECT u.contract_id FROM unanswered u)
    WHERE NOT EXISTS (
        SELECT FROM asks k WHERE k.contract_id = l.contract_id AND k.ledger_offset = l.ledger_offset AND k.node_id = l.node_id)
)`

// contradictorySQL is true of a look-up whose outcome is not one that SaveLookups stores.
const contradictorySQL = `CASE l.status
    WHEN 'wanted' THEN l.looked_up_at IS NOT NULL OR l.reason IS NOT NULL
    WHEN 'unusable' THEN l.looked_up_at IS NULL OR l.reason IS NULL
    ELSE l.looked_up_at IS NULL OR l.reason IS NOT NULL
END OR CASE l.status
    WHEN 'found' THEN l.template_ref IS NULL
    ELSE num_nonnulls(l.template_ref, l.created_at, l.payload, l.contract_key, l.contract_key_hash, l.signatories, l.observers, l.witness_parties) > 0
END`

// shownInterfacesSQL is which templates have shown a view of which interface, after the floor ($1) up to the watermark ($2).
const shownInterfacesSQL = `shown AS (
    SELECT DISTINCT c.template_ref, v.interface_id
    FROM indexer.interface_views v
    JOIN indexer.created c ON c.ledger_offset = v.ledger_offset AND c.node_id = v.node_id
    WHERE v.ledger_offset > $1 AND v.ledger_offset <= $2 AND c.ledger_offset > $1 AND c.ledger_offset <= $2
    UNION
    SELECT c.template_ref, v.interface_id
    FROM indexer.carried_interface_views v
    JOIN indexer.carried_created c ON c.ledger_offset = v.ledger_offset AND c.node_id = v.node_id
)`

// placelessExactSQL is true of an exact value s whose row is not there, $1 being the floor and $2 the watermark. Those of updates'
// events are compared with their updates, which is another thing.
const placelessExactSQL = `CASE s.stream
    WHEN 'updates' THEN CASE
        WHEN s.field LIKE 'checkpoint\_%' THEN NOT EXISTS (
            SELECT FROM indexer.offset_checkpoints o JOIN indexer.synchronizers d ON d.synchronizer_ref = o.synchronizer_ref
            WHERE o.ledger_offset = s.ledger_offset AND s.field IN ('checkpoint_extra ' || d.synchronizer_id, 'checkpoint_time ' || d.synchronizer_id))
        WHEN s.ledger_offset > $1 AND s.ledger_offset <= $2 OR ` + coveredS + ` THEN false
        ELSE NOT EXISTS (SELECT FROM indexer.carried_created c WHERE c.ledger_offset = s.ledger_offset AND c.node_id = s.node_id)
            AND NOT EXISTS (SELECT FROM indexer.carried_reassignments c WHERE c.ledger_offset = s.ledger_offset AND c.node_id = s.node_id)
            AND NOT EXISTS (
                SELECT FROM indexer.unknown_elements u
                WHERE u.carried AND u.ledger_offset = s.ledger_offset AND s.node_id IS NULL AND u.ordinal = s.seq)
    END
    WHEN 'lookups' THEN NOT EXISTS (
        SELECT FROM indexer.lookups l WHERE l.status = 'found' AND l.ledger_offset = s.ledger_offset AND l.node_id = s.node_id)
    ELSE s.stream <> 'transactions'
END`

// wantLookups asks for the contracts whose creation is nowhere and that nobody asked for, of events after the base.
func (l *Leader) wantLookups(ctx context.Context, tx pgx.Tx, base, watermark int64) error {
	_, err := tx.Exec(ctx, "WITH "+asksSQL+", "+unansweredSQL+`
INSERT INTO indexer.lookups (contract_id, ledger_offset, node_id) SELECT u.contract_id, u.ledger_offset, u.node_id FROM unanswered u`, base, watermark)
	if err != nil {
		return fmt.Errorf("ask for contracts whose creation is nowhere: %w", err)
	}
	return nil
}
