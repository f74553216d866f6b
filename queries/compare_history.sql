-- name: HistoryStandingGet :one
-- What is claimed of the transaction history. No row: nothing is.
SELECT p.revision, p.last_seq, p.ordered_from, p.window_seqs, p.rereading,
    coalesce((SELECT n.network_id FROM indexer.network n), '')::text AS network_id
FROM indexer.history_position p;

-- name: HistoryRecordsFind :many
-- What recognises the records with some event ids, and those with some seqs, by seq. Each is looked up by index.
WITH wanted AS MATERIALIZED (
    SELECT i.seq
    FROM (SELECT DISTINCT unnest(@event_ids::text[]) AS event_id) w
    CROSS JOIN LATERAL (SELECT x.seq FROM indexer.transactions x WHERE x.event_id = w.event_id OFFSET 0) i
    UNION
    SELECT unnest(@seqs::bigint[])
)
SELECT t.seq, t.event_id, t.fingerprint, t.gone::boolean AS gone
FROM wanted w
CROSS JOIN LATERAL (
    SELECT x.seq, x.event_id, x.fingerprint, (SELECT g.seq FROM indexer.history_gone g WHERE g.seq = x.seq) IS NOT NULL AS gone
    FROM indexer.transactions x WHERE x.seq = w.seq
    OFFSET 0
) t
ORDER BY t.seq;

-- name: HistoryClaims :one
-- What is claimed of the transaction history, and what of it can be counted. rereading is NULL where the row is missing.
SELECT p.revision, p.last_seq, p.ordered_from, p.window_seqs, p.rereading,
    coalesce((SELECT max(t.seq) FROM indexer.transactions t), 0)::bigint AS newest,
    (SELECT count(*) FROM indexer.history_sightings)::bigint AS sightings,
    (SELECT count(*) FROM indexer.history_sightings s WHERE s.seq = ANY (p.window_seqs))::bigint AS window_sightings,
    EXISTS (SELECT FROM indexer.history_gone)::boolean AS any_gone,
    (c.stream IS NOT NULL)::boolean AS has_checkpoint, c.ledger_offset, c.event_id
FROM (SELECT 1) one
LEFT JOIN indexer.history_position p ON true
LEFT JOIN indexer.checkpoints c ON c.stream = @stream;

-- name: HistoryOutside :many
-- Records that no position claims.
SELECT t.seq FROM indexer.transactions t WHERE t.seq < 1 OR t.seq > @last_seq ORDER BY t.seq;

-- name: HistoryHoles :many
-- Which seqs up to the last one nothing is stored under: after one, before another.
SELECT h.after::bigint AS after, h.before::bigint AS before FROM (
    SELECT x.seq AS after, lead(x.seq) OVER (ORDER BY x.seq) AS before
    FROM (
        SELECT 0::bigint AS seq
        UNION ALL SELECT t.seq FROM indexer.transactions t WHERE t.seq >= 1 AND t.seq <= sqlc.arg('last_seq')::bigint
        UNION ALL SELECT sqlc.arg('last_seq')::bigint + 1
    ) x
) h
WHERE h.before - h.after > 1
ORDER BY h.after
LIMIT sqlc.arg('most')::bigint;

-- name: HistoryPositionPut :exec
INSERT INTO indexer.history_position (revision, last_seq, window_seqs, ordered_from, rereading)
VALUES (@revision, @last_seq, @window_seqs, @ordered_from, @rereading)
ON CONFLICT (only_row) DO UPDATE SET revision = excluded.revision, last_seq = excluded.last_seq, window_seqs = excluded.window_seqs,
    ordered_from = excluded.ordered_from, rereading = excluded.rereading;

-- name: HistoryCheckpointPut :exec
INSERT INTO indexer.checkpoints (stream, event_id, updated_at) VALUES (@stream, @event_id, now())
ON CONFLICT (stream) DO UPDATE SET event_id = excluded.event_id, ledger_offset = NULL, updated_at = excluded.updated_at;

-- name: HistoryGoneMark :exec
INSERT INTO indexer.history_gone (seq) SELECT unnest(@seqs::bigint[]) ON CONFLICT DO NOTHING;

-- name: HistoryGoneUnmark :exec
DELETE FROM indexer.history_gone WHERE seq = ANY (@seqs::bigint[]);

-- name: HistoryGoneAmong :many
SELECT g.seq FROM indexer.history_gone g WHERE g.seq = ANY (@seqs::bigint[]) ORDER BY g.seq;

-- name: NetworkPut :exec
INSERT INTO indexer.network (network_id) VALUES (@network_id)
ON CONFLICT (only_row) DO UPDATE SET network_id = excluded.network_id;

-- name: HistoryCheckpointsElsewhere :many
-- Checkpoints of streams that there are not, with an event id, which only the history has.
SELECT c.stream FROM indexer.checkpoints c WHERE NOT c.stream = ANY (@streams::text[]) AND c.event_id IS NOT NULL ORDER BY c.stream;

-- name: HistoryCheckpointsElsewhereRemove :exec
DELETE FROM indexer.checkpoints c WHERE NOT c.stream = ANY (@streams::text[]) AND c.event_id IS NOT NULL;

-- name: HistoryCheckpointRemove :exec
DELETE FROM indexer.checkpoints WHERE stream = @stream;
