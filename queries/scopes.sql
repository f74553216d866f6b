-- Changing the scope: floors name the one in force while some of the coverage is of an earlier one.

-- name: ScopesCovered :many
-- The scopes that something is covered in, or a snapshot was read in. A definition that is lost is empty.
SELECT c.scope, coalesce(min(s.definition::text), '')::text AS definition
FROM (SELECT v.scope FROM coverage v WHERE v.stream = @stream UNION SELECT k.scope FROM snapshots k) c LEFT JOIN scopes s ON s.scope = c.scope
GROUP BY c.scope ORDER BY c.scope;

-- name: ScopeChange :exec
-- Says which scope is in force.
UPDATE floors f SET changed_to = @scope::text WHERE f.stream = 'updates';

-- name: ScopesForget :exec
-- Removes the scopes that nothing is covered in, and no snapshot was read in, except the one in force. It is not named any more where it is
-- the only one.
WITH used AS (
    SELECT c.scope FROM coverage c
    UNION
    SELECT k.scope FROM snapshots k
), gone AS (
    DELETE FROM scopes s
    WHERE s.scope <> (SELECT n.changed_to FROM floors n WHERE n.stream = 'updates') AND NOT EXISTS (SELECT FROM used u WHERE u.scope = s.scope)
)
UPDATE floors f SET changed_to = NULL
WHERE f.stream = 'updates' AND f.changed_to IS NOT NULL AND NOT EXISTS (SELECT FROM used u WHERE u.scope <> f.changed_to);

-- name: ScopeAt :one
-- The scope in which what follows an offset is covered, and how far. An empty scope: it is not covered up to there, or to the greatest
-- bigint.
SELECT coalesce(h.scope, '')::text AS scope, coalesce(h.scope = coalesce(f.changed_to, h.scope), true)::boolean AS in_force,
    coalesce(h.to_inclusive, (
        SELECT min(n.from_exclusive) FROM coverage n WHERE n.stream = @stream AND n.from_exclusive > @after::bigint
    ), 9223372036854775807)::bigint AS up_to, coalesce(s.definition::text, '')::text AS definition
FROM (SELECT 1) one
LEFT JOIN coverage h ON h.stream = @stream AND h.from_exclusive <= @after::bigint AND h.to_inclusive > @after::bigint
LEFT JOIN floors f ON f.stream = @stream
LEFT JOIN scopes s ON s.scope = h.scope;

-- name: LookupsAgain :exec
-- Forgets the answers to look-ups, which depend on the parties that ask, but for those that brought a contract.
UPDATE lookups SET status = 'wanted', reason = NULL, looked_up_at = NULL, template_ref = NULL, created_at = NULL, payload = NULL,
    contract_key = NULL, contract_key_hash = NULL, signatories = NULL, observers = NULL, witness_parties = NULL, exact = NULL
WHERE status NOT IN ('wanted', 'found');

-- name: CoverageOfOthers :one
-- Another scope than one in which something of a range is covered; empty: none.
SELECT coalesce(min(c.scope), '')::text AS scope FROM coverage c
WHERE c.stream = @stream AND c.scope <> @scope AND c.from_exclusive < @to_inclusive::bigint AND c.to_inclusive > @from_exclusive::bigint;

-- name: CoverageElsewhere :many
-- What is stored in another scope than the one in force: ranges, and all that is carried. Where the snapshot itself is compared, in its
-- scope, that only if pruning made it of rows of several scopes.
SELECT c.from_exclusive, c.to_inclusive
FROM coverage c JOIN floors f ON f.stream = c.stream
WHERE c.stream = 'updates' AND c.scope <> f.changed_to
UNION ALL
SELECT -1, k.snapshot_offset
FROM snapshots k JOIN floors f ON f.stream = 'updates'
WHERE k.finished_at IS NOT NULL AND (k.mixed OR k.scope <> f.changed_to AND k.snapshot_offset <> @at::bigint);
