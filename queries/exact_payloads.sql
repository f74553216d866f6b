-- name: ExactPayloadsForget :exec
-- Makes place for newer values of checkpoints.
DELETE FROM indexer.exact_payloads x
USING (SELECT unnest(@ledger_offsets::bigint[]) AS ledger_offset, unnest(@fields::text[]) AS field) gone
WHERE x.stream = @stream AND x.ledger_offset = gone.ledger_offset AND x.field = gone.field
  AND x.node_id IS NULL AND x.interface_id IS NULL;

-- name: ExactPayloadsClear :exec
DELETE FROM indexer.exact_payloads WHERE stream = @stream;
