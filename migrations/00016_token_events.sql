-- What moved: the token standard's choices, metadata and events. Each row is computed from the facts of its update when it is asked for, by the
-- rules that stand here and nowhere else. docs/sql.md says what has to be subscribed.

-- +goose Up

-- Exercises that explain what moved --------------------------------------------------------------------------------
-- The kind decides the label: transfer, or the label itself where it is the same for everybody. Names of choices count whatever their
-- interface is, so V2 is read here too.

CREATE VIEW token_choices WITH (security_invoker = true) AS
SELECT e.ledger_offset, e.node_id, e.last_descendant_node_id, e.contract_id, e.choice, e.choice_argument, e.exercise_result, m.meta,
       k.kind, s.sender, m.is_instruction, i.view_value AS instruction
FROM exercised e
CROSS JOIN LATERAL (
    SELECT merged_meta(e.choice_argument, e.exercise_result) AS meta,
           e.choice IN ('TransferInstruction_Accept', 'TransferInstruction_Reject', 'TransferInstruction_Withdraw', 'TransferInstruction_Update') AS is_instruction
    OFFSET 0
) m
LEFT JOIN LATERAL (
    SELECT t.view_value FROM transfer_instructions t WHERE m.is_instruction AND t.contract_id = e.contract_id ORDER BY t.ledger_offset + 0 LIMIT 1
) i ON true
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN m.is_instruction THEN
            CASE WHEN i.view_value IS NULL THEN NULL
                 WHEN e.exercise_result -> 'output' ->> 'tag' = 'TransferInstructionResult_Completed' THEN 'transfer'
                 WHEN e.exercise_result -> 'output' ->> 'tag' IN ('TransferInstructionResult_Pending', 'TransferInstructionResult_Failed') THEN 'change' END
        WHEN e.choice = 'TransferFactory_Transfer' THEN 'transfer'
        WHEN e.choice = 'BurnMintFactory_BurnMint' THEN 'change'
        ELSE CASE meta_text(m.meta, 'tx-kind')
            WHEN 'transfer' THEN 'transfer'
            WHEN 'merge-split' THEN 'change' WHEN 'burn' THEN 'change' WHEN 'mint' THEN 'change'
            WHEN 'unlock' THEN 'Unlock' WHEN 'expire-dust' THEN 'ExpireDust' WHEN 'settle-V2-allocation' THEN 'SettleV2Allocation' END
    END AS kind
) w
CROSS JOIN LATERAL (
    SELECT CASE WHEN w.kind = 'transfer'
        THEN coalesce(owner_of(i.view_value -> 'transfer' -> 'sender'), meta_text(m.meta, 'sender'), owner_of(e.choice_argument -> 'transfer' -> 'sender')) END AS sender
) s
CROSS JOIN LATERAL (
    SELECT CASE w.kind WHEN 'change' THEN CASE meta_text(m.meta, 'tx-kind') WHEN 'burn' THEN 'Burn' WHEN 'mint' THEN 'Mint' ELSE 'MergeSplit' END
        ELSE w.kind END AS kind
) k
WHERE e.choice <> 'EventLog_HoldingsChange' AND (w.kind <> 'transfer' OR s.sender IS NOT NULL);
COMMENT ON VIEW token_choices IS 'The exercises that say what moved below them, by the rules of the token standard''s V1: by the name of the choice, or by the key tx-kind of their metadata.';

-- Changes ----------------------------------------------------------------------------------------------------------
-- What is archived is known by the last creation event before: a contract that was assigned has several, which say the same, and a wider scope says more. A
-- reassignment changes what is held where the contract is then active nowhere, or was not before. "+ 0" has PostgreSQL find a contract's
-- events by its id: by offset, which it prefers where nothing was analyzed yet, it would read all events before.

CREATE VIEW holding_creations WITH (security_invoker = true) AS
SELECT c.contract_id, c.ledger_offset, c.node_id
FROM creations c
WHERE c.template_ref = ANY (ARRAY(SELECT k.template_ref FROM holding_templates k));
COMMENT ON VIEW holding_creations IS 'Creation events of contracts whose template can be that of a holding.';

CREATE FUNCTION active_before(contract_id text, ledger_offset bigint, node_id integer) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    SELECT CASE WHEN EXISTS (
        SELECT FROM archivals a
        WHERE a.contract_id = active_before.contract_id AND (a.ledger_offset + 0, a.node_id) < (active_before.ledger_offset, active_before.node_id)
    ) THEN NULL ELSE count(*) FILTER (WHERE l.activates) END
    FROM (
        SELECT DISTINCT ON (x.synchronizer_ref) x.activates
        FROM (
            SELECT c.ledger_offset, c.node_id, coalesce(c.synchronizer_ref, 0) AS synchronizer_ref, true AS activates FROM created c
            WHERE c.contract_id = active_before.contract_id
              AND (c.reassignment_counter IS NOT NULL OR c.origin <> 'snapshot' AND (c.origin = 'assignment' OR c.acs_delta IS NOT FALSE))
            UNION ALL
            SELECT r.ledger_offset, r.node_id, r.source_ref, false FROM reassignments r
            WHERE r.contract_id = active_before.contract_id AND r.kind = 'unassigned' AND r.created_offset IS NULL
            UNION ALL
            SELECT d.ledger_offset, d.node_id, d.synchronizer_ref, false FROM resync_deactivations d WHERE d.contract_id = active_before.contract_id
        ) x
        WHERE (x.ledger_offset + 0, x.node_id) < (active_before.ledger_offset, active_before.node_id)
        ORDER BY x.synchronizer_ref, x.ledger_offset DESC, x.node_id DESC
    ) l
);
COMMENT ON FUNCTION active_before(text, bigint, integer) IS 'On how many synchronizers a contract is active before an event. NULL: it is archived, also where the unassignment from another synchronizer is still to come.';

CREATE VIEW holding_changes WITH (security_invoker = true) AS
SELECT x.ledger_offset, x.node_id, x.contract_id, x.created, x.moved, h.owner, h.instrument, h.instrument_admin, h.admin_signed, h.amount, h.locked
FROM (
    SELECT c.ledger_offset, c.node_id, c.contract_id, true AS created, false AS moved, c.ledger_offset AS of_offset, c.node_id AS of_node_id
    FROM created c
    WHERE c.origin = 'transaction' AND c.template_ref = ANY (ARRAY(SELECT k.template_ref FROM holding_templates k))
    UNION ALL
    SELECT a.ledger_offset, a.node_id, a.contract_id, false, false, o.ledger_offset, o.node_id
    FROM archivals a
    CROSS JOIN LATERAL (
        SELECT c.ledger_offset, c.node_id FROM holding_creations c
        WHERE c.contract_id = a.contract_id AND (c.ledger_offset + 0, c.node_id) <= (a.ledger_offset, a.node_id)
        ORDER BY c.ledger_offset + 0 DESC, c.node_id DESC LIMIT 1
    ) o
    UNION ALL
    SELECT r.ledger_offset, r.node_id, r.contract_id, r.kind = 'assigned', true, o.ledger_offset, o.node_id
    FROM reassignments r
    CROSS JOIN LATERAL (
        SELECT c.ledger_offset, c.node_id FROM holding_creations c
        WHERE c.contract_id = r.contract_id AND (c.ledger_offset + 0, c.node_id) <= (r.ledger_offset, r.node_id)
        ORDER BY c.ledger_offset + 0 DESC, c.node_id DESC LIMIT 1
    ) o
    WHERE r.created_offset IS NULL AND active_before(r.contract_id, r.ledger_offset, r.node_id) = CASE r.kind WHEN 'assigned' THEN 0 ELSE 1 END
) x
CROSS JOIN LATERAL (
    SELECT e.owner, e.instrument, e.instrument_admin, e.admin_signed, e.amount, e.locked
    FROM holding_events e WHERE e.ledger_offset = x.of_offset AND e.node_id = x.of_node_id LIMIT 1
) h;
COMMENT ON VIEW holding_changes IS 'Each event that makes a holding, or ends one. Of a contract whose creation is not stored nothing is known.';

-- Logs: who administers an instrument may say which holdings of an account changed, and why. A log counts only if that party acted.
CREATE VIEW holdings_logs WITH (security_invoker = true) AS
SELECT e.ledger_offset, e.node_id, text_of(e.choice_argument -> 'admin') AS admin, owner_of(e.choice_argument -> 'account') AS owner,
       CASE WHEN jsonb_typeof(e.choice_argument -> 'inputHoldingCids') = 'array' THEN e.choice_argument -> 'inputHoldingCids' ELSE '[]' END AS inputs,
       CASE WHEN jsonb_typeof(e.choice_argument -> 'outputHoldingCids') = 'array' THEN e.choice_argument -> 'outputHoldingCids' ELSE '[]' END AS outputs,
       CASE WHEN jsonb_typeof(e.choice_argument -> 'transferLegSides') = 'array' THEN e.choice_argument -> 'transferLegSides' ELSE '[]' END AS legs,
       meta_of(e.choice_argument -> 'extraArgs') AS meta
FROM exercised e
WHERE e.choice = 'EventLog_HoldingsChange' AND e.interface_id LIKE '%:Splice.Api.Token.TransferEventsV2:EventLog'
  AND text_of(e.choice_argument -> 'admin') = ANY ((SELECT p.parties FROM party_lists p WHERE p.party_list_ref = e.acting_parties_ref)::text[]);
COMMENT ON VIEW holdings_logs IS 'The exercises of EventLog_HoldingsChange (V2) that the administrator made.';

-- Movements --------------------------------------------------------------------------------------------------------

-- Of exercises in one another the outermost one explains all that is below it; a contract that it makes and ends is no change. What none
-- explains may be explained by a log of its owner's; not by one that shows a change that an exercise explains too, whose legs are then those
-- of more than is left. The rest stands for itself. So each change is in one movement.
-- Amounts of different instruments are never added. A sum over an amount that can't be read is NULL.
CREATE FUNCTION token_movements(at_offset bigint)
RETURNS TABLE (node_id integer, party text, instrument text, instrument_admin text, admin_signed boolean, standard text, kind text, choice text,
    choice_argument jsonb, exercise_result jsonb, sender text, created_amount numeric, archived_amount numeric, locked_amount numeric,
    created_holdings text[], archived_holdings text[], receivers text[], received numeric[], net_amount numeric, burned numeric, meta jsonb,
    instruction_id text, instruction jsonb, legs jsonb)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
WITH changes AS MATERIALIZED (
    SELECT c.node_id, c.contract_id, c.created, c.moved, c.owner, c.instrument, c.instrument_admin, c.admin_signed, c.amount, c.locked
    FROM holding_changes c WHERE c.ledger_offset = at_offset
), choices AS MATERIALIZED (
    SELECT t.* FROM token_choices t WHERE t.ledger_offset = at_offset AND EXISTS (SELECT FROM changes)
), outermost AS MATERIALIZED (
    SELECT t.* FROM choices t
    WHERE NOT EXISTS (SELECT FROM choices o WHERE o.node_id < t.node_id AND o.last_descendant_node_id >= t.node_id)
), logs AS MATERIALIZED (
    SELECT l.* FROM holdings_logs l
    WHERE l.ledger_offset = at_offset AND EXISTS (SELECT FROM changes) AND NOT EXISTS (
        SELECT FROM changes c JOIN outermost t ON c.node_id >= t.node_id AND c.node_id <= t.last_descendant_node_id
        WHERE NOT c.moved AND c.owner = l.owner AND jsonb_exists(CASE WHEN c.created THEN l.outputs ELSE l.inputs END, c.contract_id)
    )
), placed AS (
    SELECT c.*, t.node_id AS choice_node, l.node_id AS log_node, coalesce(t.node_id, l.node_id, c.node_id) AS event_node
    FROM changes c
    LEFT JOIN outermost t ON c.node_id >= t.node_id AND c.node_id <= t.last_descendant_node_id AND NOT c.moved
    LEFT JOIN LATERAL (
        SELECT x.node_id FROM logs x
        WHERE t.node_id IS NULL AND NOT c.moved AND x.owner = c.owner AND x.admin = c.instrument_admin
          AND jsonb_exists(CASE WHEN c.created THEN x.outputs ELSE x.inputs END, c.contract_id)
        ORDER BY x.node_id LIMIT 1
    ) l ON true
), counted AS (
    SELECT p.*, count(*) OVER (PARTITION BY p.event_node, p.contract_id) AS times FROM placed p
), owned AS MATERIALIZED (
    SELECT k.event_node, k.choice_node, k.log_node, k.owner, k.instrument, k.instrument_admin, k.admin_signed,
           CASE WHEN k.choice_node IS NULL AND k.log_node IS NULL THEN
               min(CASE WHEN k.moved THEN CASE WHEN k.created THEN 'Assigned' ELSE 'Unassigned' END
                        WHEN k.created THEN 'Create' ELSE 'Archive' END) END AS raw_kind,
           CASE WHEN count(*) FILTER (WHERE k.created AND k.amount IS NULL) = 0
                THEN coalesce(sum(k.amount) FILTER (WHERE k.created), 0) END AS created_amount,
           CASE WHEN count(*) FILTER (WHERE NOT k.created AND k.amount IS NULL) = 0
                THEN coalesce(sum(k.amount) FILTER (WHERE NOT k.created), 0) END AS archived_amount,
           CASE WHEN count(*) FILTER (WHERE k.locked IS NULL OR k.locked AND k.amount IS NULL) = 0
                THEN coalesce(sum(CASE WHEN k.created THEN k.amount ELSE -k.amount END) FILTER (WHERE k.locked), 0) END AS locked_amount,
           coalesce(array_agg(k.contract_id ORDER BY k.node_id) FILTER (WHERE k.created), '{}') AS created_holdings,
           coalesce(array_agg(k.contract_id ORDER BY k.node_id) FILTER (WHERE NOT k.created), '{}') AS archived_holdings
    FROM counted k
    WHERE k.times = 1
    GROUP BY k.event_node, k.choice_node, k.log_node, k.owner, k.instrument, k.instrument_admin, k.admin_signed
)
SELECT o.event_node, o.owner, o.instrument, o.instrument_admin, o.admin_signed,
       CASE WHEN o.choice_node IS NOT NULL THEN 'V1' WHEN o.log_node IS NOT NULL THEN 'V2' END,
       CASE WHEN o.log_node IS NOT NULL THEN 'log' ELSE coalesce(t.kind, o.raw_kind) END,
       t.choice, t.choice_argument, t.exercise_result, t.sender,
       o.created_amount, o.archived_amount, o.locked_amount, o.created_holdings, o.archived_holdings, r.receivers, r.received, r.net_amount,
       CASE WHEN r.instruments = 1 OR text_of(t.choice_argument -> 'transfer' -> 'instrumentId' -> 'id') = o.instrument
            THEN CASE WHEN meta_text(t.meta, 'burned') IS NULL THEN 0 ELSE decimal_of(meta_text(t.meta, 'burned')) END ELSE 0 END,
       coalesce(t.meta, l.meta, '{}'), CASE WHEN t.is_instruction THEN t.contract_id END, t.instruction,
       CASE WHEN l.node_id IS NOT NULL THEN (
           SELECT coalesce(jsonb_agg(g.leg ORDER BY g.n), '[]') FROM jsonb_array_elements(l.legs) WITH ORDINALITY g (leg, n)
           WHERE text_of(g.leg -> 'instrumentId') = o.instrument) END
FROM owned o
LEFT JOIN outermost t ON t.node_id = o.choice_node
LEFT JOIN logs l ON l.node_id = o.log_node
LEFT JOIN LATERAL (
    SELECT array_agg(x.owner ORDER BY x.owner) FILTER (WHERE x.receives) AS receivers,
           array_agg(x.created_amount ORDER BY x.owner) FILTER (WHERE x.receives) AS received,
           CASE WHEN count(x.created_amount - x.archived_amount) = count(*) THEN sum(x.created_amount - x.archived_amount) END AS net_amount,
           (SELECT count(DISTINCT (i.instrument, i.instrument_admin)) FROM owned i WHERE i.choice_node = o.choice_node) AS instruments
    FROM (
        SELECT i.owner, i.created_amount, i.archived_amount, i.owner <> t.sender AND i.created_holdings <> '{}' AS receives
        FROM owned i
        WHERE i.choice_node = o.choice_node AND i.instrument IS NOT DISTINCT FROM o.instrument
          AND i.instrument_admin IS NOT DISTINCT FROM o.instrument_admin AND i.admin_signed = o.admin_signed
    ) x
) r ON o.choice_node IS NOT NULL;
END;
COMMENT ON FUNCTION token_movements(bigint) IS 'What the update at an offset moved: one row per movement, owner and instrument. A movement is an exercise that explains changes of holdings (standard V1), a log of its administrator''s (V2), or a change that nothing explains (NULL). net_amount is what the movement adds to the instrument, for all owners that are seen.';

CREATE FUNCTION owned_movements(at_offset bigint)
RETURNS TABLE (node_id integer, party text, instrument text, instrument_admin text, admin_signed boolean, label text,
    counterparties text[], counterparty_amounts numeric[], amount numeric, created_amount numeric, archived_amount numeric,
    locked_amount numeric, created_holdings text[], archived_holdings text[], burned_amount numeric, minted_amount numeric,
    reason text, meta jsonb, standard text, choice text, choice_argument jsonb, exercise_result jsonb, instruction_id text,
    transfer jsonb, legs jsonb)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT m.node_id, m.party, m.instrument, m.instrument_admin, m.admin_signed,
       CASE m.kind
           WHEN 'transfer' THEN CASE WHEN m.receivers IS NULL THEN 'MergeSplit' WHEN m.sender = m.party THEN 'TransferOut' ELSE 'TransferIn' END
           WHEN 'log' THEN CASE WHEN g.sent AND g.got THEN 'Settlement' WHEN g.sent THEN 'TransferOut' WHEN g.got THEN 'TransferIn'
               WHEN g.burns THEN 'Burn' WHEN g.mints THEN 'Mint' ELSE 'MergeSplit' END
           ELSE m.kind END AS label,
       CASE m.kind
           WHEN 'transfer' THEN CASE WHEN m.receivers IS NULL THEN '{}' WHEN m.sender = m.party THEN m.receivers ELSE ARRAY[m.sender] END
           WHEN 'log' THEN coalesce(g.counterparties, '{}') ELSE '{}' END AS counterparties,
       CASE m.kind WHEN 'transfer' THEN CASE WHEN m.sender = m.party AND m.receivers IS NOT NULL THEN m.received END
           WHEN 'log' THEN g.amounts END AS counterparty_amounts,
       m.created_amount - m.archived_amount AS amount, m.created_amount, m.archived_amount, m.locked_amount,
       m.created_holdings, m.archived_holdings,
       CASE m.kind WHEN 'log' THEN g.burned
           WHEN 'transfer' THEN CASE WHEN m.receivers IS NULL OR m.sender = m.party THEN m.burned ELSE 0 END
           WHEN 'MergeSplit' THEN m.burned WHEN 'Burn' THEN m.burned WHEN 'Mint' THEN m.burned END AS burned_amount,
       CASE m.kind WHEN 'log' THEN g.minted
           WHEN 'transfer' THEN CASE WHEN m.receivers IS NULL OR m.sender = m.party THEN m.net_amount + m.burned ELSE 0 END
           WHEN 'MergeSplit' THEN m.net_amount + m.burned WHEN 'Burn' THEN m.net_amount + m.burned
           WHEN 'Mint' THEN m.net_amount + m.burned END AS minted_amount,
       coalesce(meta_text(m.meta, 'reason'), g.reason) AS reason,
       m.meta - '{splice.lfdecentralizedtrust.org/tx-kind,splice.lfdecentralizedtrust.org/sender,splice.lfdecentralizedtrust.org/reason,splice.lfdecentralizedtrust.org/burned}'::text[] AS meta,
       m.standard, m.choice, m.choice_argument, m.exercise_result,
       coalesce(m.instruction_id, text_of(m.exercise_result -> 'output' -> 'value' -> 'transferInstructionCid')) AS instruction_id,
       CASE WHEN m.kind <> 'log' THEN coalesce(m.instruction -> 'transfer', m.choice_argument -> 'transfer') END AS transfer, m.legs
FROM token_movements(at_offset) m
CROSS JOIN LATERAL (
    SELECT bool_or(x.side = 'SenderSide') FILTER (WHERE x.other IS NOT NULL) AS sent,
           bool_or(x.side = 'ReceiverSide') FILTER (WHERE x.other IS NOT NULL) AS got,
           bool_or(x.id = 'cip-112/burn') AS burns, bool_or(x.id = 'cip-112/mint') AS mints,
           CASE WHEN count(*) FILTER (WHERE x.id = 'cip-112/burn' AND x.amount IS NULL) = 0
                THEN coalesce(sum(x.amount) FILTER (WHERE x.id = 'cip-112/burn'), 0) END AS burned,
           CASE WHEN count(*) FILTER (WHERE x.id = 'cip-112/mint' AND x.amount IS NULL) = 0
                THEN coalesce(sum(x.amount) FILTER (WHERE x.id = 'cip-112/mint'), 0) END AS minted,
           array_agg(x.other ORDER BY x.other, x.n) FILTER (WHERE x.other IS NOT NULL) AS counterparties,
           array_agg(CASE x.side WHEN 'ReceiverSide' THEN -x.amount ELSE x.amount END ORDER BY x.other, x.n) FILTER (WHERE x.other IS NOT NULL) AS amounts,
           min(meta_text(meta_of(x.leg), 'reason')) AS reason
    FROM (
        SELECT e.n, e.leg, text_of(e.leg -> 'side') AS side, text_of(e.leg -> 'otherside' -> 'id') AS id, decimal_of(text_of(e.leg -> 'amount')) AS amount,
               nullif(owner_of(e.leg -> 'otherside'), m.party) AS other
        FROM jsonb_array_elements(m.legs) WITH ORDINALITY e (leg, n)
    ) x
) g
WHERE m.party IS NOT NULL;
END;
COMMENT ON FUNCTION owned_movements(bigint) IS 'token_movements as each owner of holdings sees them: the rows of ledger.token_events of an update.';

-- The names of the columns are repeated for sqlc, which does not know those of a function.
CREATE VIEW ledger.token_events WITH (security_invoker = true) AS
SELECT u.ledger_offset, m.node_id, m.party, m.instrument, m.instrument_admin, m.admin_signed, m.label, m.counterparties,
       m.counterparty_amounts, m.amount, m.created_amount, m.archived_amount, m.locked_amount, m.created_holdings,
       m.archived_holdings, m.burned_amount, m.minted_amount, m.reason, m.meta, m.standard, m.choice, m.choice_argument,
       m.exercise_result, m.instruction_id, m.transfer, m.legs, u.record_time, u.update_id
FROM updates u
CROSS JOIN LATERAL owned_movements(u.ledger_offset) m (
    node_id, party, instrument, instrument_admin, admin_signed, label, counterparties, counterparty_amounts, amount,
    created_amount, archived_amount, locked_amount, created_holdings, archived_holdings, burned_amount, minted_amount,
    reason, meta, standard, choice, choice_argument, exercise_result, instruction_id, transfer, legs)
WHERE btint8cmp(u.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW ledger.token_events IS 'What moved, by the rules of the token standard (V1 and V2): one row per movement, instrument and party whose holdings it changes. A movement is an exercise that explains changes of holdings, with all that is below it; a log of the instrument''s administrator (V2) of changes that no such exercise explains; or a single change that nothing explains. Each change of a holding is in one movement; a contract that a movement makes and ends is in none. It is computed when it is read: narrow it by ledger_offset, and ask for the rows of one party with ledger.token_events_of. Needs the shape ledger-effects (with acs-delta every row is Create or Archive), and --interfaces with Holding and TransferInstruction: see docs/sql.md. Of parties that the indexer does not read for only a part is seen.';
COMMENT ON COLUMN ledger.token_events.ledger_offset IS 'Offset of the update. Indexed.';
COMMENT ON COLUMN ledger.token_events.node_id IS 'Node of the exercise that is the movement, or of the change itself. (ledger_offset, node_id, party, instrument, instrument_admin, admin_signed) is unique.';
COMMENT ON COLUMN ledger.token_events.party IS 'The owner of the holdings that change. For the rows of one party use ledger.token_events_of, which is faster.';
COMMENT ON COLUMN ledger.token_events.instrument IS 'Id of the instrument. Amounts of different instruments are never added.';
COMMENT ON COLUMN ledger.token_events.instrument_admin IS 'The instrument''s administrator. Not proved unless admin_signed is true.';
COMMENT ON COLUMN ledger.token_events.admin_signed IS 'Whether the administrator signed the holdings. False: they may be forged.';
COMMENT ON COLUMN ledger.token_events.label IS 'TransferOut (the party sends), TransferIn, MergeSplit (nobody else receives: also a transfer that is offered, rejected, withdrawn or expired), Mint, Burn, Unlock, ExpireDust, SettleV2Allocation, Settlement (a log with legs both ways); of what nothing explains Create, Archive, and Assigned or Unassigned where a reassignment begins or ends what is held.';
COMMENT ON COLUMN ledger.token_events.counterparties IS 'With TransferOut the receivers, with TransferIn the sender, with Settlement both. Else empty.';
COMMENT ON COLUMN ledger.token_events.counterparty_amounts IS 'What each counterparty gets, in the order of counterparties. Of a log also what comes from each, negative. NULL: with TransferIn of V1, and without counterparties.';
COMMENT ON COLUMN ledger.token_events.amount IS 'What the movement adds to what the party holds: created_amount less archived_amount. Its sum up to an offset is what the party holds at it, but for a contract that is archived before it is unassigned elsewhere, which ledger.holdings has until then, and for what a change of the scope took in, which no movement brought. Of a party that the indexer does not read for it is not: what was merely witnessed counts here, and ledger.holdings leaves it out.';
COMMENT ON COLUMN ledger.token_events.created_amount IS 'Sum of the party''s holdings that it makes. NULL: an amount of them can''t be read, so amount is NULL too.';
COMMENT ON COLUMN ledger.token_events.archived_amount IS 'Sum of the party''s holdings that it ends. NULL: as of created_amount.';
COMMENT ON COLUMN ledger.token_events.locked_amount IS 'The part of amount that is locked: positive where it is locked, negative where it is unlocked. NULL: an amount can''t be read, or whether a holding is locked.';
COMMENT ON COLUMN ledger.token_events.created_holdings IS 'Contracts of the party''s holdings that it makes, in the order of their nodes. Empty: none.';
COMMENT ON COLUMN ledger.token_events.archived_holdings IS 'Contracts of the party''s holdings that it ends. Holdings whose creation is not stored are missing.';
COMMENT ON COLUMN ledger.token_events.burned_amount IS 'What the movement burns of the instrument, as its metadata say, or the legs to the burn account. 0 with TransferIn of V1. NULL: nothing is said, or not in readable numbers.';
COMMENT ON COLUMN ledger.token_events.minted_amount IS 'What the movement mints of the instrument: what all owners that are seen have more after it, and what it burns. Negative: less is made than is ended, and no metadata say that it was burned. 0 with TransferIn of V1. NULL: nothing is said, or not in readable numbers.';
COMMENT ON COLUMN ledger.token_events.reason IS 'The reason that metadata give, in the sender''s words. NULL: none.';
COMMENT ON COLUMN ledger.token_events.meta IS 'The other metadata of the movement, merged from argument and result. Empty: none.';
COMMENT ON COLUMN ledger.token_events.standard IS 'What explains the movement: V1 (an exercise), V2 (a log). NULL: nothing.';
COMMENT ON COLUMN ledger.token_events.choice IS 'The choice of the exercise that explains it. NULL: none does.';
COMMENT ON COLUMN ledger.token_events.choice_argument IS 'Its argument.';
COMMENT ON COLUMN ledger.token_events.exercise_result IS 'Its result.';
COMMENT ON COLUMN ledger.token_events.instruction_id IS 'The transfer instruction that the movement settles or aborts, or makes: its row is in ledger.pending_instructions. NULL: none.';
COMMENT ON COLUMN ledger.token_events.transfer IS 'The transfer as the instruction or the choice has it: sender, receiver, amount, instrumentId, requestedAt, executeBefore, meta. NULL: neither says.';
COMMENT ON COLUMN ledger.token_events.legs IS 'Of a log: its legs of this instrument, as the administrator wrote them. NULL otherwise.';
COMMENT ON COLUMN ledger.token_events.record_time IS 'When the synchronizer recorded the update. Microseconds, UTC.';
COMMENT ON COLUMN ledger.token_events.update_id IS 'Id of the update.';

CREATE VIEW movements_of_updates WITH (security_invoker = true) AS
SELECT u.ledger_offset, u.record_time, u.update_id, m.*
FROM updates u
CROSS JOIN LATERAL token_movements(u.ledger_offset) m (
    node_id, party, instrument, instrument_admin, admin_signed, standard, kind, choice, choice_argument, exercise_result, sender, created_amount,
    archived_amount, locked_amount, created_holdings, archived_holdings, receivers, received, net_amount, burned, meta, instruction_id, instruction, legs)
WHERE btint8cmp(u.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW movements_of_updates IS 'token_movements of each update that is shown.';

-- A transfer is what one account gets from another. The logs of both sides have each leg: one of them counts. Several settlements of an
-- update can use the same ids.
CREATE VIEW ledger.token_transfers WITH (security_invoker = true) AS
SELECT DISTINCT ON (m.ledger_offset, x.once, sender, receiver, x.amount, m.instrument_admin, m.instrument, m.admin_signed)
       m.ledger_offset, m.node_id,
       CASE WHEN m.kind = 'transfer' THEN m.sender WHEN x.side = 0 THEN m.party ELSE x.other END AS sender,
       CASE WHEN m.kind = 'transfer' OR x.side = 1 THEN m.party ELSE x.other END AS receiver,
       m.instrument, m.instrument_admin, m.admin_signed, CASE WHEN m.kind = 'transfer' THEN m.created_amount ELSE x.amount END AS amount,
       coalesce(x.reason, meta_text(m.meta, 'reason')) AS reason, m.standard, m.choice, m.instruction_id, x.leg_id, m.record_time, m.update_id
FROM movements_of_updates m
CROSS JOIN LATERAL (
    SELECT m.node_id || ' ' || m.party AS once, NULL::text AS other, NULL::numeric AS amount, NULL::text AS reason, NULL::text AS leg_id, 0 AS side
    WHERE m.kind = 'transfer' AND m.party <> m.sender AND m.created_holdings <> '{}'
    UNION ALL
    SELECT coalesce(s.id, ''), s.other, s.amount, s.reason, s.id, s.side
    FROM jsonb_array_elements(m.legs) e (leg)
    CROSS JOIN LATERAL (
        SELECT CASE text_of(e.leg -> 'side') WHEN 'SenderSide' THEN 0 WHEN 'ReceiverSide' THEN 1 END AS side, owner_of(e.leg -> 'otherside') AS other,
               decimal_of(text_of(e.leg -> 'amount')) AS amount, meta_text(meta_of(e.leg), 'reason') AS reason,
               text_of(e.leg -> 'transferLegId') AS id
    ) s
    WHERE s.side IS NOT NULL AND s.other <> m.party
) x
ORDER BY m.ledger_offset, x.once, sender, receiver, x.amount, m.instrument_admin, m.instrument, m.admin_signed, x.side, m.node_id;
COMMENT ON VIEW ledger.token_transfers IS 'One row per transfer: what one party gets from another in a movement of ledger.token_events, whose comment says what is needed. What is offered is no transfer until it is accepted. Computed when it is read: narrow it by ledger_offset.';
COMMENT ON COLUMN ledger.token_transfers.ledger_offset IS 'Offset of the update. Indexed.';
COMMENT ON COLUMN ledger.token_transfers.node_id IS 'Node of the movement.';
COMMENT ON COLUMN ledger.token_transfers.sender IS 'Who sends.';
COMMENT ON COLUMN ledger.token_transfers.receiver IS 'Who receives; another party than the sender.';
COMMENT ON COLUMN ledger.token_transfers.instrument IS 'Id of the instrument.';
COMMENT ON COLUMN ledger.token_transfers.instrument_admin IS 'The instrument''s administrator.';
COMMENT ON COLUMN ledger.token_transfers.admin_signed IS 'Whether the administrator signed the receiver''s holdings; of a leg, those of the side whose log has it.';
COMMENT ON COLUMN ledger.token_transfers.amount IS 'What the receiver gets: the sum of its new holdings, or the amount of the leg.';
COMMENT ON COLUMN ledger.token_transfers.reason IS 'The reason that metadata give. NULL: none.';
COMMENT ON COLUMN ledger.token_transfers.standard IS 'V1: an exercise shows it. V2: a leg of a log does.';
COMMENT ON COLUMN ledger.token_transfers.choice IS 'The choice of the exercise. NULL: a leg of a log.';
COMMENT ON COLUMN ledger.token_transfers.instruction_id IS 'The transfer instruction that it settles. NULL: none, or a leg of a log.';
COMMENT ON COLUMN ledger.token_transfers.leg_id IS 'Id of the leg, which both sides have. NULL: an exercise shows it.';
COMMENT ON COLUMN ledger.token_transfers.record_time IS 'When the synchronizer recorded the update. Microseconds, UTC.';
COMMENT ON COLUMN ledger.token_transfers.update_id IS 'Id of the update.';

-- Movements of a party ---------------------------------------------------------------------------------------------

-- Each event that makes or ends a party's holding makes or ends an activation of it, but for two kinds. A contract that
-- the participant only witnessed, or that began and ended in one transaction, is never active: its creation has an
-- acs_delta of false, and is found by the lists of stakeholders that holdings of the party have. And an end is none of
-- an activation if a resync deactivated the contract, or it was active elsewhere, where that is not known: reassignments are not
-- read, or the active contracts were not known at the beginning. Nor does a role that is limited to parties see the
-- activations of contracts that others hold. There all updates are looked at that the party sees, or all.
-- Joins, and no arrays: PostgreSQL (seen with 15) keeps the array of the party before where several are asked for in
-- one query.
CREATE FUNCTION ends_are_kept() RETURNS boolean LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER
SET search_path FROM CURRENT AS $$
BEGIN
    RETURN ledger.state_floor() IS NOT NULL
        AND NOT EXISTS (SELECT FROM resync_deactivations)
        AND NOT EXISTS (SELECT FROM scopes s WHERE s.definition -> 'reassignments' = 'false')
        AND NOT EXISTS (SELECT FROM created c WHERE c.acs_delta = false AND c.stakeholders_ref IS NULL);
END
$$;
COMMENT ON FUNCTION ends_are_kept() IS 'Whether each end of a contract that was active is the end of an activation of it, and the stakeholders of all others are known.';

-- The last branch is rarely read: CASE has the planner expect few rows of it. Conditions on the offset reach all branches.
CREATE FUNCTION holding_offsets(party text) RETURNS TABLE (ledger_offset bigint) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
WITH witnessed AS NOT MATERIALIZED (
    SELECT c.ledger_offset, c.contract_id FROM created c
    WHERE c.acs_delta = false AND c.stakeholders_ref IN (
        SELECT s.stakeholders_ref FROM positions p JOIN position_stakeholders s ON s.position_id = p.position_id
        WHERE p.owner = holding_offsets.party)
)
SELECT a.activated_offset FROM positions p JOIN active_contracts a ON a.position_id = p.position_id
WHERE p.owner = holding_offsets.party
UNION
SELECT l.activated_offset FROM positions p JOIN lifetimes l ON l.position_id = p.position_id
WHERE p.owner = holding_offsets.party
UNION
SELECT l.deactivated_offset FROM positions p JOIN lifetimes l ON l.position_id = p.position_id
WHERE p.owner = holding_offsets.party
UNION
SELECT w.ledger_offset FROM witnessed w
UNION
SELECT a.ledger_offset FROM witnessed w JOIN archived a ON a.contract_id = w.contract_id
UNION
SELECT e.ledger_offset FROM witnessed w JOIN exercised e ON e.contract_id = w.contract_id AND e.consuming
UNION
SELECT u.ledger_offset FROM updates u
WHERE (SELECT count(*) FROM unlimited WHERE ends_are_kept()) = 0
  AND CASE WHEN (SELECT ledger.state_floor()) IS NULL
            OR (SELECT bool_or(holding_offsets.party = ANY (l.parties)) FROM party_lists l
                WHERE l.party_list_ref IN (u.seen_by_ref, u.seen_also_by_ref, u.seen_by_others_ref)) THEN 1 END = 1;
END;
COMMENT ON FUNCTION holding_offsets(text) IS 'The offsets of all updates that make or end a holding of a party, and of some others.';

-- The updates are not joined: PostgreSQL, which knows little of partitioned tables, would compute the movements of all of them first. In order,
-- so that the last movements are found without the others.
CREATE FUNCTION ledger.token_events_of(party text) RETURNS SETOF ledger.token_events LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT h.ledger_offset, m.node_id, m.party, m.instrument, m.instrument_admin, m.admin_signed, m.label, m.counterparties,
           m.counterparty_amounts, m.amount, m.created_amount, m.archived_amount, m.locked_amount, m.created_holdings,
           m.archived_holdings, m.burned_amount, m.minted_amount, m.reason, m.meta, m.standard, m.choice, m.choice_argument,
           m.exercise_result, m.instruction_id, m.transfer, m.legs,
           (SELECT u.record_time FROM updates u WHERE u.ledger_offset = h.ledger_offset),
           (SELECT u.update_id FROM updates u WHERE u.ledger_offset = h.ledger_offset)
    FROM (SELECT o.ledger_offset FROM holding_offsets(token_events_of.party) o ORDER BY o.ledger_offset DESC) h
    CROSS JOIN LATERAL owned_movements(h.ledger_offset) m
    WHERE m.party = token_events_of.party AND btint8cmp(h.ledger_offset, (SELECT ledger.latest_offset())) <> 1
      AND EXISTS (SELECT FROM updates u WHERE u.ledger_offset = h.ledger_offset OFFSET 0); END;
COMMENT ON FUNCTION ledger.token_events_of(text) IS 'The rows of ledger.token_events of one party. Only updates that make or end a holding of the party are looked at, found by an index. A role that is limited to parties looks at all updates that it and the party see, and so does everybody after a change of the scope that took something away, without --reassignments, or where ledger.state_floor() is NULL: there the party has to be a stakeholder of the holdings that it owns, and a range of ledger_offset helps.';
