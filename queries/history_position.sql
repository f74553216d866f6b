-- name: HistoryPositionGet :one
SELECT revision, shown_after, shown_to, read_after, last_seq, leftovers FROM history_position;

-- name: HistoryPositionHold :many
-- Keeps the position as it is until the transaction ends. No row: it is not what the writer saw.
SELECT revision FROM history_position WHERE revision = @revision FOR UPDATE;

-- name: HistoryPositionPut :exec
INSERT INTO history_position (revision, shown_after, shown_to, read_after, last_seq, leftovers)
VALUES (@revision, @shown_after, @shown_to, @read_after, @last_seq, @leftovers)
ON CONFLICT (only_row) DO UPDATE SET revision = excluded.revision, shown_after = excluded.shown_after, shown_to = excluded.shown_to,
    read_after = excluded.read_after, last_seq = excluded.last_seq, leftovers = excluded.leftovers;

-- name: HistoryMarks :many
-- What recognises the records after one seq up to another, and whether each has its event id alone in the generation that begins after
-- a third. The subquery is of the sort that is only answered row by row, by index. For the additions see HistoryIDsStored.
SELECT t.seq, t.event_id, t.fingerprint, ((
    SELECT count(*) FROM (
        SELECT o.seq FROM transactions o
        WHERE o.event_id = t.event_id AND o.seq + 0 > @generation::bigint AND o.seq + 0 <= @to_inclusive::bigint LIMIT 2
    ) found
) = 1)::boolean AS alone
FROM transactions t WHERE t.seq > @from_exclusive::bigint AND t.seq <= @to_inclusive::bigint ORDER BY t.seq;

-- name: HistoryIDsStored :many
-- Those of some event ids that stand on a record after one seq up to another. The additions keep PostgreSQL from reading all seqs between
-- the two for each id: it takes them for few in a table that was not analyzed since it grew.
SELECT w.event_id::text AS event_id
FROM (SELECT unnest(@event_ids::text[]) AS event_id) w
WHERE (
    SELECT t.seq FROM transactions t
    WHERE t.event_id = w.event_id AND t.seq + 0 > @from_exclusive::bigint AND t.seq + 0 <= @to_inclusive::bigint LIMIT 1
) IS NOT NULL;

-- name: HistoryEnds :one
-- The seq before the oldest record, and that of the newest one.
SELECT coalesce(min(t.seq) - 1, 0)::bigint AS before, coalesce(max(t.seq), 0)::bigint AS newest FROM transactions t;

-- name: HistoryCheckpoint :exec
INSERT INTO checkpoints (stream, event_id, updated_at) VALUES (@stream, @event_id, now())
ON CONFLICT (stream) DO UPDATE SET event_id = excluded.event_id, ledger_offset = NULL, updated_at = excluded.updated_at;

-- name: HistoryCheckpointsElsewhere :many
-- Checkpoints of streams that there are not, with an event id, which only the history has.
SELECT c.stream FROM checkpoints c WHERE NOT c.stream = ANY (@streams::text[]) AND c.event_id IS NOT NULL ORDER BY c.stream;

-- name: HistoryCheckpointsElsewhereRemove :exec
DELETE FROM checkpoints c WHERE NOT c.stream = ANY (@streams::text[]) AND c.event_id IS NOT NULL;

-- name: HistorySeqs :many
-- The seqs after one up to another under which a record is stored.
SELECT t.seq FROM transactions t WHERE t.seq > @from_exclusive AND t.seq <= @to_inclusive;

-- name: HistoryCheckpointGet :many
SELECT c.ledger_offset, c.event_id FROM checkpoints c WHERE c.stream = @stream;

-- name: RelationBlocks :one
-- How many blocks a table has.
SELECT (pg_relation_size((@relation::text)::regclass) / current_setting('block_size')::bigint)::bigint AS blocks;
