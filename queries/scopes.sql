-- Changing the scope: floors name the one in force while some of the coverage is of an earlier one.

-- name: ScopesCovered :many
-- The scopes that something is covered in. A definition that is lost is empty.
SELECT c.scope, coalesce(min(s.definition::text), '')::text AS definition
FROM coverage c LEFT JOIN scopes s ON s.scope = c.scope
WHERE c.stream = @stream GROUP BY c.scope ORDER BY c.scope;

-- name: ScopeChange :exec
-- Says which scope is in force while something is covered in an earlier one; NULL: nothing is.
UPDATE floors_both f SET changed_to = sqlc.narg('scope')::text, digest = changed_digest(f, jsonb_build_object('changed_to', sqlc.narg('scope')::text))
WHERE f.stream = @stream;

-- name: ScopesForget :exec
-- Removes the scopes that nothing is covered in, except the one in force.
DELETE FROM scopes_both s
WHERE s.scope <> @in_force AND NOT EXISTS (SELECT FROM coverage c WHERE c.scope = s.scope);

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

-- name: CoverageEarlier :many
-- The ranges that are covered in an earlier scope than the one in force.
SELECT c.from_exclusive, c.to_inclusive
FROM coverage c JOIN floors f ON f.stream = c.stream
WHERE c.stream = @stream AND c.scope <> f.changed_to ORDER BY c.from_exclusive;

-- name: CoverageCut :exec
-- Removes a range from the coverage of all scopes but one. The inserted rows are computed from all that the deletion returns, as in
-- CoverageClose.
WITH others AS (
    DELETE FROM coverage_both c
    WHERE c.stream = @stream AND c.scope <> @scope AND c.from_exclusive < @to_inclusive::bigint AND c.to_inclusive > @from_exclusive::bigint
    RETURNING c.scope, c.is_copy, c.from_exclusive, c.to_inclusive, is_intact(c) AS intact
), pieces AS (
    SELECT @stream::text AS stream, o.scope, o.from_exclusive, @from_exclusive::bigint AS to_inclusive, o.is_copy, o.intact
    FROM others o WHERE o.from_exclusive < @from_exclusive::bigint
    UNION ALL
    SELECT @stream, o.scope, @to_inclusive::bigint, o.to_inclusive, o.is_copy, o.intact
    FROM others o WHERE o.to_inclusive > @to_inclusive::bigint
)
INSERT INTO coverage_both (stream, scope, from_exclusive, to_inclusive, is_copy, digest)
SELECT p.stream, p.scope, p.from_exclusive, p.to_inclusive, p.is_copy, CASE WHEN p.intact THEN row_digest(p) END FROM pieces p;

-- name: LookupsAgain :exec
-- Forgets the answers to look-ups: they depend on the parties that ask.
WITH exact AS (
    DELETE FROM lookup_exact_payloads
)
UPDATE lookups SET status = 'wanted', reason = NULL, looked_up_at = NULL, template_ref = NULL, created_at = NULL, payload = NULL,
    contract_key = NULL, contract_key_hash = NULL, signatories = NULL, observers = NULL, witness_parties = NULL
WHERE status <> 'wanted';

-- name: LookupsWantKnown :exec
-- Adds look-ups for events whose contract has neither a stored creation nor a look-up.
INSERT INTO lookups (contract_id, ledger_offset, node_id)
SELECT e.contract_id, e.ledger_offset, e.node_id
FROM (SELECT unnest(@ledger_offsets::bigint[]) AS ledger_offset, unnest(@node_ids::integer[]) AS node_id, unnest(@contract_ids::text[]) AS contract_id) e
WHERE NOT EXISTS (SELECT FROM created c WHERE c.contract_id = e.contract_id)
ON CONFLICT DO NOTHING;

-- name: ActiveContractsRemove :exec
-- Removes active contracts. The arrays are parallel.
DELETE FROM active_contracts a
USING (SELECT unnest(@activated_offsets::bigint[]) AS activated_offset, unnest(@activated_node_ids::integer[]) AS activated_node_id) g
WHERE a.activated_offset = g.activated_offset AND a.activated_node_id = g.activated_node_id;

-- name: LifetimesRemove :exec
-- Removes lifetimes. The arrays are parallel.
DELETE FROM lifetimes l
USING (SELECT unnest(@deactivated_offsets::bigint[]) AS deactivated_offset, unnest(@activated_offsets::bigint[]) AS activated_offset,
    unnest(@activated_node_ids::integer[]) AS activated_node_id) g
WHERE l.deactivated_offset = g.deactivated_offset AND l.activated_offset = g.activated_offset AND l.activated_node_id = g.activated_node_id;

-- name: CoverageOfOthers :one
-- Another scope than one in which something of a range is covered; empty: none.
SELECT coalesce(min(c.scope), '')::text AS scope FROM coverage c
WHERE c.stream = @stream AND c.scope <> @scope AND c.from_exclusive < @to_inclusive::bigint AND c.to_inclusive > @from_exclusive::bigint;
