-- Prototypes for the fastest forms of some questions: tables with what an index of ours would have.

CREATE SCHEMA fastest;
CREATE TABLE fastest.limits AS
SELECT c.ledger_offset, c.node_id, ledger.as_numeric(c.payload ->> 'limit', 10) AS "limit"
FROM indexer.created c JOIN indexer.templates t USING (template_ref) WHERE t.package_name = 'bank' AND t.entity_name = 'Account' AND c.payload ->> 'limit' IS NOT NULL;
CREATE INDEX ON fastest.limits ("limit");
CREATE TABLE fastest.keys AS SELECT ledger_offset, node_id, contract_key_hash FROM indexer.created WHERE contract_key_hash <> '';
CREATE INDEX ON fastest.keys USING hash (contract_key_hash);

-- When an activation of a holding does not count, because a later one of the same contract is active on another synchronizer.
CREATE TABLE fastest.superseded AS
WITH lives AS MATERIALIZED (
    SELECT contract_id, activated_offset, activated_node_id, 9223372036854775807 AS until FROM indexer.active_contracts WHERE position_id IS NOT NULL
    UNION ALL
    SELECT contract_id, activated_offset, activated_node_id, deactivated_offset FROM indexer.lifetimes WHERE position_id IS NOT NULL
), moved AS MATERIALIZED (
    SELECT * FROM lives WHERE contract_id IN (SELECT contract_id FROM lives GROUP BY 1 HAVING count(*) > 1)
)
SELECT o.activated_offset, o.activated_node_id, y.activated_offset AS from_offset, least(y.until, o.until) AS until
FROM moved y JOIN moved o USING (contract_id)
WHERE (y.activated_offset, y.activated_node_id) > (o.activated_offset, o.activated_node_id) AND o.until > y.activated_offset;

-- The updates that are later than all before them: the first of these that is later than a time is the first update that is.
CREATE TABLE fastest.latest_so_far AS
SELECT ledger_offset, record_time
FROM (SELECT ledger_offset, record_time, max(record_time) OVER (ORDER BY ledger_offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM indexer.updates) u
WHERE before IS NULL OR record_time > before;
CREATE INDEX ON fastest.latest_so_far (record_time);
