-- name: BalanceTotalsAdd :exec
-- Adds the balance changes of a range of records to the running totals. A change counts in its round and in all later
-- ones: it raises the party's rows from its round on. A round without a row gets one, based on the round before. The party's last row
-- always changes, and latest_totals gets it too. Both look-ups go by the index for each change: OFFSET 0 keeps PostgreSQL from a join, for which
-- it would read all of balance_totals for each change while its statistics say that there is next to nothing. Everything is computed and sorted before the first row is written: else the
-- look-ups would step over the rows that this statement wrote and can't see.
WITH added AS MATERIALIZED (
    SELECT c.party, c.round,
        coalesce(lead(c.round) OVER rounds - 1, 9223372036854775807) AS last_round, -- before the next one
        sum(sum(c.change_to_initial_amount_as_of_round_zero)) OVER rounds AS initial_amount,
        sum(sum(c.change_to_holding_fees_rate)) OVER rounds AS holding_fees_rate
    FROM balance_changes c
    WHERE c.seq > @from_exclusive::bigint AND c.seq <= @to_inclusive::bigint AND c.round IS NOT NULL
    GROUP BY c.party, c.round
    WINDOW rounds AS (PARTITION BY c.party ORDER BY c.round)
), changed AS MATERIALIZED (
    SELECT t.party, t.round, t.initial_amount + a.initial_amount AS initial_amount, t.holding_fees_rate + a.holding_fees_rate AS holding_fees_rate
    FROM added a
    CROSS JOIN LATERAL (
        SELECT * FROM balance_totals b
        WHERE b.party = a.party AND b.round BETWEEN a.round AND a.last_round
        OFFSET 0
    ) t
    UNION ALL
    SELECT a.party, a.round, coalesce(b.initial_amount, 0) + a.initial_amount, coalesce(b.holding_fees_rate, 0) + a.holding_fees_rate
    FROM added a
    LEFT JOIN LATERAL (
        SELECT t.round, t.initial_amount, t.holding_fees_rate
        FROM balance_totals t
        WHERE t.party = a.party AND t.round <= a.round
        ORDER BY t.round DESC
        LIMIT 1
    ) b ON true
    WHERE b.round IS DISTINCT FROM a.round
), latest AS (
    INSERT INTO latest_totals (party, round, initial_amount, holding_fees_rate)
    SELECT DISTINCT ON (c.party) c.party, c.round, c.initial_amount, c.holding_fees_rate FROM changed c ORDER BY c.party, c.round DESC
    ON CONFLICT (party) DO UPDATE SET round = excluded.round, initial_amount = excluded.initial_amount, holding_fees_rate = excluded.holding_fees_rate
)
INSERT INTO balance_totals (party, round, initial_amount, holding_fees_rate)
SELECT c.party, c.round, c.initial_amount, c.holding_fees_rate FROM changed c ORDER BY c.party, c.round
ON CONFLICT (party, round) DO UPDATE SET initial_amount = excluded.initial_amount, holding_fees_rate = excluded.holding_fees_rate;

-- name: BalanceRoundsNote :exec
-- Raises the newest round of the records, and lowers the first round from which totals are incomplete. NULL: there is none.
UPDATE balance_rounds b SET newest = greatest(b.newest, sqlc.narg(newest)::bigint), first_incomplete = least(b.first_incomplete, sqlc.narg(first_incomplete)::bigint)
WHERE greatest(b.newest, sqlc.narg(newest)::bigint) IS DISTINCT FROM b.newest
   OR least(b.first_incomplete, sqlc.narg(first_incomplete)::bigint) IS DISTINCT FROM b.first_incomplete;

-- name: BalanceRoundsCompute :exec
-- Stores the rounds of all records.
INSERT INTO balance_rounds (newest, first_incomplete) SELECT r.newest, r.first_incomplete FROM wanted_rounds r
ON CONFLICT (only_row) DO UPDATE SET newest = excluded.newest, first_incomplete = excluded.first_incomplete;
