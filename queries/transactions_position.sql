-- name: TransactionsPositionGet :one
-- The row, or its copy if the row is damaged: the next write depends on it.
SELECT h.revision, h.shown_after, h.shown_to, h.read_after, h.last_seq, h.leftovers, h.latest_date
FROM transactions_position_both h WHERE is_intact(h) ORDER BY h.is_copy LIMIT 1;

-- name: TransactionsPositionHold :many
-- Keeps the position as it is until the transaction ends. No row: it is not what the writer expected.
SELECT revision FROM transactions_position WHERE revision = @revision FOR UPDATE;

-- name: TransactionsPositionPut :exec
INSERT INTO transactions_position_both (only_row, revision, shown_after, shown_to, read_after, last_seq, leftovers, latest_date, is_copy, digest)
SELECT r.*, c.is_copy, row_digest(r)
FROM (SELECT true AS only_row, @revision::bigint AS revision, @shown_after::bigint AS shown_after, @shown_to::bigint AS shown_to,
    @read_after::bigint AS read_after, @last_seq::bigint AS last_seq, @leftovers::boolean AS leftovers,
    @latest_date::bigint AS latest_date) r, unnest('{f,t}'::boolean[]) c (is_copy)
ON CONFLICT (only_row, is_copy) DO UPDATE SET revision = excluded.revision, shown_after = excluded.shown_after, shown_to = excluded.shown_to,
    read_after = excluded.read_after, last_seq = excluded.last_seq, leftovers = excluded.leftovers, latest_date = excluded.latest_date,
    digest = excluded.digest;

-- name: TransactionsMarks :many
-- The marks of the records after one seq up to another, and whether each one's event id is unique in the generation that begins after
-- a third. PostgreSQL runs the subquery row by row, by index. For "+ 0" see TransactionsIDsStored.
SELECT t.seq, t.event_id, t.fingerprint, ((
    SELECT count(*) FROM (
        SELECT o.seq FROM transactions o
        WHERE o.event_id = t.event_id AND o.seq + 0 > @generation::bigint AND o.seq + 0 <= @to_inclusive::bigint LIMIT 2
    ) found
) = 1)::boolean AS alone
FROM transactions t WHERE t.seq > @from_exclusive::bigint AND t.seq <= @to_inclusive::bigint ORDER BY t.seq;

-- name: TransactionsIDsStored :many
-- The event ids among those given that a record after one seq up to another has. "+ 0" keeps PostgreSQL from reading all seqs
-- between the two for each id: it expects few of them in a table that grew since the last ANALYZE.
SELECT w.event_id::text AS event_id
FROM (SELECT unnest(@event_ids::text[]) AS event_id) w
WHERE (
    SELECT t.seq FROM transactions t
    WHERE t.event_id = w.event_id AND t.seq + 0 > @from_exclusive::bigint AND t.seq + 0 <= @to_inclusive::bigint LIMIT 1
) IS NOT NULL;

-- name: TransactionsEnds :one
-- The seq before the oldest record, and the seq of the newest one.
SELECT coalesce(min(t.seq) - 1, 0)::bigint AS before, coalesce(max(t.seq), 0)::bigint AS newest FROM transactions t;

-- name: TransactionsCheckpoint :exec
-- ledger_offset: up to where records are derived from updates; NULL: they are served.
INSERT INTO checkpoints_both (stream, ledger_offset, event_id, updated_at, is_copy, digest)
SELECT r.*, c.is_copy, row_digest(r)
FROM (SELECT @stream::text AS stream, sqlc.narg('ledger_offset')::bigint AS ledger_offset, sqlc.narg('event_id')::text AS event_id, now() AS updated_at) r, unnest('{f,t}'::boolean[]) c (is_copy)
ON CONFLICT (stream, is_copy) DO UPDATE
SET event_id = excluded.event_id, ledger_offset = excluded.ledger_offset, updated_at = excluded.updated_at, digest = excluded.digest;

-- name: TransactionsSeqs :many
-- The seqs of the stored records after one seq up to another.
SELECT t.seq FROM transactions t WHERE t.seq > @from_exclusive AND t.seq <= @to_inclusive;

-- name: RelationBlocks :one
-- How many blocks a table has.
SELECT (pg_relation_size((@relation::text)::regclass) / current_setting('block_size')::bigint)::bigint AS blocks;
