-- name: PartitionList :many
SELECT relation, from_offset, to_offset FROM indexer.partitions ORDER BY relation, from_offset;

-- name: PartitionRecord :exec
INSERT INTO indexer.partitions (relation, from_offset, to_offset) VALUES (@relation, @from_offset, @to_offset);
