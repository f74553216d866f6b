-- name: NetworkGet :one
SELECT network_id FROM network;

-- name: NetworkRecord :exec
INSERT INTO network (network_id) VALUES (@network_id) ON CONFLICT DO NOTHING;
