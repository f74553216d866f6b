-- name: StatusFrontier :one
-- The frontier: the end of the contiguous coverage from the watermark on.
WITH RECURSIVE reach AS (
    SELECT c.ledger_offset AS at FROM checkpoints c WHERE c.stream = 'updates'
    UNION ALL
    SELECT v.to_inclusive FROM reach r JOIN coverage v ON v.stream = 'updates' AND v.from_exclusive = r.at
)
SELECT max(r.at)::bigint AS frontier FROM reach r;

-- name: StatusUpdatesBetween :one
SELECT count(*) FROM updates u WHERE u.ledger_offset > @from_exclusive AND u.ledger_offset <= @to_inclusive;

-- name: StatusUnknownKinds :one
-- How many elements of an unknown kind readers see.
SELECT count(*)
FROM (
    SELECT e.ledger_offset FROM unknown_elements e
    UNION ALL
    SELECT e.ledger_offset FROM shown_unknown_elements e
) u
WHERE u.ledger_offset <= (SELECT watermark());

-- name: StatusNewestTransaction :one
-- The latest date of the records after one seq up to another.
SELECT max(t.date)::timestamptz AS newest FROM transactions t WHERE t.seq > @from_exclusive AND t.seq <= @to_inclusive;

-- name: StatusUnknownTransactions :one
-- How many records of an unknown kind readers see.
SELECT count(*) FROM unknown_transactions u, transactions_position h WHERE u.seq > h.shown_after AND u.seq <= h.shown_to;
