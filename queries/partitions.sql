-- name: PartitionList :many
SELECT relation, from_offset, to_offset, name FROM partitions ORDER BY relation, from_offset;

-- name: PartitionedOutdated :many
-- Among the partitioned tables with at least so many rows that this role may analyze, those of which the planner has no statistics, or those of a
-- table that was a third smaller or larger. How many rows a table has is the sum of what is known of its partitions.
SELECT t.relname::text AS name
FROM pg_catalog.pg_class t
CROSS JOIN LATERAL (
    SELECT sum(greatest(c.reltuples, 0))::bigint AS rows
    FROM partitions p JOIN pg_catalog.pg_class c ON c.relname::text = p.name AND c.relnamespace = t.relnamespace
    WHERE p.relation = t.relname::text
) has
WHERE t.relkind = 'p' AND t.relnamespace = (SELECT k.relnamespace FROM pg_catalog.pg_class k WHERE k.oid = 'updates'::regclass)
  AND pg_has_role(t.relowner, 'USAGE') AND has.rows >= @at_least::bigint
  AND (t.reltuples < 0 OR has.rows NOT BETWEEN t.reltuples / 1.5 AND t.reltuples * 1.5)
ORDER BY t.relname;
