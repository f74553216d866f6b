-- name: PartitionList :many
SELECT relation, from_offset, to_offset, name FROM partitions ORDER BY relation, from_offset;
