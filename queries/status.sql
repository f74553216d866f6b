-- name: StatusFrontier :one
-- The end of the contiguous coverage from the watermark on.
WITH RECURSIVE reach AS (
    SELECT c.ledger_offset AS at FROM indexer.checkpoints c WHERE c.stream = 'updates'
    UNION ALL
    SELECT v.to_inclusive FROM reach r JOIN indexer.coverage v ON v.stream = 'updates' AND v.from_exclusive = r.at
)
SELECT max(r.at)::bigint AS frontier FROM reach r;

-- name: StatusUpdatesBetween :one
SELECT count(*) FROM indexer.updates u WHERE u.ledger_offset > @from_exclusive AND u.ledger_offset <= @to_inclusive;

-- name: StatusUnknownKinds :one
-- Those that are shown.
SELECT count(*) FROM ledger.unknown_updates;

-- name: StatusNewestTransaction :one
-- The latest date of some records. Joined with the position, whose table is too small to ever have statistics, this would
-- look dear enough for the planner to have it compiled.
SELECT max(t.date)::timestamptz AS newest FROM indexer.transactions t WHERE t.seq = ANY (@seqs::bigint[]);

-- name: StatusUnknownTransactions :one
SELECT count(*) FROM indexer.unknown_transactions;
