-- Transfers that are offered, and the metadata of the token standard: read from what the participant showed. Nothing is stored: each row is
-- computed when it is asked for. Anybody can write what is read here and in the next files, so no value makes a query fail.

-- +goose Up

CREATE FUNCTION meta_of(holder jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN jsonb_typeof(holder -> 'meta' -> 'values') = 'object' THEN holder -> 'meta' -> 'values' ELSE '{}' END;
COMMENT ON FUNCTION meta_of(jsonb) IS 'The metadata of a value of the token standard; empty where it has none.';

CREATE FUNCTION merged_meta(argument jsonb, result jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN meta_of(argument -> 'transfer') || meta_of(argument -> 'extraArgs') || meta_of(argument) || meta_of(result);
COMMENT ON FUNCTION merged_meta(jsonb, jsonb) IS 'The metadata of an exercise, by its argument and its result: of the same key the later one counts.';

CREATE FUNCTION meta_text(meta jsonb, name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN nullif(text_of(meta -> ('splice.lfdecentralizedtrust.org/' || name)), '');
COMMENT ON FUNCTION meta_text(jsonb, text) IS 'What metadata say under one of the standard''s keys. NULL: nothing, or an empty text.';

-- In V1 a party stands where V2 has an account. Nobody owns the special accounts: V1 has a stub party for them.
CREATE FUNCTION owner_of(account jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN nullif(coalesce(text_of(account), text_of(account -> 'owner')),
    'cip-112_no-owner::1220000000000000000000000000000000000000000000000000000000000000abcd');
COMMENT ON FUNCTION owner_of(jsonb) IS 'Who owns an account: of V2 its owner, of V1 the party that it is. NULL: nobody, or not readable.';

-- Instructions -----------------------------------------------------------------------------------------------------

-- Amulets' are read by their payload where their view is not stored, as amulets are.
CREATE VIEW instruction_templates WITH (security_invoker = true) AS
SELECT t.template_ref FROM templates t
WHERE t.package_name = 'splice-amulet' AND t.module_name = 'Splice.AmuletTransferInstruction' AND t.entity_name = 'AmuletTransferInstruction'
UNION
SELECT i.template_ref FROM template_interfaces i
WHERE i.interface_id LIKE '%:Splice.Api.Token.TransferInstructionV1:TransferInstruction'
   OR i.interface_id LIKE '%:Splice.Api.Token.TransferInstructionV2:TransferInstruction';
COMMENT ON VIEW instruction_templates IS 'Templates whose contracts can be transfer instructions.';

CREATE VIEW transfer_instructions WITH (security_invoker = true) AS
SELECT c.ledger_offset, c.node_id, c.contract_id, c.signatories, c.created_at, v.view_value
FROM creations c
CROSS JOIN LATERAL (
    SELECT coalesce((
        SELECT x.view_value
        FROM interface_views x
        WHERE x.ledger_offset = c.ledger_offset AND x.node_id = c.node_id AND coalesce(x.status_code, 0) = 0
          AND (x.interface_id LIKE '%:Splice.Api.Token.TransferInstructionV1:TransferInstruction'
               OR x.interface_id LIKE '%:Splice.Api.Token.TransferInstructionV2:TransferInstruction')
        ORDER BY split_part(x.interface_id, ':', 2)
        LIMIT 1
    ), (
        SELECT jsonb_build_object('transfer', c.payload -> 'transfer') FROM templates t
        WHERE t.template_ref = c.template_ref AND t.package_name = 'splice-amulet' AND jsonb_typeof(c.payload -> 'transfer') = 'object'
    )) AS view_value
    OFFSET 0
) v
WHERE v.view_value IS NOT NULL AND c.template_ref = ANY (ARRAY(SELECT k.template_ref FROM instruction_templates k));
COMMENT ON VIEW transfer_instructions IS 'Creation events of transfer instructions with their view: that of V1, which has a status, where there are both.';

-- What is active is read from the active contracts, by their template, so that WHERE pending reads nothing else.
CREATE VIEW ledger.pending_instructions WITH (security_invoker = true) AS
SELECT i.contract_id, coalesce(text_of(i.view_value -> 'originalInstructionCid'), i.contract_id) AS transfer_id, i.pending,
       CASE WHEN i.pending THEN 'pending'
            WHEN i.ended_offset IS NULL THEN CASE i.moved WHEN 'unassigned' THEN 'reassigning' ELSE 'unknown' END
            WHEN i.choice = 'TransferInstruction_Reject' THEN 'rejected'
            WHEN i.choice = 'TransferInstruction_Withdraw' THEN 'withdrawn'
            WHEN i.output = 'TransferInstructionResult_Failed' THEN 'failed'
            WHEN i.output = 'TransferInstructionResult_Completed' THEN 'completed'
            WHEN i.output = 'TransferInstructionResult_Pending' THEN 'continued'
            ELSE 'archived' END AS status,
       owner_of(i.view_value -> 'transfer' -> 'sender') AS sender, owner_of(i.view_value -> 'transfer' -> 'receiver') AS receiver,
       text_of(i.view_value -> 'transfer' -> 'instrumentId' -> 'id') AS instrument,
       text_of(i.view_value -> 'transfer' -> 'instrumentId' -> 'admin') AS instrument_admin,
       coalesce(text_of(i.view_value -> 'transfer' -> 'instrumentId' -> 'admin') = ANY (i.signatories), false) AS admin_signed,
       decimal_of(text_of(i.view_value -> 'transfer' -> 'amount')) AS amount,
       ledger.as_timestamptz(text_of(i.view_value -> 'transfer' -> 'requestedAt')) AS requested_at,
       ledger.as_timestamptz(text_of(i.view_value -> 'transfer' -> 'executeBefore')) AS execute_before,
       meta_text(meta_of(i.view_value -> 'transfer'), 'reason') AS reason,
       coalesce(i.view_value -> 'status', i.view_value -> 'availableActions') AS waits_for, i.choice,
       i.next_contract_id, i.created_offset, i.created_node_id, i.created_at, i.ended_offset, i.ended_node_id,
       (SELECT u.record_time FROM updates u WHERE u.ledger_offset = i.ended_offset) AS ended_at
FROM (
    SELECT a.contract_id, true AS pending, t.view_value, t.signatories, t.created_at, a.activated_offset AS created_offset,
           a.activated_node_id AS created_node_id, NULL::bigint AS ended_offset, NULL::integer AS ended_node_id, NULL::text AS choice,
           NULL::text AS output, NULL::text AS next_contract_id, NULL::text AS moved
    FROM active_contracts a
    CROSS JOIN LATERAL (
        SELECT x.view_value, x.signatories, x.created_at FROM transfer_instructions x
        WHERE x.ledger_offset = a.activated_offset AND x.node_id = a.activated_node_id LIMIT 1
    ) t
    WHERE a.template_ref = ANY (ARRAY(SELECT k.template_ref FROM instruction_templates k))
      AND btint8cmp(a.activated_offset, (SELECT ledger.latest_offset())) <> 1
      AND NOT EXISTS (SELECT FROM active_contracts o WHERE o.contract_id = a.contract_id
                      AND (o.activated_offset, o.activated_node_id) > (a.activated_offset, a.activated_node_id))
    UNION ALL
    SELECT c.contract_id, false, c.view_value, c.signatories, c.created_at, c.ledger_offset, c.node_id, n.ledger_offset, n.node_id, d.choice,
           d.output, d.next, m.kind
    FROM transfer_instructions c
    LEFT JOIN LATERAL (
        SELECT x.ledger_offset, x.node_id
        FROM archivals x
        WHERE x.contract_id = c.contract_id AND btint8cmp(x.ledger_offset, (SELECT ledger.latest_offset())) <> 1
        ORDER BY x.ledger_offset, x.node_id LIMIT 1
    ) n ON true
    LEFT JOIN LATERAL (
        SELECT e.choice, e.exercise_result -> 'output' ->> 'tag' AS output,
               text_of(e.exercise_result -> 'output' -> 'value' -> 'transferInstructionCid') AS next
        FROM exercised e
        WHERE e.ledger_offset = n.ledger_offset AND e.contract_id = c.contract_id AND e.node_id <= n.node_id AND e.last_descendant_node_id >= n.node_id
          AND e.choice IN ('TransferInstruction_Accept', 'TransferInstruction_Reject', 'TransferInstruction_Withdraw', 'TransferInstruction_Update')
        ORDER BY e.node_id DESC LIMIT 1
    ) d ON true
    LEFT JOIN LATERAL (
        SELECT x.kind
        FROM reassignments x
        WHERE x.contract_id = c.contract_id AND n.ledger_offset IS NULL AND btint8cmp(x.ledger_offset, (SELECT ledger.latest_offset())) <> 1
        -- An assignment can have a lower offset than the unassignment before it; both have the counter of their reassignment.
        ORDER BY x.reassignment_counter DESC, (x.kind = 'unassigned') LIMIT 1
    ) m ON true
    WHERE btint8cmp(c.ledger_offset, (SELECT ledger.latest_offset())) <> 1
      AND NOT EXISTS (SELECT FROM active_contracts a WHERE a.contract_id = c.contract_id)
      AND NOT EXISTS (SELECT FROM creations o WHERE o.contract_id = c.contract_id
                      AND (o.ledger_offset, o.node_id) < (c.ledger_offset, c.node_id))
      -- Of one that was only witnessed the end need not be shown.
      AND (n.ledger_offset IS NOT NULL OR m.kind IS NOT NULL
           OR NOT EXISTS (SELECT FROM created w WHERE w.ledger_offset = c.ledger_offset AND w.node_id = c.node_id AND w.acs_delta = false))
) i;
COMMENT ON VIEW ledger.pending_instructions IS 'One row per transfer instruction, with what has become of it: each contract whose view is stored, and amulets'' by their payload. WHERE pending has those that are active, and is fast. Pending at offset N: status <> ''unknown'' and created_offset <= N and (ended_offset IS NULL or ended_offset > N); one that is pending and has moved only from its last assignment on. One that was only witnessed is here if its end was. Needs --interfaces with TransferInstruction but for amulets, and the shape ledger-effects for status, choice and next_contract_id of those that have ended: with acs-delta their status is archived.
@graphql({"primary_key_columns": ["contract_id"]})';
COMMENT ON COLUMN ledger.pending_instructions.contract_id IS 'The instruction''s contract. Unique. Indexed.';
COMMENT ON COLUMN ledger.pending_instructions.transfer_id IS 'The first instruction of the transfer that this one continues; its own contract if it is the first. The same for all instructions of a transfer.';
COMMENT ON COLUMN ledger.pending_instructions.pending IS 'Whether it is active at ledger.latest_offset().';
COMMENT ON COLUMN ledger.pending_instructions.status IS 'pending, completed (accepted), continued (by next_contract_id), rejected (by the receiver), withdrawn (by the sender), failed, archived (in another way, such as by the administrator when it has expired), reassigning (on its way to another synchronizer), or unknown (it has left the indexer''s scope, or the role did not see its end, and what became of it is not known). One that is pending after execute_before can''t be accepted any more, and what is locked for it stays locked until it is withdrawn or rejected: compare execute_before with the time you mean.';
COMMENT ON COLUMN ledger.pending_instructions.sender IS 'Who sends.';
COMMENT ON COLUMN ledger.pending_instructions.receiver IS 'Who receives.';
COMMENT ON COLUMN ledger.pending_instructions.instrument IS 'Id of the instrument.';
COMMENT ON COLUMN ledger.pending_instructions.instrument_admin IS 'The instrument''s administrator.';
COMMENT ON COLUMN ledger.pending_instructions.admin_signed IS 'Whether the administrator signed the instruction. False: it may be forged.';
COMMENT ON COLUMN ledger.pending_instructions.amount IS 'What is offered.';
COMMENT ON COLUMN ledger.pending_instructions.requested_at IS 'When it was requested. Microseconds, UTC.';
COMMENT ON COLUMN ledger.pending_instructions.execute_before IS 'Until when it can be accepted. Microseconds, UTC.';
COMMENT ON COLUMN ledger.pending_instructions.reason IS 'The reason that the transfer''s metadata give. NULL: none.';
COMMENT ON COLUMN ledger.pending_instructions.waits_for IS 'What it waits for, as its view says when it is made: of V1 the status, of V2 the actions that are available. NULL: read from an amulet''s payload.';
COMMENT ON COLUMN ledger.pending_instructions.choice IS 'The choice of the standard that ended it. NULL: none.';
COMMENT ON COLUMN ledger.pending_instructions.next_contract_id IS 'With continued: the instruction that takes its place.';
COMMENT ON COLUMN ledger.pending_instructions.created_offset IS 'Offset of its creation event, or of the assignment since which it is active where it is.';
COMMENT ON COLUMN ledger.pending_instructions.created_node_id IS 'Node of that event: (created_offset, created_node_id) is the row in ledger.created_events.';
COMMENT ON COLUMN ledger.pending_instructions.created_at IS 'Ledger time of its creation. Microseconds, UTC.';
COMMENT ON COLUMN ledger.pending_instructions.ended_offset IS 'Offset at which it was archived. NULL: it was not, or that is not known.';
COMMENT ON COLUMN ledger.pending_instructions.ended_node_id IS 'Node of the event that archived it.';
COMMENT ON COLUMN ledger.pending_instructions.ended_at IS 'Record time of the update at ended_offset. Costs a look-up per row.';
