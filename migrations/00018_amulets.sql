-- What is minted and burned, read from the network's updates beside the records of the transaction history: fees, burns, rewards, purchases
-- of traffic, mining rounds, and whether the sums of each update agree. Nothing is stored: each row is computed from the facts of its
-- update. Package ledger has the rules for records (docs/sql.md).

-- +goose Up

CREATE FUNCTION amount_if_any(value text) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN value IS NULL THEN 0 ELSE decimal_of(value) END;
COMMENT ON FUNCTION amount_if_any(text) IS 'The amount that a text is; 0: there is none. NULL: it can''t be read.';

CREATE FUNCTION amulet_of(payload jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(payload -> 'amulet', payload);
COMMENT ON FUNCTION amulet_of(jsonb) IS 'The amulet that a payload is: its own, or that of a locked one.';

CREATE VIEW splice_templates WITH (security_invoker = true) AS
SELECT t.template_ref, t.entity_name FROM templates t WHERE t.package_name LIKE 'splice-%';
COMMENT ON VIEW splice_templates IS 'Templates of Splice''s packages.';

-- The summary of a transfer stands in the results of these choices, and again in what they exercise: the outermost counts. A result is large: it is
-- read once.
CREATE VIEW summaries WITH (security_invoker = true) AS
SELECT e.ledger_offset, e.node_id, e.last_descendant_node_id, e.choice, e.choice_argument, e.exercise_result, r.summary
FROM exercised e
CROSS JOIN LATERAL (
    SELECT coalesce(e.exercise_result -> 'summary', e.exercise_result -> 'result' -> 'summary', e.exercise_result -> 'transferResult' -> 'summary') AS summary
    OFFSET 0
) r
WHERE e.choice IN ('AmuletRules_Transfer', 'TransferPreapproval_Send', 'TransferPreapproval_SendV2', 'AmuletRules_BuyMemberTraffic',
                   'AmuletRules_CreateTransferPreapproval', 'AmuletRules_CreateExternalPartySetupProposal', 'TransferPreapproval_Renew')
  AND e.template_ref = ANY (ARRAY(SELECT t.template_ref FROM splice_templates t));
COMMENT ON VIEW summaries IS 'The exercises whose result sums a transfer of amulets up.';

CREATE VIEW outermost_summaries WITH (security_invoker = true) AS
SELECT s.ledger_offset, s.node_id, s.choice, s.choice_argument, s.exercise_result, s.summary,
       coalesce(owner_of(s.choice_argument -> 'transfer' -> 'sender'), owner_of(s.choice_argument -> 'sender'), owner_of(s.choice_argument -> 'provider'),
                (SELECT p.parties[1] FROM exercised e JOIN party_lists p ON p.party_list_ref = e.acting_parties_ref
                 WHERE e.ledger_offset = s.ledger_offset AND e.node_id = s.node_id)) AS party
FROM summaries s
WHERE s.summary IS NOT NULL AND NOT EXISTS (
    -- OFFSET 0 keeps it a look-up by key. PostgreSQL would make a join of it, and read the summaries of all of history for a few updates.
    SELECT FROM summaries o
    WHERE o.ledger_offset = s.ledger_offset AND o.node_id < s.node_id AND o.last_descendant_node_id >= s.node_id AND o.summary IS NOT NULL
    OFFSET 0
);
COMMENT ON VIEW outermost_summaries IS 'summaries without those that repeat what an exercise around them says, with who pays.';

CREATE VIEW ledger.rewards WITH (security_invoker = true) AS
SELECT s.ledger_offset, s.node_id, r.kind, s.party, decimal_of(r.written) AS amount,
       CASE r.kind WHEN 'validator' THEN decimal_of(s.summary ->> 'inputValidatorFaucetAmount') END AS faucet_amount,
       u.record_time, u.update_id
FROM outermost_summaries s
CROSS JOIN LATERAL (
    SELECT 'app' AS kind, s.summary ->> 'inputAppRewardAmount' AS written
    UNION ALL SELECT 'validator', s.summary ->> 'inputValidatorRewardAmount'
    UNION ALL SELECT 'sv', s.summary ->> 'inputSvRewardAmount'
    UNION ALL SELECT 'unclaimed_activity', s.summary ->> 'inputUnclaimedActivityRecordAmount'
    UNION ALL SELECT 'development_fund', s.summary ->> 'inputDevelopmentFundAmount'
) r
JOIN updates u ON u.ledger_offset = s.ledger_offset
WHERE r.written IS NOT NULL AND decimal_of(r.written) IS DISTINCT FROM 0 AND btint8cmp(s.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW ledger.rewards IS 'One row per kind of reward that a transfer of amulets is paid with: rewards are minted when they are used. In the pair of schemas of a network those of all parties, in a participant''s those that it sees. Computed when it is read: narrow it by ledger_offset.
@graphql({"primary_key_columns": ["ledger_offset", "node_id", "kind"]})';
COMMENT ON COLUMN ledger.rewards.ledger_offset IS 'Offset of the update. Indexed.';
COMMENT ON COLUMN ledger.rewards.node_id IS 'Node of the exercise. (ledger_offset, node_id, kind) is unique.';
COMMENT ON COLUMN ledger.rewards.kind IS 'app, validator, sv (super validator), unclaimed_activity or development_fund.';
COMMENT ON COLUMN ledger.rewards.party IS 'Who is rewarded: the sender of the transfer. Not indexed.';
COMMENT ON COLUMN ledger.rewards.amount IS 'How much.';
COMMENT ON COLUMN ledger.rewards.faucet_amount IS 'The part of a validator''s reward that is from faucets. NULL: none is said, or the kind is another.';
COMMENT ON COLUMN ledger.rewards.record_time IS 'When the synchronizer recorded the update. Microseconds, UTC.';
COMMENT ON COLUMN ledger.rewards.update_id IS 'Id of the update.';

CREATE VIEW burned WITH (security_invoker = true) AS
SELECT s.ledger_offset, s.node_id, s.choice, k.kind, s.party, f.holding_fees, f.change_fee, f.output_fees, f.paid, f.minted
FROM outermost_summaries s
CROSS JOIN LATERAL (
    SELECT CASE WHEN s.choice = 'AmuletRules_BuyMemberTraffic' THEN 'traffic'
                WHEN s.choice IN ('AmuletRules_Transfer', 'TransferPreapproval_Send', 'TransferPreapproval_SendV2') THEN 'fees' ELSE 'preapproval' END AS kind
) k
CROSS JOIN LATERAL (
    SELECT decimal_of(s.summary ->> 'holdingFees') AS holding_fees, decimal_of(s.summary ->> 'senderChangeFee') AS change_fee,
           CASE WHEN k.kind = 'traffic' THEN 0 ELSE ( -- in place: a function with a query in it is called for each row
               SELECT CASE WHEN count(decimal_of(x.value #>> '{}')) = count(*) THEN coalesce(sum(decimal_of(x.value #>> '{}')), 0) END
               FROM jsonb_array_elements(CASE WHEN jsonb_typeof(s.summary -> 'outputFees') = 'array' THEN s.summary -> 'outputFees' ELSE '[]' END) x (value)
           ) END AS output_fees,
           CASE WHEN k.kind = 'fees' THEN 0 ELSE decimal_of(s.exercise_result ->> 'amuletPaid') END AS paid,
           amount_if_any(s.summary ->> 'inputAppRewardAmount') + amount_if_any(s.summary ->> 'inputValidatorRewardAmount')
               + amount_if_any(s.summary ->> 'inputSvRewardAmount') + amount_if_any(s.summary ->> 'inputUnclaimedActivityRecordAmount')
               + amount_if_any(s.summary ->> 'inputDevelopmentFundAmount') AS minted
) f
UNION ALL
-- The price of a name is paid to the DSO, which archives it at once.
SELECT e.ledger_offset, e.node_id, e.choice, 'name',
       (SELECT owner_of(t.choice_argument -> 'transfer' -> 'sender') FROM summaries t
        WHERE t.ledger_offset = e.ledger_offset AND t.node_id > e.node_id AND t.node_id <= e.last_descendant_node_id ORDER BY t.node_id LIMIT 1),
       0, 0, 0, decimal_of(amulet_of(c.payload) -> 'amount' ->> 'initialAmount'), 0
FROM exercised e
JOIN created c ON c.ledger_offset = e.ledger_offset AND c.contract_id = text_of(e.exercise_result -> 'amulet')
WHERE e.choice IN ('SubscriptionInitialPayment_Collect', 'SubscriptionPayment_Collect')
  AND e.template_ref = ANY (ARRAY(SELECT t.template_ref FROM splice_templates t))
  AND EXISTS (SELECT FROM exercised a WHERE a.ledger_offset = e.ledger_offset AND a.consuming AND a.contract_id = c.contract_id)
UNION ALL
SELECT e.ledger_offset, e.node_id, e.choice, 'dust', o.owner, 0, 0, 0, o.amount, 0
FROM exercised e
LEFT JOIN LATERAL (
    SELECT text_of(amulet_of(c.payload) -> 'owner') AS owner, decimal_of(amulet_of(c.payload) -> 'amount' ->> 'initialAmount') AS amount
    FROM creations c WHERE c.contract_id = e.contract_id AND c.payload IS NOT NULL LIMIT 1
) o ON true
WHERE e.choice IN ('Amulet_Expire', 'Amulet_ExpireV2', 'LockedAmulet_ExpireAmulet', 'LockedAmulet_ExpireAmuletV2')
  AND e.template_ref = ANY (ARRAY(SELECT t.template_ref FROM amulet_templates t));
COMMENT ON VIEW burned IS 'What is burned, by the exercise that burns it, and which rewards it mints; also 0.';

CREATE VIEW ledger.burns WITH (security_invoker = true) AS
SELECT b.ledger_offset, b.node_id, b.kind, b.party, b.holding_fees + b.change_fee + b.output_fees + b.paid AS amount, b.holding_fees, b.change_fee,
       b.output_fees, b.paid, b.choice, u.record_time, u.update_id
FROM burned b
JOIN updates u ON u.ledger_offset = b.ledger_offset
WHERE (b.holding_fees + b.change_fee + b.output_fees + b.paid) IS DISTINCT FROM 0 AND btint8cmp(b.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW ledger.burns IS 'One row per exercise that burns amulets: the fees of a transfer, what is paid for traffic, for a preapproval or for a name, and what expires because fees have used it up. In the pair of schemas of a network those of all parties, in a participant''s those that it sees. Computed when it is read: narrow it by ledger_offset.
@graphql({"primary_key_columns": ["ledger_offset", "node_id"]})';
COMMENT ON COLUMN ledger.burns.ledger_offset IS 'Offset of the update. Indexed.';
COMMENT ON COLUMN ledger.burns.node_id IS 'Node of the exercise. (ledger_offset, node_id) is unique.';
COMMENT ON COLUMN ledger.burns.kind IS 'fees (of a transfer), traffic, preapproval, name or dust.';
COMMENT ON COLUMN ledger.burns.party IS 'Who pays; with dust the owner. Not indexed. NULL: the creation of what expires is not stored, or no transfer shows who pays for a name.';
COMMENT ON COLUMN ledger.burns.amount IS 'What is burned: the sum of the next four columns. NULL: the creation of what expires is not stored.';
COMMENT ON COLUMN ledger.burns.holding_fees IS 'Holding fees that fell due on what was put in.';
COMMENT ON COLUMN ledger.burns.change_fee IS 'Fee for the payer''s change.';
COMMENT ON COLUMN ledger.burns.output_fees IS 'Fees for what is created, whoever pays them.';
COMMENT ON COLUMN ledger.burns.paid IS 'What is bought for it, or what expires.';
COMMENT ON COLUMN ledger.burns.choice IS 'The choice that burns it.';
COMMENT ON COLUMN ledger.burns.record_time IS 'When the synchronizer recorded the update. Microseconds, UTC.';
COMMENT ON COLUMN ledger.burns.update_id IS 'Id of the update.';

-- Traffic and rounds -----------------------------------------------------------------------------------------------

CREATE VIEW ledger.traffic_purchases WITH (security_invoker = true) AS
SELECT e.ledger_offset, e.node_id, text_of(e.choice_argument -> 'provider') AS buyer, text_of(e.choice_argument -> 'memberId') AS member_id,
       text_of(e.choice_argument -> 'synchronizerId') AS synchronizer_id, integer_of(text_of(e.choice_argument -> 'migrationId')) AS migration_id,
       integer_of(text_of(e.choice_argument -> 'trafficAmount')) AS bytes, decimal_of(e.exercise_result ->> 'amuletPaid') AS amulet_paid,
       integer_of(text_of(e.exercise_result -> 'round' -> 'number')) AS round, u.record_time, u.update_id
FROM exercised e
JOIN updates u ON u.ledger_offset = e.ledger_offset
WHERE e.choice = 'AmuletRules_BuyMemberTraffic' AND e.template_ref = ANY (ARRAY(SELECT t.template_ref FROM splice_templates t))
  AND btint8cmp(e.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW ledger.traffic_purchases IS 'One row per purchase of traffic on a synchronizer. Computed when it is read: narrow it by ledger_offset.
@graphql({"primary_key_columns": ["ledger_offset", "node_id"]})';
COMMENT ON COLUMN ledger.traffic_purchases.ledger_offset IS 'Offset of the update. Indexed.';
COMMENT ON COLUMN ledger.traffic_purchases.node_id IS 'Node of the exercise. (ledger_offset, node_id) is unique.';
COMMENT ON COLUMN ledger.traffic_purchases.buyer IS 'Who pays.';
COMMENT ON COLUMN ledger.traffic_purchases.member_id IS 'The participant, or other member, that may use it.';
COMMENT ON COLUMN ledger.traffic_purchases.synchronizer_id IS 'Where it can be used. Older releases name it otherwise: NULL.';
COMMENT ON COLUMN ledger.traffic_purchases.migration_id IS 'In which migration.';
COMMENT ON COLUMN ledger.traffic_purchases.bytes IS 'How much traffic, in bytes.';
COMMENT ON COLUMN ledger.traffic_purchases.amulet_paid IS 'What is burned for it, without fees.';
COMMENT ON COLUMN ledger.traffic_purchases.round IS 'The mining round. NULL: not said.';
COMMENT ON COLUMN ledger.traffic_purchases.record_time IS 'When the synchronizer recorded the update. Microseconds, UTC.';
COMMENT ON COLUMN ledger.traffic_purchases.update_id IS 'Id of the update.';

CREATE VIEW ledger.mining_rounds WITH (security_invoker = true) AS
SELECT integer_of(text_of(c.payload -> 'round' -> 'number')) AS round, decimal_of(c.payload ->> 'amuletPrice') AS amulet_price,
       ledger.as_timestamptz(text_of(c.payload -> 'opensAt')) AS opens_at, ledger.as_timestamptz(text_of(c.payload -> 'targetClosesAt')) AS target_closes_at,
       c.contract_id, c.ledger_offset, c.node_id, c.record_time
FROM created c
WHERE c.template_ref = ANY (ARRAY(
    SELECT t.template_ref FROM templates t WHERE t.package_name = 'splice-amulet' AND t.module_name = 'Splice.Round' AND t.entity_name = 'OpenMiningRound'))
  AND c.origin = 'transaction' AND btint8cmp(c.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW ledger.mining_rounds IS 'One row per mining round, as it was opened. Rounds whose opening is not stored are missing.
@graphql({"primary_key_columns": ["ledger_offset", "node_id"]})';
COMMENT ON COLUMN ledger.mining_rounds.round IS 'Number of the round.';
COMMENT ON COLUMN ledger.mining_rounds.amulet_price IS 'Price of an amulet in US dollars.';
COMMENT ON COLUMN ledger.mining_rounds.opens_at IS 'When transfers may use it. Microseconds, UTC.';
COMMENT ON COLUMN ledger.mining_rounds.target_closes_at IS 'When it may be closed at the earliest. Microseconds, UTC.';
COMMENT ON COLUMN ledger.mining_rounds.contract_id IS 'Its contract.';
COMMENT ON COLUMN ledger.mining_rounds.ledger_offset IS 'Offset of the update that opened it. Indexed.';
COMMENT ON COLUMN ledger.mining_rounds.node_id IS 'Node of its creation. (ledger_offset, node_id) is unique.';
COMMENT ON COLUMN ledger.mining_rounds.record_time IS 'When the synchronizer recorded the update. Microseconds, UTC.';

-- Sums -------------------------------------------------------------------------------------------------------------

-- A sum is NULL where one of its amounts is not known. What was redacted has none, and says nothing of what was minted or burned. A burn without an
-- amount counts as 0: where a creation is not stored archived is NULL too, and where a result does not say the amount the difference shows it.
CREATE VIEW amulet_sums WITH (security_invoker = true) AS
SELECT x.ledger_offset, CASE WHEN count(x.archived) = count(*) THEN sum(x.archived) END AS archived,
       CASE WHEN count(x.minted) = count(*) THEN sum(x.minted) END AS minted, CASE WHEN count(x.created) = count(*) THEN sum(x.created) END AS created,
       CASE WHEN count(x.burned) = count(*) THEN sum(x.burned) END AS burned
FROM (
    SELECT c.ledger_offset, 0 AS archived, 0 AS minted, decimal_of(amulet_of(c.payload) -> 'amount' ->> 'initialAmount') AS created, 0 AS burned, true AS moves
    FROM created c
    WHERE c.origin = 'transaction' AND c.template_ref = ANY (ARRAY(SELECT t.template_ref FROM amulet_templates t))
    UNION ALL
    SELECT e.ledger_offset, o.amount, 0, 0, 0, true
    FROM exercised e
    LEFT JOIN LATERAL (
        SELECT decimal_of(amulet_of(c.payload) -> 'amount' ->> 'initialAmount') AS amount
        FROM creations c WHERE c.contract_id = e.contract_id AND c.payload IS NOT NULL LIMIT 1
    ) o ON true
    WHERE e.consuming AND e.template_ref = ANY (ARRAY(SELECT t.template_ref FROM amulet_templates t))
    UNION ALL
    SELECT e.ledger_offset, 0, decimal_of(amulet_of(c.payload) -> 'amount' ->> 'initialAmount'), 0, 0, true
    FROM exercised e
    JOIN created c ON c.ledger_offset = e.ledger_offset AND c.contract_id = text_of(e.exercise_result -> 'amuletSum' -> 'amulet')
    WHERE e.choice = 'AmuletRules_Mint' AND e.template_ref = ANY (ARRAY(SELECT t.template_ref FROM splice_templates t)) -- also below a tap
    UNION ALL
    SELECT b.ledger_offset, 0, b.minted, 0, coalesce(b.holding_fees + b.change_fee + b.output_fees + b.paid, 0), true FROM burned b
    UNION ALL
    SELECT e.ledger_offset, 0, NULL, 0, NULL, false
    FROM exercised e
    WHERE e.exercise_result IS NULL AND e.template_ref = ANY (ARRAY(SELECT t.template_ref FROM splice_templates t))
) x
GROUP BY x.ledger_offset HAVING bool_or(x.moves);
COMMENT ON VIEW amulet_sums IS 'ledger.amulet_sums without a bound.';

CREATE VIEW ledger.amulet_sums WITH (security_invoker = true) AS
SELECT s.ledger_offset, s.archived, s.minted, s.created, s.burned, s.archived + s.minted - s.created - s.burned AS difference,
       u.record_time, u.update_id
FROM amulet_sums s
JOIN updates u ON u.ledger_offset = s.ledger_offset
WHERE btint8cmp(s.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW ledger.amulet_sums IS 'One row per update that moves amulets, with sums over all of them. What is archived and minted is created or burned, so difference is 0: where it is not, something was moved in a way that this version does not know. Meant for the pair of schemas of a network; a participant sees only a part of most updates. Computed when it is read: narrow it by ledger_offset.
@graphql({"primary_key_columns": ["ledger_offset"]})';
COMMENT ON COLUMN ledger.amulet_sums.ledger_offset IS 'Offset of the update. Unique. Indexed.';
COMMENT ON COLUMN ledger.amulet_sums.archived IS 'Initial amounts of the amulets, locked or not, that it archives. NULL: the creation of one is not stored, or was redacted.';
COMMENT ON COLUMN ledger.amulet_sums.minted IS 'What it mints: rewards, mints and taps. NULL: something of it was redacted.';
COMMENT ON COLUMN ledger.amulet_sums.created IS 'Initial amounts of the amulets, locked or not, that it creates. NULL: one was redacted.';
COMMENT ON COLUMN ledger.amulet_sums.burned IS 'What it burns: the sum of its rows of ledger.burns that have an amount. NULL: something of it was redacted.';
COMMENT ON COLUMN ledger.amulet_sums.difference IS 'archived + minted - created - burned: 0. NULL: one of them is.';
COMMENT ON COLUMN ledger.amulet_sums.record_time IS 'When the synchronizer recorded the update. Microseconds, UTC.';
COMMENT ON COLUMN ledger.amulet_sums.update_id IS 'Id of the update.';
