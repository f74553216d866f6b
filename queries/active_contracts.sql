-- name: ActiveContractsBegin :exec
-- Activates contracts that are not active. The arrays are parallel, one element per contract and synchronizer.
INSERT INTO indexer.active_contracts
    (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter)
SELECT unnest(@contract_ids::text[]), unnest(@synchronizer_refs::integer[]), unnest(@template_refs::integer[]),
    unnest(@activated_offsets::bigint[]), unnest(@activated_node_ids::integer[]), unnest(@reassignment_counters::bigint[]);

-- name: ActiveContractsCopy :copyfrom
-- Activates the contracts of a snapshot.
INSERT INTO indexer.active_contracts (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter)
VALUES (@contract_id, @synchronizer_ref, @template_ref, @activated_offset, @activated_node_id, @reassignment_counter);
