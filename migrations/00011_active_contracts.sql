-- Active contracts that stay cheap to write however many they are. Contract ids are long and random: in a btree each of them
-- makes another page dirty, and the btree soon takes more memory than the table.

-- +goose Up

ALTER TABLE indexer.active_contracts DROP CONSTRAINT active_contracts_pkey, ADD PRIMARY KEY (activated_offset, activated_node_id);
CREATE INDEX active_contracts_contract_id ON indexer.active_contracts USING hash (contract_id);
COMMENT ON TABLE indexer.active_contracts IS 'One narrow row per contract and synchronizer that is active at the watermark. The activation names its creation event, and is the key: no event activates twice.';
COMMENT ON COLUMN ledger.active_contracts.contract_id IS 'Id of the contract. Indexed: equal to one id, or joined to ids.';

-- +goose Down
COMMENT ON COLUMN ledger.active_contracts.contract_id IS 'Id of the contract. Indexed, first column of the key (contract, synchronizer).';
DROP INDEX indexer.active_contracts_contract_id;
ALTER TABLE indexer.active_contracts DROP CONSTRAINT active_contracts_pkey, ADD PRIMARY KEY (contract_id, synchronizer_ref);
COMMENT ON TABLE indexer.active_contracts IS 'One narrow row per contract and synchronizer that is active at the watermark. The activation names its creation event.';
