-- name: AmuletSumsCount :one
-- How many updates after one offset up to another move amulets, of how many of them the sums don't agree, or can't be proved, and the
-- first of those that don't.
SELECT count(*) AS updates,
    count(*) FILTER (WHERE s.archived + s.minted - s.created <> s.burned) AS unbalanced,
    count(*) FILTER (WHERE s.archived + s.minted - s.created - s.burned IS NULL) AS unproved,
    coalesce(min(s.ledger_offset) FILTER (WHERE s.archived + s.minted - s.created <> s.burned), 0)::bigint AS first_offset
FROM amulet_sums s WHERE s.ledger_offset > @from_exclusive AND s.ledger_offset <= @to_inclusive;

-- name: AmuletUpdateID :one
SELECT coalesce((SELECT u.update_id FROM updates u WHERE u.ledger_offset = @ledger_offset), '')::text AS update_id;
