-- name: TransactionsStoredWithIDs :many
-- Whether some event ids stand on a stored record. What is looked for is a subquery of its own, here and below, so that
-- each id is found by index: the list has no statistics, and neither has a table that was just filled.
SELECT w.event_id::text AS event_id,
    ((SELECT t.seq FROM indexer.transactions t WHERE t.event_id = w.event_id LIMIT 1) IS NOT NULL)::boolean AS stored
FROM (SELECT DISTINCT unnest(@event_ids::text[]) AS event_id) w;

-- name: TransactionsMetWithIDs :many
-- Those of some event ids that stand on a record that was met since the history is read again; where it is not, on a stored
-- one. They are mostly none.
SELECT w.event_id::text AS event_id
FROM (SELECT unnest(@event_ids::text[]) AS event_id) w
WHERE (
    SELECT t.seq FROM indexer.transactions t
    WHERE t.event_id = w.event_id AND (
        NOT (SELECT p.rereading FROM indexer.history_position p)
        OR (SELECT s.seq FROM indexer.history_sightings s WHERE s.seq = t.seq) IS NOT NULL
    )
    LIMIT 1
) IS NOT NULL;

-- name: TransactionsShownWithIDs :many
-- On how many records that the service shows, as far as that is known, each of some event ids stands; 2 stands for more.
-- While the history is read again, those are the ones that were met.
SELECT w.event_id::text AS event_id, (
    SELECT count(*) FROM (
        SELECT t.seq FROM indexer.transactions t
        WHERE t.event_id = w.event_id AND CASE WHEN (SELECT p.rereading FROM indexer.history_position p)
            THEN (SELECT s.seq FROM indexer.history_sightings s WHERE s.seq = t.seq) IS NOT NULL
            ELSE (SELECT g.seq FROM indexer.history_gone g WHERE g.seq = t.seq) IS NULL
        END
        LIMIT 2
    ) found
) AS records
FROM (SELECT DISTINCT unnest(@event_ids::text[]) AS event_id) w;
