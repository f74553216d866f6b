-- name: LifetimesCopy :copyfrom
INSERT INTO indexer.lifetimes (deactivated_offset, activated_offset, activated_node_id, synchronizer_ref, template_ref, contract_id)
VALUES (@deactivated_offset, @activated_offset, @activated_node_id, @synchronizer_ref, @template_ref, @contract_id);
