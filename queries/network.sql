-- name: NetworkGet :one
SELECT network_id FROM indexer.network;

-- name: NetworkRecord :exec
INSERT INTO indexer.network (network_id) VALUES (@network_id) ON CONFLICT DO NOTHING;
