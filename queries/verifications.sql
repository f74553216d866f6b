-- name: VerificationSet :exec
-- Keeps when a window was repaired last.
INSERT INTO verifications (stream, from_exclusive, to_inclusive, verified_at, result, differences, digest)
VALUES (@stream, @from_exclusive, @to_inclusive, @verified_at, @result, @differences, @digest)
ON CONFLICT (stream, from_exclusive) DO UPDATE SET to_inclusive = excluded.to_inclusive, verified_at = excluded.verified_at,
    result = excluded.result, differences = excluded.differences, digest = excluded.digest;

-- name: VerificationClock :one
SELECT clock_timestamp()::timestamptz AS now;

-- name: VerificationFrom :many
-- The first window of a stream that begins at a place or behind it.
SELECT * FROM verifications
WHERE stream = @stream AND from_exclusive >= @from_exclusive ORDER BY from_exclusive LIMIT 1;

-- name: VerificationsWithin :many
-- The windows that lie within a range as a whole.
SELECT * FROM verifications
WHERE stream = @stream AND from_exclusive >= @from_exclusive AND to_inclusive <= @to_inclusive ORDER BY from_exclusive;

-- name: VerificationsRepaired :exec
-- Notes that something was repaired in the windows that overlap with a range.
UPDATE verifications SET repaired_at = clock_timestamp()
WHERE stream = @stream AND from_exclusive < @to_inclusive AND to_inclusive > @from_exclusive;

-- name: VerificationAgain :many
-- The first window to be compared again: one that differed, after a place, or one that was repaired in part since.
SELECT from_exclusive, to_inclusive FROM verifications
WHERE stream = @stream AND (result = 'different' AND from_exclusive >= @at_least OR repaired_at > verified_at)
ORDER BY from_exclusive LIMIT 1;

-- name: VerificationUnsealed :one
-- What no window of a stream claims yet, from a floor on: where it begins, and where the next window begins (the greatest bigint: there is none).
-- Nothing before the window that begins at known is looked at, where there is one: the work does not grow with the windows. But
-- history that was filled in lowers the floor: then all are.
SELECT r.at::bigint AS from_exclusive,
    (SELECT coalesce(min(v.from_exclusive), 9223372036854775807) FROM verifications v
     WHERE v.stream = @stream AND v.from_exclusive >= r.at)::bigint AS next_window
FROM (SELECT windows_reach(@stream, coalesce(
    (SELECT k.from_exclusive FROM verifications k WHERE k.stream = @stream AND k.from_exclusive = @known AND k.from_exclusive > @floor
       AND EXISTS (SELECT FROM verifications b WHERE b.stream = @stream AND b.from_exclusive = @floor)),
    @floor), '{equal,different,not_shown}') AS at) r;

-- name: VerificationUpdatesEnd :many
-- The offset of the n-th update of a range; no row: it has fewer.
SELECT ledger_offset FROM updates
WHERE ledger_offset > @from_exclusive AND ledger_offset <= @to_inclusive ORDER BY ledger_offset OFFSET @skip::bigint LIMIT 1;

-- name: VerificationSummary :one
SELECT coalesce(verified_offset(), 0)::bigint AS verified_offset, coalesce(verified_seq(), 0)::bigint AS verified_seq,
    count(*) FILTER (WHERE v.result = 'different') AS different, count(*) FILTER (WHERE v.result = 'not_shown') AS not_shown,
    count(*) AS windows
FROM verifications v;

-- name: VerificationsRemove :exec
-- Removes the windows that reach beyond a place.
DELETE FROM verifications WHERE stream = @stream AND to_inclusive > @after;
