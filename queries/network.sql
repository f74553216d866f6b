-- name: NetworkGet :one
-- Empty: it was not recorded.
SELECT coalesce((SELECT n.network_id FROM network n), '')::text AS network_id;

-- name: NetworkRecord :exec
INSERT INTO network (network_id) VALUES (@network_id)
ON CONFLICT DO NOTHING;
