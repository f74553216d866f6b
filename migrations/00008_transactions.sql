-- The transaction history: transactions has one row per record, and a table for each kind has what that kind adds. The key is seq, which
-- numbers records in the service's order, from 1. No table is partitioned: the history is never pruned, and rows are looked up by seq, which
-- grows, or by the hash of an event id.

-- +goose Up

CREATE TABLE network (
    only_row    boolean NOT NULL DEFAULT true CHECK (only_row),
    network_id  text NOT NULL CHECK (network_id <> ''),
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (only_row)
);
COMMENT ON TABLE network IS 'The network whose transaction history these tables hold, by the party that operates it. Empty while the service has not sent it.';

CREATE TABLE transactions_position (
    only_row    boolean NOT NULL DEFAULT true CHECK (only_row),
    revision    bigint  NOT NULL,
    last_seq    bigint  NOT NULL CHECK (last_seq >= 0),
    rereading   boolean NOT NULL,
    PRIMARY KEY (only_row)
);
INSERT INTO transactions_position (revision, last_seq, rereading) VALUES (0, 0, false);
COMMENT ON TABLE transactions_position IS 'How far the transaction history has been read. It moves by compare-and-swap of revision, in the transaction that writes the records. revision 0: not begun.';
COMMENT ON COLUMN transactions_position.rereading IS 'The records were cleared, because the service''s no longer fitted them, and its end was not reached since. Shown in ledger.stream_checkpoints.';

CREATE VIEW ledger.stream_checkpoints WITH (security_invoker = true) AS
SELECT c.stream, c.ledger_offset, c.event_id, c.updated_at,
       (SELECT u.record_time FROM updates u
        WHERE u.ledger_offset <= c.ledger_offset AND u.record_time IS NOT NULL ORDER BY u.ledger_offset DESC LIMIT 1) AS record_time,
       c.stream = 'transactions' AND coalesce((SELECT p.rereading FROM transactions_position p), false) AS rereading
FROM checkpoints c;
COMMENT ON VIEW ledger.stream_checkpoints IS 'Where each stream resumes.
@graphql({"primary_key_columns": ["stream"]})';
COMMENT ON COLUMN ledger.stream_checkpoints.stream IS 'updates or transactions.';
COMMENT ON COLUMN ledger.stream_checkpoints.ledger_offset IS 'Of updates: the offset up to which everything is stored and shown. Of transactions, where they follow from the updates of a network: the offset up to which they are derived; else NULL.';
COMMENT ON COLUMN ledger.stream_checkpoints.event_id IS 'Of transactions: the event id of the newest record, after which reading resumes. NULL: there is none; reading starts from the beginning.';
COMMENT ON COLUMN ledger.stream_checkpoints.updated_at IS 'When the checkpoint last moved (clock of the database).';
COMMENT ON COLUMN ledger.stream_checkpoints.record_time IS 'Of updates: record time of the last update up to ledger_offset, which says how far in time the data go. On a quiet ledger it stays while the offset grows. NULL: there is no update yet. Of transactions the same of the updates that they follow from; else NULL: records have a date.';
COMMENT ON COLUMN ledger.stream_checkpoints.rereading IS 'Of transactions: the records were cleared, because the service''s no longer fitted them, and are read again from the beginning. Until that is done the later ones are missing, and what follows from them. Of updates false.';

-- Records: written once, never updated -----------------------------------------------------------------------------

-- It is computed for each record that is written, for the index: LIKE and rtrim on the whole id would take half as long again, a regular
-- expression three times as long.
CREATE FUNCTION update_id_of(event_id text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN starts_with(event_id, '#') AND split_part(event_id, ':', -1) <> ''
        AND translate(split_part(event_id, ':', -1), '0123456789', '') = ''
    THEN nullif(substr(left(event_id, -1 - length(split_part(event_id, ':', -1))), 2), '') END;
COMMENT ON FUNCTION update_id_of(text) IS 'The update id in an event id, which is #, the update id, a colon and the node id. NULL for an id of another form.';

CREATE TABLE transactions (
    seq              bigint PRIMARY KEY,
    event_id         text   NOT NULL,
    kind             text   NOT NULL,
    transaction_type text,
    date             timestamptz,
    domain_ref       integer,
    offset_text      text,
    round            bigint,
    unit_word        text,
    fingerprint      bigint NOT NULL,
    extra            jsonb,
    rules            integer,
    exact            jsonb, -- of all rows of the record
    ledger_offset    bigint
);
CREATE INDEX transactions_exact ON transactions (seq) WHERE exact IS NOT NULL;
CREATE INDEX transactions_offset ON transactions (ledger_offset, seq) WHERE ledger_offset IS NOT NULL;
CREATE INDEX transactions_event_id ON transactions USING hash (event_id);
CREATE INDEX transactions_update_id ON transactions USING hash (update_id_of(event_id));
CREATE INDEX transactions_date ON transactions USING brin (date);
COMMENT ON TABLE transactions IS 'One row per record of the transaction history. Shown as ledger.transactions; fingerprint identifies a record that is served again.';

-- The event id comes from a join. The planner drops the join if a query does not name the id, and starts with it if the query searches
-- by the id.
CREATE VIEW ledger.transactions WITH (security_invoker = true) AS
SELECT x.seq, x.event_id, update_id_of(x.event_id) AS update_id, x.kind, x.date, s.synchronizer_id AS domain_id, x.offset_text, x.round, x.transaction_type,
       x.unit_word, x.extra,
       CASE WHEN x.rules IS NULL THEN 'transactions' ELSE 'updates' END AS source, x.rules, x.ledger_offset AS update_offset
FROM transactions x
LEFT JOIN synchronizers s ON s.synchronizer_ref = x.domain_ref;
COMMENT ON VIEW ledger.transactions IS 'One row per record of the transaction history, of every kind: the records of the whole network as a Scan service shows them, not those of one participant. The relation of each kind has the rest of a record under the same seq. Records are complete up to the checkpoint in ledger.stream_checkpoints, as far as the service has them. If they no longer fit what the service shows, they are cleared and read again from the beginning: until that is done, which ledger.stream_checkpoints says, the later ones are missing.
@graphql({"primary_key_columns": ["seq"], "foreign_keys": [{"local_columns": ["update_id"], "foreign_schema": "ledger", "foreign_table": "updates", "foreign_columns": ["update_id"]}]})';
COMMENT ON COLUMN ledger.transactions.seq IS 'Number of the record, in the service''s order, without gaps, from 1. A record''s number does not change, unless the history of a service had to be read again from its beginning, or the record followed from an update of a network that a reset removed: ledger.rewrites says so. Unique.';
COMMENT ON COLUMN ledger.transactions.event_id IS 'Id of the event: #, the update id, a colon and the node id. Two records can share one, so join by seq. Ids do not grow with time. Indexed. Of a record that is derived from updates the node id is that of exercised_events, which all Scan services number alike; the history''s was of the service''s participant.';
COMMENT ON COLUMN ledger.transactions.update_id IS 'Id of the record''s update, from event_id. It is also in ledger.updates if the participant saw the update. NULL: event_id has another form. Indexed.';
COMMENT ON COLUMN ledger.transactions.kind IS 'transfer, mint, tap, abort_transfer_instruction, or unknown: see ledger.unknown_transactions.';
COMMENT ON COLUMN ledger.transactions.date IS 'When it took place (ledger time). Roughly in the order of seq. Microseconds, UTC. NULL only where the kind is unknown.';
COMMENT ON COLUMN ledger.transactions.domain_id IS 'The synchronizer. NULL: the service did not say.';
COMMENT ON COLUMN ledger.transactions.offset_text IS 'Offset in the ledger of the service''s own participant, as it was sent. It means nothing elsewhere, and differs between services. NULL: the service did not say, or the record is derived from updates, in which it is not.';
COMMENT ON COLUMN ledger.transactions.round IS 'The mining round. NULL where the service did not say, as for mints and aborted instructions.';
COMMENT ON COLUMN ledger.transactions.transaction_type IS 'The service''s own name of the kind, such as devnet_tap. NULL: it sent none.';
COMMENT ON COLUMN ledger.transactions.unit_word IS 'The service''s word for the unit of value in the names of its fields: coin or amulet. NULL: the record has no such field.';
COMMENT ON COLUMN ledger.transactions.extra IS 'Fields of the record that the service sent and this version does not know. NULL: none.';
COMMENT ON COLUMN ledger.transactions.source IS 'Where the record is from: transactions, as a Scan service of Splice 0.6 or earlier served it; updates, derived from the stored updates of the network.';
COMMENT ON COLUMN ledger.transactions.rules IS 'Version of the rules by which the record follows from its update. Records of updates that were pruned can''t be derived again, so they keep the version of then. NULL: a service sent the record.';
COMMENT ON COLUMN ledger.transactions.update_offset IS 'Offset of the update that the record follows from. Indexed. NULL: a service sent the record.';

CREATE TABLE transfers (
    seq                           bigint PRIMARY KEY,
    date                          timestamptz NOT NULL,
    round                         bigint,
    sender                        text NOT NULL,
    sender_change_fee             numeric,
    sender_change_amount          numeric,
    sender_fee                    numeric,
    holding_fees                  numeric,
    input_amount                  numeric,
    input_app_reward_amount       numeric,
    input_validator_reward_amount numeric,
    input_sv_reward_amount        numeric,
    input_validator_faucet_amount numeric,
    description                   text,
    transfer_kind                 text,
    instruction_receiver          text,
    instruction_amount            numeric,
    instruction_cid               text,
    receivers                     integer, -- how many; NULL: the list was left out
    balance_changes               integer, -- how many; NULL: the list was left out
    sender_extra                  jsonb,
    extra                         jsonb
);
CREATE INDEX transfers_date ON transfers USING brin (date);
COMMENT ON TABLE transfers IS 'What records of the kind transfer add. Shown as ledger.transfers.';

CREATE VIEW ledger.transfers WITH (security_invoker = true) AS
SELECT x.seq, t.event_id, update_id_of(t.event_id) AS update_id, x.date, x.round, x.sender, x.sender_change_fee, x.sender_change_amount, x.sender_fee, x.holding_fees,
       x.input_amount, x.input_app_reward_amount, x.input_validator_reward_amount, x.input_sv_reward_amount,
       x.input_validator_faucet_amount, x.description, x.transfer_kind, x.instruction_receiver, x.instruction_amount,
       x.instruction_cid, x.receivers, x.balance_changes, x.sender_extra, x.extra,
       CASE WHEN t.rules IS NULL THEN 'transactions' ELSE 'updates' END AS source
FROM transfers x
LEFT JOIN transactions t ON t.seq = x.seq;
COMMENT ON VIEW ledger.transfers IS 'One row per transfer: one sender pays any number of receivers, see ledger.transfer_receivers; a transfer that only merges the sender''s holdings has none. Amounts and fees have exactly as many digits as were sent. For the transfers of one party use ledger.party_transfers.
@graphql({"primary_key_columns": ["seq"], "foreign_keys": [{"local_columns": ["seq"], "foreign_schema": "ledger", "foreign_table": "transactions", "foreign_columns": ["seq"]}]})';
COMMENT ON COLUMN ledger.transfers.seq IS 'Which record this is. Unique.';
COMMENT ON COLUMN ledger.transfers.event_id IS 'Event id of the record; another record can have the same. Indexed.';
COMMENT ON COLUMN ledger.transfers.update_id IS 'Id of the transfer''s update, as in ledger.transactions. Not indexed: search it there, and join by seq.';
COMMENT ON COLUMN ledger.transfers.date IS 'When it took place. Microseconds, UTC.';
COMMENT ON COLUMN ledger.transfers.round IS 'The mining round. NULL: the service did not say. Services say 0 of a choice of the token standard that sums nothing up (Splice 0.5.16 and later); derived from updates it is the round of what was created, NULL if that is not known.';
COMMENT ON COLUMN ledger.transfers.sender IS 'The party that pays. Not indexed here: see ledger.party_transfers.';
COMMENT ON COLUMN ledger.transfers.sender_change_fee IS 'Fee for the sender''s change. NULL: left out.';
COMMENT ON COLUMN ledger.transfers.sender_change_amount IS 'What the sender gets back as change. NULL: left out.';
COMMENT ON COLUMN ledger.transfers.sender_fee IS 'The fees that the sender pays for the contracts that the transfer creates. NULL: left out.';
COMMENT ON COLUMN ledger.transfers.holding_fees IS 'Holding fees that fell due on what the sender put in. NULL: left out.';
COMMENT ON COLUMN ledger.transfers.input_amount IS 'What the sender put in from its holdings. NULL: left out. Of a choice that sums nothing up services say the amount moved, or 0 of an instruction; derived from updates it is what was archived, NULL where the creation of a part of it is not stored.';
COMMENT ON COLUMN ledger.transfers.input_app_reward_amount IS 'What the sender put in from app rewards. NULL: left out.';
COMMENT ON COLUMN ledger.transfers.input_validator_reward_amount IS 'What the sender put in from validator rewards. NULL: left out.';
COMMENT ON COLUMN ledger.transfers.input_sv_reward_amount IS 'What the sender put in from super-validator rewards. NULL: left out.';
COMMENT ON COLUMN ledger.transfers.input_validator_faucet_amount IS 'What the sender put in from validator faucets. NULL: left out.';
COMMENT ON COLUMN ledger.transfers.description IS 'What the transfer is for, in the sender''s words. NULL: none was sent. Characters that no text of a database can hold stand as U+FFFD: see ledger.exact_payloads.';
COMMENT ON COLUMN ledger.transfers.transfer_kind IS 'create_transfer_instruction, transfer_instruction_accept, preapproval_send, or what later services send. NULL: left out, as for plain transfers.';
COMMENT ON COLUMN ledger.transfers.instruction_receiver IS 'Receiver of the transfer instruction that this transfer makes or settles. NULL: there is none.';
COMMENT ON COLUMN ledger.transfers.instruction_amount IS 'Amount of that instruction. NULL: there is none.';
COMMENT ON COLUMN ledger.transfers.instruction_cid IS 'Contract id of that instruction. NULL: there is none.';
COMMENT ON COLUMN ledger.transfers.receivers IS 'How many rows ledger.transfer_receivers has of it. NULL: the service left the list out.';
COMMENT ON COLUMN ledger.transfers.balance_changes IS 'How many rows ledger.balance_changes has of it: 0 with recent services. NULL: the service left the list out, or, derived from updates, the creation of a part of what was archived is not stored.';
COMMENT ON COLUMN ledger.transfers.sender_extra IS 'Fields of the sender that the service sent and this version does not know. NULL: none.';
COMMENT ON COLUMN ledger.transfers.extra IS 'Fields of the transfer that the service sent and this version does not know. NULL: none.';
COMMENT ON COLUMN ledger.transfers.source IS 'As in ledger.transactions.';

CREATE TABLE transfer_receivers (
    seq          bigint  NOT NULL,
    ordinal      integer NOT NULL,
    party        text    NOT NULL,
    amount       numeric NOT NULL,
    receiver_fee numeric,
    extra        jsonb,
    PRIMARY KEY (seq, ordinal)
);
COMMENT ON TABLE transfer_receivers IS 'The receivers of transfers. Shown as ledger.transfer_receivers.';

CREATE VIEW ledger.transfer_receivers WITH (security_invoker = true) AS
SELECT x.seq, t.event_id, x.ordinal, x.party, x.amount, x.receiver_fee, x.amount - x.receiver_fee AS net_amount, x.extra,
       CASE WHEN t.rules IS NULL THEN 'transactions' ELSE 'updates' END AS source
FROM transfer_receivers x
LEFT JOIN transactions t ON t.seq = x.seq;
COMMENT ON VIEW ledger.transfer_receivers IS 'One row per receiver of a transfer. The service usually merges what a receiver gets in one transfer, so a party seldom has two rows of it.
@graphql({"primary_key_columns": ["seq", "ordinal"], "foreign_keys": [{"local_columns": ["seq"], "foreign_schema": "ledger", "foreign_table": "transfers", "foreign_columns": ["seq"]}]})';
COMMENT ON COLUMN ledger.transfer_receivers.seq IS 'Which transfer this belongs to.';
COMMENT ON COLUMN ledger.transfer_receivers.event_id IS 'Event id of the transfer; another record can have the same. Indexed.';
COMMENT ON COLUMN ledger.transfer_receivers.ordinal IS 'Place in the service''s list, from 0. (seq, ordinal) is unique.';
COMMENT ON COLUMN ledger.transfer_receivers.party IS 'The party that is paid. Not indexed here: see ledger.party_transfers.';
COMMENT ON COLUMN ledger.transfer_receivers.amount IS 'What is sent to it, before its part of the fees is taken off: it gets net_amount.';
COMMENT ON COLUMN ledger.transfer_receivers.receiver_fee IS 'Its part of the fees, which is taken off amount. NULL: left out.';
COMMENT ON COLUMN ledger.transfer_receivers.net_amount IS 'What it gets: amount less receiver_fee, exactly. NULL: receiver_fee was left out.';
COMMENT ON COLUMN ledger.transfer_receivers.extra IS 'Fields that the service sent and this version does not know. NULL: none.';
COMMENT ON COLUMN ledger.transfer_receivers.source IS 'As in ledger.transactions.';

CREATE TABLE balance_changes (
    seq                                       bigint      NOT NULL,
    ordinal                                   integer     NOT NULL,
    date                                      timestamptz NOT NULL,
    round                                     bigint,
    party                                     text        NOT NULL,
    change_to_initial_amount_as_of_round_zero numeric     NOT NULL,
    change_to_holding_fees_rate               numeric     NOT NULL,
    extra                                     jsonb,
    PRIMARY KEY (seq, ordinal)
);
COMMENT ON TABLE balance_changes IS 'The balance changes that came with transfers. Shown as ledger.balance_changes.';

CREATE VIEW ledger.balance_changes WITH (security_invoker = true) AS
SELECT x.seq, t.event_id, x.ordinal, x.date, x.round, x.party, x.change_to_initial_amount_as_of_round_zero,
       x.change_to_holding_fees_rate, x.extra
FROM balance_changes x
LEFT JOIN transactions t ON t.seq = x.seq;
COMMENT ON VIEW ledger.balance_changes IS 'One row per balance change that the service reported with a transfer: recent services report none. Taps, mints, expiry and everything else that is not a transfer have none, so their sum is not what a party holds: see ledger.reported_balance_at and ledger.holdings.
@graphql({"primary_key_columns": ["seq", "ordinal"], "foreign_keys": [{"local_columns": ["seq"], "foreign_schema": "ledger", "foreign_table": "transfers", "foreign_columns": ["seq"]}]})';
COMMENT ON COLUMN ledger.balance_changes.seq IS 'Which transfer this belongs to.';
COMMENT ON COLUMN ledger.balance_changes.event_id IS 'Event id of the transfer; another record can have the same. Indexed.';
COMMENT ON COLUMN ledger.balance_changes.ordinal IS 'Place in the service''s list, from 0. (seq, ordinal) is unique.';
COMMENT ON COLUMN ledger.balance_changes.date IS 'When the transfer took place. Microseconds, UTC.';
COMMENT ON COLUMN ledger.balance_changes.round IS 'The mining round of the transfer. NULL: the service did not say.';
COMMENT ON COLUMN ledger.balance_changes.party IS 'The party whose balance changes.';
COMMENT ON COLUMN ledger.balance_changes.change_to_initial_amount_as_of_round_zero IS 'What is added to its amount, as of round 0: as if holding fees had been due since round 0.';
COMMENT ON COLUMN ledger.balance_changes.change_to_holding_fees_rate IS 'What is added to its holding fees per round.';
COMMENT ON COLUMN ledger.balance_changes.extra IS 'Fields that the service sent and this version does not know. NULL: none.';

CREATE TABLE mints (
    seq    bigint PRIMARY KEY,
    date   timestamptz NOT NULL,
    round  bigint,
    owner  text    NOT NULL,
    amount numeric NOT NULL,
    extra  jsonb
);
COMMENT ON TABLE mints IS 'What records of the kind mint add. Shown as ledger.mints.';

CREATE VIEW ledger.mints WITH (security_invoker = true) AS
SELECT x.seq, t.event_id, x.date, x.round, x.owner, x.amount, x.extra,
       CASE WHEN t.rules IS NULL THEN 'transactions' ELSE 'updates' END AS source
FROM mints x
LEFT JOIN transactions t ON t.seq = x.seq;
COMMENT ON VIEW ledger.mints IS 'One row per mint.
@graphql({"primary_key_columns": ["seq"], "foreign_keys": [{"local_columns": ["seq"], "foreign_schema": "ledger", "foreign_table": "transactions", "foreign_columns": ["seq"]}]})';
COMMENT ON COLUMN ledger.mints.seq IS 'Which record this is. Unique.';
COMMENT ON COLUMN ledger.mints.event_id IS 'Event id of the record; another record can have the same. Indexed.';
COMMENT ON COLUMN ledger.mints.date IS 'When it took place. Microseconds, UTC.';
COMMENT ON COLUMN ledger.mints.round IS 'The mining round. NULL where the service did not say, as is usual for mints.';
COMMENT ON COLUMN ledger.mints.owner IS 'The party that owns what was minted.';
COMMENT ON COLUMN ledger.mints.amount IS 'How much was minted.';
COMMENT ON COLUMN ledger.mints.extra IS 'Fields of the mint that the service sent and this version does not know. NULL: none.';
COMMENT ON COLUMN ledger.mints.source IS 'As in ledger.transactions.';

CREATE TABLE taps (LIKE mints INCLUDING ALL);
COMMENT ON TABLE taps IS 'What records of the kind tap add. Shown as ledger.taps.';

CREATE VIEW ledger.taps WITH (security_invoker = true) AS
SELECT x.seq, t.event_id, x.date, x.round, x.owner, x.amount, x.extra,
       CASE WHEN t.rules IS NULL THEN 'transactions' ELSE 'updates' END AS source
FROM taps x
LEFT JOIN transactions t ON t.seq = x.seq;
COMMENT ON VIEW ledger.taps IS 'One row per tap: coins that a party on a test network created for itself.
@graphql({"primary_key_columns": ["seq"], "foreign_keys": [{"local_columns": ["seq"], "foreign_schema": "ledger", "foreign_table": "transactions", "foreign_columns": ["seq"]}]})';
COMMENT ON COLUMN ledger.taps.seq IS 'Which record this is. Unique.';
COMMENT ON COLUMN ledger.taps.event_id IS 'Event id of the record; another record can have the same. Indexed.';
COMMENT ON COLUMN ledger.taps.date IS 'When it took place. Microseconds, UTC.';
COMMENT ON COLUMN ledger.taps.round IS 'The mining round. NULL: the service did not say.';
COMMENT ON COLUMN ledger.taps.owner IS 'The party that owns what was tapped.';
COMMENT ON COLUMN ledger.taps.amount IS 'How much was tapped.';
COMMENT ON COLUMN ledger.taps.extra IS 'Fields of the tap that the service sent and this version does not know. NULL: none.';
COMMENT ON COLUMN ledger.taps.source IS 'As in ledger.transactions.';

CREATE TABLE aborted_transfer_instructions (
    seq             bigint PRIMARY KEY,
    date            timestamptz NOT NULL,
    instruction_cid text NOT NULL,
    abort_kind      text,
    extra           jsonb
);
COMMENT ON TABLE aborted_transfer_instructions IS 'What records of aborted transfer instructions add. Shown as ledger.aborted_transfer_instructions.';

CREATE VIEW ledger.aborted_transfer_instructions WITH (security_invoker = true) AS
SELECT x.seq, t.event_id, x.date, x.instruction_cid, x.abort_kind, x.extra,
       CASE WHEN t.rules IS NULL THEN 'transactions' ELSE 'updates' END AS source
FROM aborted_transfer_instructions x
LEFT JOIN transactions t ON t.seq = x.seq;
COMMENT ON VIEW ledger.aborted_transfer_instructions IS 'One row per transfer instruction that was withdrawn or rejected.
@graphql({"primary_key_columns": ["seq"], "foreign_keys": [{"local_columns": ["seq"], "foreign_schema": "ledger", "foreign_table": "transactions", "foreign_columns": ["seq"]}]})';
COMMENT ON COLUMN ledger.aborted_transfer_instructions.seq IS 'Which record this is. Unique.';
COMMENT ON COLUMN ledger.aborted_transfer_instructions.event_id IS 'Event id of the record; another record can have the same. Indexed.';
COMMENT ON COLUMN ledger.aborted_transfer_instructions.date IS 'When it took place. Microseconds, UTC.';
COMMENT ON COLUMN ledger.aborted_transfer_instructions.instruction_cid IS 'Contract id of the transfer instruction. Equals ledger.transfers.instruction_cid of the transfer that made the instruction, if that is stored.';
COMMENT ON COLUMN ledger.aborted_transfer_instructions.abort_kind IS 'withdraw, by the sender, or reject, by the receiver; or what later services send. NULL: left out.';
COMMENT ON COLUMN ledger.aborted_transfer_instructions.extra IS 'Fields that the service sent and this version does not know. NULL: none.';
COMMENT ON COLUMN ledger.aborted_transfer_instructions.source IS 'As in ledger.transactions.';

CREATE TABLE unknown_transactions (
    seq bigint PRIMARY KEY,
    raw jsonb
);
COMMENT ON TABLE unknown_transactions IS 'Records of the kind unknown, as they were sent. Shown as ledger.unknown_transactions.';

CREATE VIEW ledger.unknown_transactions WITH (security_invoker = true) AS
SELECT x.seq, t.event_id, x.raw,
       CASE WHEN t.rules IS NULL THEN 'transactions' ELSE 'updates' END AS source
FROM unknown_transactions x
LEFT JOIN transactions t ON t.seq = x.seq;
COMMENT ON VIEW ledger.unknown_transactions IS 'One row per record of the kind unknown, as the service sent it: of a kind that this version does not know, without a date, or with several or none of the parts transfer, mint, tap and abort_transfer_instruction. Apart from its row of ledger.transactions nothing of it is in other relations. Empty in the usual case: a newer release of the indexer may know the kind.
@graphql({"primary_key_columns": ["seq"], "foreign_keys": [{"local_columns": ["seq"], "foreign_schema": "ledger", "foreign_table": "transactions", "foreign_columns": ["seq"]}]})';
COMMENT ON COLUMN ledger.unknown_transactions.seq IS 'Which record this is. Unique.';
COMMENT ON COLUMN ledger.unknown_transactions.event_id IS 'Event id of the record; another record can have the same. Indexed.';
COMMENT ON COLUMN ledger.unknown_transactions.raw IS 'The whole record. NULL: it was redacted, see ledger.redactions. Can be a stand-in with the key $exact: see ledger.exact_payloads.';
COMMENT ON COLUMN ledger.unknown_transactions.source IS 'As in ledger.transactions.';
