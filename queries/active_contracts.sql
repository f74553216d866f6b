-- name: ActiveContractsCopy :copyfrom
-- Activates the contracts of a snapshot.
INSERT INTO indexer.active_contracts (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter)
VALUES (@contract_id, @synchronizer_ref, @template_ref, @activated_offset, @activated_node_id, @reassignment_counter);
