-- name: ActiveContractsBegin :exec
-- Activates contracts. The arrays are parallel, one element per contract and synchronizer. Where one is active already
-- the later activation stays.
INSERT INTO indexer.active_contracts AS a
    (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter)
SELECT unnest(@contract_ids::text[]), unnest(@synchronizer_refs::integer[]), unnest(@template_refs::integer[]),
    unnest(@activated_offsets::bigint[]), unnest(@activated_node_ids::integer[]), unnest(@reassignment_counters::bigint[])
ON CONFLICT (contract_id, synchronizer_ref) DO UPDATE SET
    template_ref = excluded.template_ref, activated_offset = excluded.activated_offset,
    activated_node_id = excluded.activated_node_id, reassignment_counter = excluded.reassignment_counter;

-- name: ActiveContractsCopy :copyfrom
-- Activates the contracts of a snapshot.
INSERT INTO indexer.active_contracts (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter)
VALUES (@contract_id, @synchronizer_ref, @template_ref, @activated_offset, @activated_node_id, @reassignment_counter);

-- name: ActiveContractsEnd :exec
-- Deactivates contracts: each active row goes and leaves a closed lifetime. A deactivation of what is not there does
-- nothing. The arrays are parallel, one element per contract and synchronizer. Both parts see the rows as they were;
-- joining what the one returns with the arrays again would be quadratic, because both have no statistics.
WITH ended AS (
    SELECT unnest(@contract_ids::text[]) AS contract_id, unnest(@synchronizer_refs::integer[]) AS synchronizer_ref,
        unnest(@deactivated_offsets::bigint[]) AS deactivated_offset
), closed AS (
    INSERT INTO indexer.lifetimes (deactivated_offset, activated_offset, activated_node_id, synchronizer_ref, template_ref, contract_id)
    SELECT e.deactivated_offset, a.activated_offset, a.activated_node_id, a.synchronizer_ref, a.template_ref, a.contract_id
    FROM ended e JOIN indexer.active_contracts a ON a.contract_id = e.contract_id AND a.synchronizer_ref = e.synchronizer_ref
)
DELETE FROM indexer.active_contracts a USING ended e
WHERE a.contract_id = e.contract_id AND a.synchronizer_ref = e.synchronizer_ref;
