-- name: PartitionList :many
SELECT relation, from_offset, to_offset FROM partitions ORDER BY relation, from_offset;

-- name: PartitionRecord :exec
INSERT INTO partitions (relation, from_offset, to_offset) VALUES (@relation, @from_offset, @to_offset);
