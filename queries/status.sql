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
SELECT count(*) FROM unknown_elements u WHERE u.ledger_offset <= (SELECT watermark());

-- name: StatusNewestTransaction :one
-- The latest date of the records after one seq up to another.
SELECT max(t.date)::timestamptz AS newest FROM transactions t WHERE t.seq > @from_exclusive AND t.seq <= @to_inclusive;

-- name: StatusUnknownTransactions :one
-- How many records of an unknown kind readers see.
SELECT count(*) FROM unknown_transactions;

-- name: StatusCoverage :many
-- The covered ranges of the updates, those that touch each other as one, of more than a number of them the largest.
SELECT lower(r.range)::bigint AS from_exclusive, upper(r.range)::bigint AS to_inclusive
FROM (
    SELECT unnest(range_agg(int8range(c.from_exclusive, c.to_inclusive, '[)'))) AS range FROM coverage c WHERE c.stream = 'updates'
) r
ORDER BY upper(r.range) - lower(r.range) DESC, lower(r.range) LIMIT @at_most;

-- name: StatusFirstUpdate :one
-- The offset of the first update that is stored; 0: none is.
SELECT coalesce((SELECT u.ledger_offset FROM updates u ORDER BY u.ledger_offset LIMIT 1), 0)::bigint AS first_update;

-- name: StatusSizes :one
-- Bytes on disk: of the database, and of the tables of this ledger with their indexes.
SELECT pg_database_size(current_database())::bigint AS database,
    (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_catalog.pg_class c
     WHERE c.relkind = 'r' AND c.relnamespace = (SELECT k.relnamespace FROM pg_catalog.pg_class k WHERE k.oid = 'checkpoints'::regclass))::bigint AS ledger,
    (SELECT count(*) FROM partitions)::bigint AS partitions,
    current_setting('server_version')::text AS server_version;

-- name: StatusHeads :one
-- Where the streams stand now: the watermark of the updates and the last record of the transaction history; 0: nothing was read.
SELECT coalesce((SELECT c.ledger_offset FROM checkpoints c WHERE c.stream = 'updates'), 0)::bigint AS watermark,
    coalesce((SELECT p.last_seq FROM transactions_position p), 0)::bigint AS seq;

-- name: StatusHosting :many
-- Where the last topology event of one of some parties on a synchronizer says that the participant was to host it with its contracts, or
-- hosts it no longer.
SELECT h.ledger_offset, h.kind, h.party, coalesce(s.synchronizer_id, '')::text AS synchronizer_id
FROM (
    SELECT DISTINCT ON (t.party_id COLLATE "C", t.synchronizer_ref) t.ledger_offset, t.node_id, t.kind, t.party_id::text AS party, t.synchronizer_ref
    FROM topology_events t
    WHERE t.participant_id = (SELECT p.participant_id FROM participant p) AND t.party_id = ANY (@parties::text[]) AND t.ledger_offset <= watermark()
    ORDER BY t.party_id COLLATE "C", t.synchronizer_ref, t.ledger_offset DESC, t.node_id DESC
) h
LEFT JOIN synchronizers s ON s.synchronizer_ref = h.synchronizer_ref
WHERE h.kind IN ('onboarding', 'revoked')
ORDER BY h.ledger_offset DESC, h.node_id DESC LIMIT @at_most;
