-- name: CoverageInsert :exec
INSERT INTO indexer.coverage (stream, scope, from_exclusive, to_inclusive) VALUES (@stream, @scope, @from_exclusive, @to_inclusive);

-- name: CoverageMerge :exec
-- Makes one row of the row that ends at the old watermark and the one that was just written behind it.
WITH below AS (
    DELETE FROM indexer.coverage c WHERE c.stream = @stream AND c.scope = @scope AND c.to_inclusive = @at::bigint
    RETURNING c.from_exclusive
)
UPDATE indexer.coverage c SET from_exclusive = below.from_exclusive
FROM below WHERE c.stream = @stream AND c.scope = @scope AND c.from_exclusive = @at::bigint;

-- name: ScopesInUse :many
-- The scopes of a stream that was started: nothing of it may be covered yet, or its checkpoint may be lost, or both.
SELECT s.scope, s.definition FROM indexer.scopes s
WHERE EXISTS (SELECT FROM indexer.checkpoints c WHERE c.stream = @stream)
   OR EXISTS (SELECT FROM indexer.coverage v WHERE v.stream = @stream)
   OR EXISTS (SELECT FROM indexer.floors f WHERE f.stream = @stream) ORDER BY s.recorded_at;

-- name: AnythingHeld :one
-- Whether anything is stored or claimed of the updates, and of the transaction history.
SELECT (EXISTS (SELECT FROM indexer.checkpoints c WHERE c.stream = 'updates') OR EXISTS (SELECT FROM indexer.coverage)
    OR EXISTS (SELECT FROM indexer.floors) OR EXISTS (SELECT FROM indexer.updates) OR EXISTS (SELECT FROM indexer.created)
    OR EXISTS (SELECT FROM indexer.snapshots s WHERE s.finished_at IS NOT NULL))::boolean AS updates,
    (EXISTS (SELECT FROM indexer.checkpoints c WHERE c.stream = 'transactions') OR EXISTS (SELECT FROM indexer.transactions)
    OR EXISTS (SELECT FROM indexer.history_position p WHERE p.revision > 0))::boolean AS history;

-- name: ScopeRecord :exec
INSERT INTO indexer.scopes (scope, definition) VALUES (@scope, @definition) ON CONFLICT DO NOTHING;

-- name: ScopesClear :exec
DELETE FROM indexer.scopes;
