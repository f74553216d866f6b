-- Resyncs. Their nodes begin at 2^30, above those of all events.

-- name: ResyncUnfinished :one
SELECT r.* FROM resyncs r WHERE r.finished_at IS NULL;

-- name: ResyncNode :one
-- The node of the first row of a resync at an offset: behind those of the resyncs that were there before.
SELECT (max(x.node_id) + 1)::integer AS node_id
FROM (
    SELECT 1073741823 AS node_id
    UNION ALL
    SELECT c.node_id FROM created c WHERE c.ledger_offset = @ledger_offset
    UNION ALL
    SELECT d.node_id FROM resync_deactivations d WHERE d.ledger_offset = @ledger_offset
    UNION ALL
    SELECT r.node_id FROM resyncs r WHERE r.ledger_offset = @ledger_offset
) x;

-- name: ResyncStart :exec
INSERT INTO resyncs (ledger_offset, node_id, scope) VALUES (@ledger_offset, @node_id, @scope);

-- name: ResyncStored :many
-- What is stored of some creation events: whether their payload is, and of which interfaces there are views, sorted. The arrays are parallel.
WITH asked AS MATERIALIZED (
    SELECT unnest(@ledger_offsets::bigint[]) AS ledger_offset, unnest(@node_ids::integer[]) AS node_id
)
SELECT c.ledger_offset, c.node_id, (c.payload IS NOT NULL)::boolean AS has_payload,
    ARRAY(SELECT v.interface_id FROM interface_views v WHERE v.ledger_offset = c.ledger_offset AND v.node_id = c.node_id
          ORDER BY v.interface_id COLLATE "C")::text[] AS interfaces
FROM asked k
JOIN created c ON c.ledger_offset = k.ledger_offset AND c.node_id = k.node_id;

-- name: ResyncAdvance :execrows
-- Moves the token by compare-and-swap, in the transaction that stores the page before it.
UPDATE resyncs SET token_kind = @token_kind, token = @token, entries = entries + @added::bigint,
    finished_at = CASE WHEN @last::boolean THEN now() END
WHERE ledger_offset = @ledger_offset AND finished_at IS NULL AND entries = @entries_before::bigint AND token = @token_before::text;

-- name: ResyncDrop :execrows
-- Removes the unfinished resync; ResyncClear removes its rows.
DELETE FROM resyncs WHERE finished_at IS NULL;

-- name: ResyncClear :exec
-- Removes what was stored of the unfinished resync.
WITH created AS (
    DELETE FROM resync_created
), views AS (
    DELETE FROM resync_interface_views
)
DELETE FROM resync_shown;

-- name: ResyncDeactivateRest :exec
-- Deactivates what is active here and was not shown.
INSERT INTO resync_deactivations (ledger_offset, node_id, synchronizer_ref, contract_id, reason)
SELECT @ledger_offset::bigint, (x.number + sqlc.arg(first_node_id)::integer - 1)::integer, x.synchronizer_ref, x.contract_id, 'scope changed'
FROM (
    SELECT a.synchronizer_ref, a.contract_id, row_number() OVER (ORDER BY a.activated_offset, a.activated_node_id) AS number
    FROM active_contracts a
    WHERE NOT EXISTS (SELECT FROM resync_shown k WHERE k.contract_id = a.contract_id AND k.synchronizer_ref = a.synchronizer_ref)
) x;

-- name: ResyncDeactivate :exec
-- Deactivates contracts that the participant does not show as of an offset. The arrays are parallel.
INSERT INTO resync_deactivations (ledger_offset, node_id, synchronizer_ref, contract_id, reason)
SELECT @ledger_offset::bigint, (row_number() OVER () + sqlc.arg(first_node_id)::integer - 1)::integer, k.synchronizer_ref, k.contract_id, 'not shown'
FROM (SELECT unnest(@contract_ids::text[]) AS contract_id, unnest(@synchronizer_refs::integer[]) AS synchronizer_ref) k;

-- name: ResyncEvents :many
-- What begins and ends at the offset of a resync, behind a node, in order, up to a number of rows.
SELECT * FROM step_events e
WHERE e.ledger_offset = @ledger_offset AND e.node_id > @after_node::integer
ORDER BY e.node_id LIMIT @at_most::bigint;

-- name: ResyncScope :one
-- The scope in force at an offset: that of the last resync there, or in which the offset, or else what follows it, was read. Empty: nothing
-- says.
SELECT coalesce((
    SELECT r.scope FROM resyncs r WHERE r.ledger_offset = @at::bigint AND r.finished_at IS NOT NULL ORDER BY r.node_id DESC LIMIT 1
), (
    SELECT c.scope FROM coverage c WHERE c.stream = 'updates' AND c.from_exclusive < @at AND c.to_inclusive >= @at
), (
    SELECT s.scope FROM snapshots s WHERE s.snapshot_offset = @at
), (
    SELECT c.scope FROM coverage c WHERE c.stream = 'updates' AND c.from_exclusive = @at ORDER BY c.to_inclusive LIMIT 1
), '')::text AS scope;

-- name: ResyncPlaces :many
-- Where contracts begin here that the participant shows at other places, as of an offset. The arrays are parallel.
WITH asked AS MATERIALIZED (
    SELECT unnest(@served_offsets::bigint[]) AS served_offset, unnest(@served_node_ids::integer[]) AS served_node_id
)
SELECT DISTINCT ON (k.served_offset, k.served_node_id) k.served_offset::bigint AS served_offset, k.served_node_id::integer AS served_node_id, c.ledger_offset, c.node_id
FROM asked k
JOIN created c ON c.served_offset = k.served_offset AND c.served_node_id = k.served_node_id
WHERE c.ledger_offset <= @at::bigint
ORDER BY k.served_offset, k.served_node_id, c.ledger_offset DESC, c.node_id DESC;

-- name: ResyncDeactivationsOf :many
-- The offsets at which resyncs deactivated some contracts.
SELECT DISTINCT d.ledger_offset FROM resync_deactivations d WHERE d.contract_id = ANY (@contract_ids::text[]);
