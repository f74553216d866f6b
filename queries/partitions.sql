-- name: PartitionList :many
SELECT relation, from_offset, to_offset, name FROM partitions ORDER BY relation, from_offset;

-- name: PartitionsUnannounced :many
-- Which of some tables have a partition that was attached and not announced: by the statistics target that package partitions leaves in between.
SELECT c.relname::text AS relation
FROM pg_catalog.pg_partitioned_table p
JOIN pg_catalog.pg_class c ON c.oid = p.partrelid
JOIN pg_catalog.pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
WHERE c.relnamespace = (SELECT k.relnamespace FROM pg_catalog.pg_class k WHERE k.oid = 'updates'::regclass)
  AND c.relname = ANY (@relations::text[]) AND a.attstattarget = @statistics::integer
ORDER BY 1;
