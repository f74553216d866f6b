-- name: CoverageInsert :exec
INSERT INTO coverage (stream, scope, from_exclusive, to_inclusive) VALUES (@stream, @scope, @from_exclusive, @to_inclusive);

-- name: CoverageMerge :execrows
-- Merges a scope's rows that overlap a range, or end where it begins. What reaches above the range stays a row of its own. 0: the
-- rows don't cover the range.
WITH parts AS (
    DELETE FROM coverage c
    WHERE c.stream = @stream AND c.scope = @scope AND c.from_exclusive < @to_inclusive::bigint AND c.to_inclusive >= @from_exclusive::bigint
    RETURNING c.from_exclusive, c.to_inclusive
), whole AS (
    SELECT min(p.from_exclusive) AS from_exclusive, max(p.to_inclusive) AS to_inclusive FROM parts p
    HAVING min(p.from_exclusive) <= @from_exclusive::bigint AND max(p.to_inclusive) >= @to_inclusive::bigint
        AND sum(p.to_inclusive - p.from_exclusive) = max(p.to_inclusive) - min(p.from_exclusive)
)
INSERT INTO coverage (stream, scope, from_exclusive, to_inclusive)
SELECT @stream::text, @scope::text, p.from_exclusive, p.to_inclusive FROM whole w
CROSS JOIN LATERAL (VALUES (w.from_exclusive, @to_inclusive::bigint), (@to_inclusive::bigint, w.to_inclusive)) p (from_exclusive, to_inclusive)
WHERE p.from_exclusive < p.to_inclusive;

-- name: CoverageAhead :many
-- The ranges that are covered above the watermark.
SELECT greatest(v.from_exclusive, c.ledger_offset)::bigint AS from_exclusive, v.to_inclusive
FROM checkpoints c JOIN coverage v ON v.stream = c.stream AND v.to_inclusive > c.ledger_offset
WHERE c.stream = @stream ORDER BY v.from_exclusive;

-- name: CoverageWithin :one
-- How many offsets of a range are covered for a scope.
SELECT coalesce(sum(least(c.to_inclusive, @to_inclusive::bigint) - greatest(c.from_exclusive, @from_exclusive::bigint)), 0)::bigint AS offsets
FROM coverage c
WHERE c.stream = @stream AND c.scope = @scope AND c.from_exclusive < @to_inclusive::bigint AND c.to_inclusive > @from_exclusive::bigint;

-- name: ScopesInUse :many
-- The scope in force of a stream, if it was started: then it has a checkpoint, coverage or floors, some of which may be lost.
SELECT s.scope, s.definition FROM scopes s
WHERE s.scope = coalesce((SELECT f.changed_to FROM floors f WHERE f.stream = @stream), s.scope) AND (
    EXISTS (SELECT FROM checkpoints c WHERE c.stream = @stream)
    OR EXISTS (SELECT FROM coverage v WHERE v.stream = @stream)
    OR EXISTS (SELECT FROM floors f WHERE f.stream = @stream)) ORDER BY s.recorded_at;

-- name: AnythingHeld :one
-- Whether there are rows or state of the updates, and of the transaction history.
SELECT (EXISTS (SELECT FROM checkpoints c WHERE c.stream = 'updates') OR EXISTS (SELECT FROM coverage)
    OR EXISTS (SELECT FROM floors) OR EXISTS (SELECT FROM updates)
    OR EXISTS (SELECT FROM created) AND NOT EXISTS (SELECT FROM snapshots s WHERE s.finished_at IS NULL)
    OR EXISTS (SELECT FROM snapshots s WHERE s.finished_at IS NOT NULL))::boolean AS updates,
    (EXISTS (SELECT FROM checkpoints c WHERE c.stream = 'transactions') OR EXISTS (SELECT FROM transactions)
    OR EXISTS (SELECT FROM transactions_position p WHERE p.revision > 0))::boolean AS history;

-- name: ScopeRecord :exec
INSERT INTO scopes (scope, definition) VALUES (@scope, @definition)
ON CONFLICT DO NOTHING;

-- name: ScopesClear :exec
DELETE FROM scopes;

-- name: CoverageBelow :many
-- The covered ranges that begin below an offset.
SELECT c.from_exclusive, c.to_inclusive FROM coverage c
WHERE c.stream = @stream AND c.from_exclusive < @up_to ORDER BY c.from_exclusive;
