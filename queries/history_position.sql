-- name: HistoryPositionGet :one
SELECT revision, last_seq, window_seqs, rereading FROM indexer.history_position;

-- name: HistoryMarks :many
-- What recognises some records, in no order.
SELECT t.seq, t.event_id, t.fingerprint FROM indexer.transactions t WHERE t.seq = ANY (@seqs::bigint[]);

-- name: HistoryPositionHold :one
-- Keeps the position as it is until the transaction ends. No row: it is not what the writer saw.
SELECT ordered_from FROM indexer.history_position WHERE revision = @revision FOR UPDATE;

-- name: HistoryPositionMove :exec
UPDATE indexer.history_position
SET revision = @revision, last_seq = @last_seq, window_seqs = @window_seqs, ordered_from = @ordered_from, rereading = @rereading;

-- name: HistoryCheckpoint :exec
INSERT INTO indexer.checkpoints (stream, event_id, updated_at) VALUES (@stream, @event_id, now())
ON CONFLICT (stream) DO UPDATE SET event_id = excluded.event_id, updated_at = excluded.updated_at;

-- name: HistorySightingsClear :exec
-- Not TRUNCATE: that waits for a dump to end, however long it takes, and a dump that begins beside it could hold the
-- position of one moment and the sightings of another.
DELETE FROM indexer.history_sightings;

-- name: HistorySightingsAnalyze :exec
-- Without it, the server may take them for as few as when it last looked, and compare each record with each sighting.
ANALYZE indexer.history_sightings;

-- name: HistoryGoneClear :exec
DELETE FROM indexer.history_gone;

-- name: HistoryGoneFill :execrows
INSERT INTO indexer.history_gone (seq)
SELECT t.seq FROM indexer.transactions t WHERE NOT EXISTS (SELECT FROM indexer.history_sightings s WHERE s.seq = t.seq);

-- name: HistoryNotSighted :many
-- The stored records with some event ids that were not met again yet, the lowest seq first; those that were gone are last,
-- so that of equal records the ones that were shown so far are met before them. The subqueries are of the sort
-- that can only be answered row by row, by index: neither the list nor a table that was just filled has statistics.
SELECT t.seq, t.event_id, t.fingerprint
FROM (SELECT DISTINCT unnest(@event_ids::text[]) AS event_id) w
CROSS JOIN LATERAL (
    SELECT x.seq, x.event_id, x.fingerprint, (SELECT g.seq FROM indexer.history_gone g WHERE g.seq = x.seq) IS NOT NULL AS gone
    FROM indexer.transactions x
    WHERE x.event_id = w.event_id AND (SELECT s.seq FROM indexer.history_sightings s WHERE s.seq = x.seq) IS NULL
    OFFSET 0
) t
ORDER BY t.gone, t.seq;
