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
-- The scopes of a stream that was started: nothing of it may be covered yet.
SELECT s.scope, s.definition FROM indexer.scopes s
WHERE EXISTS (SELECT FROM indexer.checkpoints c WHERE c.stream = @stream) ORDER BY s.recorded_at;

-- name: ScopeRecord :exec
INSERT INTO indexer.scopes (scope, definition) VALUES (@scope, @definition) ON CONFLICT DO NOTHING;

-- name: ScopesClear :exec
DELETE FROM indexer.scopes;
