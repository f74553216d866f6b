-- name: NetworkGet :one
-- Empty: it was not recorded.
SELECT coalesce((SELECT n.network_id FROM network n), '')::text AS network_id;

-- name: NetworkRecord :exec
INSERT INTO network_both (only_row, network_id, recorded_at, is_copy, digest)
SELECT r.*, c.is_copy, row_digest(r)
FROM (SELECT true AS only_row, @network_id::text AS network_id, now() AS recorded_at) r, unnest('{f,t}'::boolean[]) c (is_copy)
ON CONFLICT DO NOTHING;
