-- name: RewritesLock :exec
-- Numbers the changes in the order of their commits: one transaction adds them at a time.
LOCK TABLE rewrites IN SHARE ROW EXCLUSIVE MODE;

-- name: RewriteNote :exec
-- Adds a change. If it touches or overlaps the newest one, of the same stream and reason, it replaces that with the whole range. A reset
-- does not: between two of them rows were read again.
WITH newest AS (
    SELECT r.rewrite, r.stream, r.reason, r.from_exclusive, r.to_inclusive FROM rewrites r ORDER BY r.rewrite DESC LIMIT 1
), merged AS (
    DELETE FROM rewrites r USING newest n
    WHERE r.rewrite = n.rewrite AND n.stream = @stream AND n.reason = @reason AND n.reason <> 'reset'
      AND n.from_exclusive <= @to_inclusive::bigint AND n.to_inclusive >= @from_exclusive::bigint
    RETURNING r.from_exclusive, r.to_inclusive
)
INSERT INTO rewrites (rewrite, stream, from_exclusive, to_inclusive, reason)
SELECT coalesce((SELECT n.rewrite FROM newest n), 0) + 1, @stream, least(@from_exclusive::bigint, m.from_exclusive),
    greatest(@to_inclusive::bigint, m.to_inclusive), @reason
FROM (SELECT) x LEFT JOIN merged m ON true;

-- name: Rewrites :many
SELECT r.rewrite, r.stream, r.from_exclusive, r.to_inclusive, r.reason, r.rewritten_at FROM rewrites r ORDER BY r.rewrite;
