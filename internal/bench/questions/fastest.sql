-- Prototypes for the fastest forms of some questions: tables with what an index of ours would have.

CREATE SCHEMA fastest;
CREATE TABLE fastest.limits AS
SELECT c.ledger_offset, c.node_id, ledger.as_numeric(c.payload ->> 'limit', 10) AS "limit"
FROM indexer.created c JOIN indexer.templates t USING (template_ref) WHERE t.package_name = 'bank' AND t.entity_name = 'Account' AND c.payload ->> 'limit' IS NOT NULL;
CREATE INDEX ON fastest.limits ("limit");
CREATE TABLE fastest.keys AS SELECT ledger_offset, node_id, contract_key_hash FROM indexer.created WHERE contract_key_hash <> '';
CREATE INDEX ON fastest.keys USING hash (contract_key_hash);
