-- name: TransactionsPositionGet :one
SELECT h.revision, h.last_seq, h.rereading FROM transactions_position h;

-- name: TransactionsPositionHold :many
-- Keeps the position as it is until the transaction ends. No row: it is not what the writer expected.
SELECT revision FROM transactions_position WHERE revision = @revision FOR UPDATE;

-- name: TransactionsPositionPut :exec
INSERT INTO transactions_position (revision, last_seq, rereading) VALUES (@revision, @last_seq, @rereading)
ON CONFLICT (only_row) DO UPDATE SET revision = excluded.revision, last_seq = excluded.last_seq, rereading = excluded.rereading;

-- name: TransactionsMarks :many
-- The marks of the records after one seq up to another, and whether no other record has their event id. PostgreSQL runs the subquery row
-- by row, by index.
SELECT t.seq, t.event_id, t.fingerprint, ((
    SELECT count(*) FROM (SELECT FROM transactions o WHERE o.event_id = t.event_id LIMIT 2) found
) = 1)::boolean AS alone
FROM transactions t WHERE t.seq > @from_exclusive::bigint AND t.seq <= @to_inclusive::bigint ORDER BY t.seq;

-- name: TransactionsStored :one
-- Whether each of the event ids is that of a record.
SELECT coalesce(bool_and((SELECT t.seq FROM transactions t WHERE t.event_id = w.event_id LIMIT 1) IS NOT NULL), true)::boolean
FROM (SELECT unnest(@event_ids::text[]) AS event_id) w;

-- name: TransactionsCheckpoint :exec
-- ledger_offset: up to where records are derived from updates; NULL: they are served.
INSERT INTO checkpoints (stream, ledger_offset, event_id)
VALUES (@stream, sqlc.narg('ledger_offset'), (SELECT t.event_id FROM transactions t WHERE t.seq = @last_seq))
ON CONFLICT (stream) DO UPDATE
SET event_id = excluded.event_id, ledger_offset = excluded.ledger_offset, updated_at = excluded.updated_at;

-- name: TransactionsSeqs :many
-- The seqs of the stored records after one seq up to another.
SELECT t.seq FROM transactions t WHERE t.seq > @from_exclusive AND t.seq <= @to_inclusive;
