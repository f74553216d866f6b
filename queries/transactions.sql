-- name: TransactionsCopy :copyfrom
INSERT INTO indexer.transactions (seq, event_id, kind, transaction_type, date, domain_ref, offset_text, round, unit_word, fingerprint, extra)
VALUES (@seq, @event_id, @kind, @transaction_type, @date, @domain_ref, @offset_text, @round, @unit_word, @fingerprint, @extra);

-- name: TransfersCopy :copyfrom
INSERT INTO indexer.transfers (seq, date, round, sender, sender_change_fee, sender_change_amount, sender_fee, holding_fees, input_amount,
    input_app_reward_amount, input_validator_reward_amount, input_sv_reward_amount, input_validator_faucet_amount, description, transfer_kind,
    instruction_receiver, instruction_amount, instruction_cid, receivers, balance_changes, sender_extra, extra)
VALUES (@seq, @date, @round, @sender, @sender_change_fee, @sender_change_amount, @sender_fee, @holding_fees, @input_amount,
    @input_app_reward_amount, @input_validator_reward_amount, @input_sv_reward_amount, @input_validator_faucet_amount, @description, @transfer_kind,
    @instruction_receiver, @instruction_amount, @instruction_cid, @receivers, @balance_changes, @sender_extra, @extra);

-- name: TransferReceiversCopy :copyfrom
INSERT INTO indexer.transfer_receivers (seq, ordinal, party, amount, receiver_fee, extra)
VALUES (@seq, @ordinal, @party, @amount, @receiver_fee, @extra);

-- name: BalanceChangesCopy :copyfrom
INSERT INTO indexer.balance_changes (seq, ordinal, date, round, party, change_to_initial_amount_as_of_round_zero, change_to_holding_fees_rate, extra)
VALUES (@seq, @ordinal, @date, @round, @party, @change_to_initial_amount_as_of_round_zero, @change_to_holding_fees_rate, @extra);

-- name: MintsCopy :copyfrom
INSERT INTO indexer.mints (seq, date, round, owner, amount, extra) VALUES (@seq, @date, @round, @owner, @amount, @extra);

-- name: TapsCopy :copyfrom
INSERT INTO indexer.taps (seq, date, round, owner, amount, extra) VALUES (@seq, @date, @round, @owner, @amount, @extra);

-- name: AbortedTransferInstructionsCopy :copyfrom
INSERT INTO indexer.aborted_transfer_instructions (seq, date, instruction_cid, abort_kind, extra)
VALUES (@seq, @date, @instruction_cid, @abort_kind, @extra);

-- name: UnknownTransactionsCopy :copyfrom
INSERT INTO indexer.unknown_transactions (seq, raw) VALUES (@seq, @raw);

-- name: TransactionsStoredWithIDs :many
-- Whether some event ids stand on a stored record. What is looked for is a subquery of its own, here and below, so that
-- each id is found by index: the list has no statistics, and neither has a table that was just filled.
SELECT w.event_id::text AS event_id,
    ((SELECT t.seq FROM indexer.transactions t WHERE t.event_id = w.event_id LIMIT 1) IS NOT NULL)::boolean AS stored
FROM (SELECT DISTINCT unnest(@event_ids::text[]) AS event_id) w;

-- name: TransactionsMetWithIDs :many
-- Those of some event ids that stand on a record that was met since the history is read again; where it is not, on a stored
-- one. They are mostly none.
SELECT w.event_id::text AS event_id
FROM (SELECT unnest(@event_ids::text[]) AS event_id) w
WHERE (
    SELECT t.seq FROM indexer.transactions t
    WHERE t.event_id = w.event_id AND (
        NOT (SELECT p.rereading FROM indexer.history_position p)
        OR (SELECT s.seq FROM indexer.history_sightings s WHERE s.seq = t.seq) IS NOT NULL
    )
    LIMIT 1
) IS NOT NULL;

-- name: TransactionsShownWithIDs :many
-- On how many records that the service shows, as far as that is known, each of some event ids stands; 2 stands for more.
-- While the history is read again, those are the ones that were met.
SELECT w.event_id::text AS event_id, (
    SELECT count(*) FROM (
        SELECT t.seq FROM indexer.transactions t
        WHERE t.event_id = w.event_id AND CASE WHEN (SELECT p.rereading FROM indexer.history_position p)
            THEN (SELECT s.seq FROM indexer.history_sightings s WHERE s.seq = t.seq) IS NOT NULL
            ELSE (SELECT g.seq FROM indexer.history_gone g WHERE g.seq = t.seq) IS NULL
        END
        LIMIT 2
    ) found
) AS records
FROM (SELECT DISTINCT unnest(@event_ids::text[]) AS event_id) w;
