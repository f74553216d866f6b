-- name: CheckpointExactPayloadsForget :exec
-- Makes place for newer values of checkpoints.
DELETE FROM checkpoint_exact_payloads x
USING (SELECT unnest(@ledger_offsets::bigint[]) AS ledger_offset, unnest(@fields::text[]) AS field) gone
WHERE x.ledger_offset = gone.ledger_offset AND x.field = gone.field;
