-- name: ExactPayloadsCopy :copyfrom
INSERT INTO indexer.exact_payloads (stream, seq, ledger_offset, node_id, interface_id, field, exact)
VALUES (@stream, @seq, @ledger_offset, @node_id, @interface_id, @field, @exact);
