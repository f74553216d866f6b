-- name: CoverageInsert :exec
INSERT INTO coverage (stream, scope, from_exclusive, to_inclusive) VALUES (@stream, @scope, @from_exclusive, @to_inclusive);

-- name: CoverageMerge :execrows
-- Makes one row of those of a scope that reach into a range, or end where it begins; what reaches beyond it stays apart. No
-- row: they don't cover the range.
WITH parts AS (
    DELETE FROM coverage c
    WHERE c.stream = @stream AND c.scope = @scope AND c.from_exclusive < @to_inclusive::bigint AND c.to_inclusive >= @from_exclusive::bigint
    RETURNING c.from_exclusive, c.to_inclusive
), whole AS (
    SELECT min(p.from_exclusive) AS from_exclusive, max(p.to_inclusive) AS to_inclusive
    FROM parts p
    HAVING min(p.from_exclusive) <= @from_exclusive::bigint AND max(p.to_inclusive) >= @to_inclusive::bigint
        AND sum(p.to_inclusive - p.from_exclusive) = max(p.to_inclusive) - min(p.from_exclusive)
)
INSERT INTO coverage (stream, scope, from_exclusive, to_inclusive)
SELECT @stream, @scope, p.from_exclusive, p.to_inclusive
FROM whole w CROSS JOIN LATERAL (
    VALUES (w.from_exclusive, @to_inclusive::bigint), (@to_inclusive::bigint, w.to_inclusive)
) p (from_exclusive, to_inclusive)
WHERE p.from_exclusive < p.to_inclusive;

-- name: CoverageAhead :many
-- What is covered behind the watermark.
SELECT greatest(v.from_exclusive, c.ledger_offset)::bigint AS from_exclusive, v.to_inclusive
FROM checkpoints c JOIN coverage v ON v.stream = c.stream AND v.to_inclusive > c.ledger_offset
WHERE c.stream = @stream ORDER BY v.from_exclusive;

-- name: CoverageWithin :one
-- How many offsets of a range a scope's rows cover.
SELECT coalesce(sum(least(c.to_inclusive, @to_inclusive::bigint) - greatest(c.from_exclusive, @from_exclusive::bigint)), 0)::bigint AS offsets
FROM coverage c
WHERE c.stream = @stream AND c.scope = @scope AND c.from_exclusive < @to_inclusive::bigint AND c.to_inclusive > @from_exclusive::bigint;

-- name: ScopesInUse :many
-- The scopes of a stream that was started: nothing of it may be covered yet, or its checkpoint may be lost, or both.
SELECT s.scope, s.definition FROM scopes s
WHERE EXISTS (SELECT FROM checkpoints c WHERE c.stream = @stream)
   OR EXISTS (SELECT FROM coverage v WHERE v.stream = @stream)
   OR EXISTS (SELECT FROM floors f WHERE f.stream = @stream) ORDER BY s.recorded_at;

-- name: AnythingHeld :one
-- Whether anything is stored or claimed of the updates, and of the transaction history.
SELECT (EXISTS (SELECT FROM checkpoints c WHERE c.stream = 'updates') OR EXISTS (SELECT FROM coverage)
    OR EXISTS (SELECT FROM floors) OR EXISTS (SELECT FROM updates) OR EXISTS (SELECT FROM created)
    OR EXISTS (SELECT FROM snapshots s WHERE s.finished_at IS NOT NULL))::boolean AS updates,
    (EXISTS (SELECT FROM checkpoints c WHERE c.stream = 'transactions') OR EXISTS (SELECT FROM transactions)
    OR EXISTS (SELECT FROM history_position p WHERE p.revision > 0))::boolean AS history;

-- name: ScopeRecord :exec
INSERT INTO scopes (scope, definition) VALUES (@scope, @definition) ON CONFLICT DO NOTHING;

-- name: ScopesClear :exec
DELETE FROM scopes;
