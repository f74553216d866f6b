-- name: LatestTotals :many
-- The last totals of some parties, as far as they have any. They come as text, which tells how many digits stand behind the
-- point of a zero.
SELECT party, round, initial_amount::text AS initial_amount, holding_fees_rate::text AS holding_fees_rate
FROM indexer.latest_totals WHERE party = ANY (@parties::text[]);

-- name: BalanceTotalsRaise :exec
-- Gives totals that there are other amounts.
UPDATE indexer.balance_totals t SET initial_amount = x.initial_amount, holding_fees_rate = x.holding_fees_rate
FROM (
    SELECT unnest(@parties::text[]) AS party, unnest(@rounds::bigint[]) AS round, unnest(@initial_amounts::text[])::numeric AS initial_amount,
        unnest(@holding_fees_rates::text[])::numeric AS holding_fees_rate
) x
WHERE t.party = x.party AND t.round = x.round;

-- name: LatestTotalsMove :exec
-- Moves the last totals of parties that have some.
UPDATE indexer.latest_totals t SET round = x.round, initial_amount = x.initial_amount, holding_fees_rate = x.holding_fees_rate
FROM (
    SELECT unnest(@parties::text[]) AS party, unnest(@rounds::bigint[]) AS round, unnest(@initial_amounts::text[])::numeric AS initial_amount,
        unnest(@holding_fees_rates::text[])::numeric AS holding_fees_rate
) x
WHERE t.party = x.party;
