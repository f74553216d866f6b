-- name: RecordsDerivedTo :one
-- Up to which offset the records are derived that follow from updates. No row: they were served, or there are none.
SELECT (c.ledger_offset + 0)::bigint AS derived_to FROM checkpoints c WHERE c.stream = 'transactions' AND c.ledger_offset IS NOT NULL;

-- name: RecordsUpTo :one
-- The seq up to which the records go that follow from updates up to an offset, of all up to a seq.
SELECT coalesce((SELECT min(t.seq) - 1 FROM transactions t WHERE t.ledger_offset > @up_to::bigint), @last_seq::bigint)::bigint AS seq;

-- name: RecordsNewest :one
-- The last record that follows from an update: the rules by which it does, its offset and its event id.
SELECT t.event_id, coalesce(t.rules, 0)::integer AS rules, coalesce(t.ledger_offset, 0)::bigint AS ledger_offset
FROM transactions t ORDER BY t.seq DESC LIMIT 1;

-- name: BalancesForget :exec
WITH totals AS (DELETE FROM balance_totals), latest AS (DELETE FROM latest_totals) DELETE FROM balance_rounds;

-- name: BalanceTotalsCompute :exec
WITH wanted AS MATERIALIZED (
    SELECT r.party, r.round, r.initial_amount, r.holding_fees_rate, r.latest FROM running_totals r
), latest AS (
    INSERT INTO latest_totals (party, round, initial_amount, holding_fees_rate)
    SELECT w.party, w.round, w.initial_amount, w.holding_fees_rate FROM wanted w WHERE w.latest
)
INSERT INTO balance_totals (party, round, initial_amount, holding_fees_rate)
SELECT w.party, w.round, w.initial_amount, w.holding_fees_rate FROM wanted w ORDER BY w.party, w.round;
