-- name: CheckpointExactPayloadsForget :exec
-- Removes the exact values of checkpoints that newer values replace.
DELETE FROM checkpoint_exact_payloads x
USING (SELECT unnest(@ledger_offsets::bigint[]) AS ledger_offset, unnest(@fields::text[]) AS field) gone
WHERE x.ledger_offset = gone.ledger_offset AND x.field = gone.field;
