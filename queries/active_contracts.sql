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
-- Deactivates contracts: each active row goes and leaves a closed lifetime. Of what is not active, those are asked for
-- that have a lookup_offset other than 0: they were archived, and their creation should have been seen. The rest does
-- nothing. The arrays are parallel, one element per contract and synchronizer. All parts see the rows as they were;
-- joining what the one returns with the arrays again would be quadratic, because both have no statistics.
WITH ended AS (
    SELECT unnest(@contract_ids::text[]) AS contract_id, unnest(@synchronizer_refs::integer[]) AS synchronizer_ref,
        unnest(@deactivated_offsets::bigint[]) AS deactivated_offset, unnest(@lookup_offsets::bigint[]) AS lookup_offset,
        unnest(@lookup_node_ids::integer[]) AS lookup_node_id
), found AS MATERIALIZED (
    SELECT e.contract_id, e.synchronizer_ref, e.deactivated_offset, e.lookup_offset, e.lookup_node_id, a.activated_offset,
        a.activated_node_id, a.template_ref
    FROM ended e LEFT JOIN indexer.active_contracts a ON a.contract_id = e.contract_id AND a.synchronizer_ref = e.synchronizer_ref
), closed AS (
    INSERT INTO indexer.lifetimes (deactivated_offset, activated_offset, activated_node_id, synchronizer_ref, template_ref, contract_id)
    SELECT f.deactivated_offset, f.activated_offset, f.activated_node_id, f.synchronizer_ref, f.template_ref, f.contract_id
    FROM found f WHERE f.activated_offset IS NOT NULL
), wanted AS (
    INSERT INTO indexer.lookups (contract_id, ledger_offset, node_id)
    SELECT f.contract_id, f.lookup_offset, f.lookup_node_id FROM found f WHERE f.activated_offset IS NULL AND f.lookup_offset > 0
    ON CONFLICT DO NOTHING
)
DELETE FROM indexer.active_contracts a USING ended e
WHERE a.contract_id = e.contract_id AND a.synchronizer_ref = e.synchronizer_ref;
