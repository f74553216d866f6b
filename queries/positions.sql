-- name: PositionsMissing :many
-- Which positions are not stored.
SELECT i.position_id::uuid FROM unnest(@position_ids::uuid[]) i (position_id)
WHERE NOT EXISTS (SELECT FROM positions p WHERE p.position_id = i.position_id);
