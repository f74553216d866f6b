-- name: VerificationSet :exec
-- Stores a window's result. repaired_at stays as it is.
INSERT INTO verifications (stream, from_exclusive, to_inclusive, verified_at, result, differences, digest)
VALUES (@stream, @from_exclusive, @to_inclusive, @verified_at, @result, @differences, @digest)
ON CONFLICT (stream, from_exclusive) DO UPDATE SET to_inclusive = excluded.to_inclusive, verified_at = excluded.verified_at,
    result = excluded.result, differences = excluded.differences, digest = excluded.digest;

-- name: VerificationClock :one
-- When a window that begins at a place is sealed: not before it was repaired, also where the clock was set back in between.
SELECT greatest(clock_timestamp(), (
    SELECT v.repaired_at FROM verifications v WHERE v.stream = @stream AND v.from_exclusive = @from_exclusive))::timestamptz AS now;

-- name: VerificationFrom :many
-- The first window of a stream from a place on.
SELECT * FROM verifications
WHERE stream = @stream AND from_exclusive >= @from_exclusive ORDER BY from_exclusive LIMIT 1;

-- name: VerificationsWithin :many
-- The windows that lie completely within a range.
SELECT * FROM verifications
WHERE stream = @stream AND from_exclusive >= @from_exclusive AND to_inclusive <= @to_inclusive ORDER BY from_exclusive;

-- name: VerificationsRepaired :exec
-- Marks the windows that overlap a range as repaired now, and so after they were sealed, also where the clock was set back in between.
UPDATE verifications SET repaired_at = greatest(clock_timestamp(), verified_at + interval '1 microsecond')
WHERE stream = @stream AND from_exclusive < @to_inclusive AND to_inclusive > @from_exclusive;

-- name: VerificationAgain :many
-- The first window to be compared again: one that differed, from a place on, or one that was repaired since it was compared.
SELECT v.from_exclusive, v.to_inclusive FROM verifications v
WHERE v.stream = @stream AND (v.result = 'different' AND v.from_exclusive >= @at_least OR v.repaired_at > v.verified_at)
ORDER BY v.from_exclusive LIMIT 1;

-- name: VerificationUnsealed :one
-- The first gap between the windows of a stream, from a floor on: where it begins, and where the next window begins (the greatest
-- bigint: there is none). The search begins at the window that begins at known, if there is one, so the work does not grow with the
-- number of windows.
SELECT r.at::bigint AS from_exclusive,
    (SELECT coalesce(min(v.from_exclusive), 9223372036854775807) FROM verifications v
     WHERE v.stream = @stream AND v.from_exclusive >= r.at)::bigint AS next_window
FROM (SELECT windows_reach(@stream, coalesce(
    (SELECT k.from_exclusive FROM verifications k WHERE k.stream = @stream AND k.from_exclusive = @known AND k.from_exclusive > @floor
       AND EXISTS (SELECT FROM verifications b WHERE b.stream = @stream AND b.from_exclusive = @floor)),
    @floor), '{equal,different,not_shown,pruned}') AS at) r;

-- name: VerificationUpdatesEnd :many
-- The offset of the n-th update of a range. No row: it has fewer.
SELECT ledger_offset FROM updates
WHERE ledger_offset > @from_exclusive AND ledger_offset <= @to_inclusive ORDER BY ledger_offset OFFSET @skip::bigint LIMIT 1;

-- name: VerificationSummary :one
SELECT coalesce(verified_offset(), 0)::bigint AS verified_offset, coalesce(verified_seq(), 0)::bigint AS verified_seq,
    count(*) FILTER (WHERE v.result = 'different') AS different, count(*) FILTER (WHERE v.result = 'not_shown') AS not_shown,
    count(*) FILTER (WHERE v.result = 'pruned') AS pruned, count(*) AS windows
FROM verifications v;

-- name: VerificationsRemove :exec
-- Removes the windows that end above a place.
DELETE FROM verifications WHERE stream = @stream AND to_inclusive > @after;
