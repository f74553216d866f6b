-- name: ExactPayloadsCopy :copyfrom
INSERT INTO indexer.exact_payloads (stream, seq, ledger_offset, node_id, interface_id, field, exact)
VALUES (@stream, @seq, @ledger_offset, @node_id, @interface_id, @field, @exact);

-- name: ExactPayloadsForget :exec
-- Makes place for a newer value of a checkpoint.
DELETE FROM indexer.exact_payloads
WHERE stream = @stream AND ledger_offset = @ledger_offset::bigint AND node_id IS NULL AND interface_id IS NULL
  AND field = ANY (@fields::text[]);

-- name: ExactPayloadsClear :exec
DELETE FROM indexer.exact_payloads WHERE stream = @stream;
