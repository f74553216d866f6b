-- What an export has beside the relations.

-- name: ExportSeals :many
-- The windows of a stream that have a part of a range, and in the first range of the updates the snapshot's. What of a window was repaired since waits to be compared.
SELECT * FROM verifications v
WHERE (v.stream = @stream AND v.from_exclusive < @to_inclusive AND v.to_inclusive > @from_exclusive::bigint
       OR v.stream = 'snapshot' AND @stream = 'updates' AND @from_exclusive::bigint = 0)
  AND (v.repaired_at IS NULL OR v.repaired_at <= v.verified_at)
ORDER BY v.stream, v.from_exclusive;

-- name: ExportLock :one
-- Whether nobody else exports to a place. The transaction holds the lock.
SELECT pg_try_advisory_xact_lock(hashtextextended('ledgerindexer export ' || @place::text, 0));
