-- Derived from transfers: the parties of each, and running totals of their balance changes. Parties have COLLATE "C": comparing bytes is
-- cheap, and a change of the server's locales can't break the index.

-- +goose Up

CREATE VIEW transfer_parties WITH (security_invoker = true) AS
SELECT t.seq, t.sender AS party, true AS sent, t.date, t.round,
       CASE WHEN t.receivers IS NOT NULL THEN coalesce((SELECT sum(r.amount) FROM transfer_receivers r WHERE r.seq = t.seq), 0) END AS amount,
       t.sender_fee AS fee
FROM transfers t
UNION ALL
SELECT r.seq, r.party, false, t.date, t.round, sum(r.amount), CASE WHEN count(*) = count(r.receiver_fee) THEN sum(r.receiver_fee) END
FROM transfer_receivers r
JOIN transfers t ON t.seq = r.seq
GROUP BY r.seq, r.party, t.date, t.round;
COMMENT ON VIEW transfer_parties IS 'The parties of each transfer: the sender, and each receiver once, with its entries added up. A sum with a missing part is NULL. party_transfers must equal this.';
COMMENT ON COLUMN transfer_parties.sent IS 'true: the party is the sender. false: it is a receiver.';
COMMENT ON COLUMN transfer_parties.amount IS 'For the sender the amount sent to all receivers together, for a receiver the amount sent to it; before their fees.';
COMMENT ON COLUMN transfer_parties.fee IS 'sender_fee, or the sum of the receiver''s receiver_fee.';

-- All columns are in the index, so that an index-only scan in order, of pages that are vacuumed, is always cheaper than sorting.
CREATE TABLE party_transfers (
    party  text COLLATE "C" NOT NULL,
    date   timestamptz NOT NULL,
    seq    bigint      NOT NULL,
    sent   boolean     NOT NULL,
    round  bigint,
    amount numeric,
    fee    numeric,
    PRIMARY KEY (party, date, seq, sent) INCLUDE (round, amount, fee)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
COMMENT ON TABLE party_transfers IS 'Derived from transfers and their receivers: the rows of transfer_parties, in the order in which queries read a party''s transfers. Shown as ledger.party_transfers.';

-- A function, because the planner would estimate a subquery as expensive and compile the query (JIT). It has its owner's rights, like a
-- view.
CREATE FUNCTION receivers_of(seq bigint) RETURNS text[] LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER
RETURN ARRAY(SELECT r.party FROM transfer_receivers r WHERE r.seq = receivers_of.seq GROUP BY r.party ORDER BY min(r.ordinal));
COMMENT ON FUNCTION receivers_of(bigint) IS 'The receivers of a transfer in their order, each once.';

-- Columns that need a look-up elsewhere are scalar subqueries outside of the ordered rows: only returned rows are looked up.
CREATE VIEW ledger.party_transfers WITH (security_invoker = true) AS
SELECT p.party, CASE WHEN p.sent THEN 'sent' ELSE 'received' END AS direction,
       CASE
           WHEN NOT p.sent THEN ARRAY(SELECT t.sender FROM transfers t WHERE t.seq = p.seq)
           WHEN p.amount IS NULL THEN NULL
           -- Faster for a single receiver, which nearly all have.
           WHEN (SELECT t.receivers FROM transfers t WHERE t.seq = p.seq) = 1
               THEN ARRAY(SELECT r.party FROM transfer_receivers r WHERE r.seq = p.seq AND r.ordinal = 0)
           ELSE receivers_of(p.seq)
       END AS counterparties,
       p.amount, p.fee, CASE WHEN p.sent THEN -(p.amount + p.fee) ELSE p.amount - p.fee END AS net_amount, p.date, p.round,
       (SELECT x.event_id FROM transactions x WHERE x.seq = p.seq) AS event_id,
       (SELECT t.description FROM transfers t WHERE t.seq = p.seq) AS description,
       p.seq,
       (SELECT t.transfer_kind FROM transfers t WHERE t.seq = p.seq) AS transfer_kind
FROM (
    SELECT * FROM party_transfers o
    ORDER BY o.party DESC, o.date DESC, o.seq DESC, o.sent DESC
) p;
COMMENT ON VIEW ledger.party_transfers IS 'One row per transfer and party that sent or received it; a party that sends to itself has two. Summed over all parties, each amount counts twice. The rows of a party come latest first, by date and then seq, without an ORDER BY: WHERE party = ... LIMIT 100 reads its latest 100, and a condition on date as well reads that time only. For the latest transfers of many parties use CROSS JOIN LATERAL with a subquery per party: a join with this view reads all of it.
@graphql({"primary_key_columns": ["seq", "party", "direction"], "foreign_keys": [{"local_columns": ["seq"], "foreign_schema": "ledger", "foreign_table": "transfers", "foreign_columns": ["seq"]}]})';
COMMENT ON COLUMN ledger.party_transfers.party IS 'The party whose transfers these are. Indexed, with date. Sorted by its bytes.';
COMMENT ON COLUMN ledger.party_transfers.direction IS 'sent or received.';
COMMENT ON COLUMN ledger.party_transfers.counterparties IS 'With sent the receivers, in the order in which the service lists them, each once; can name the party itself. With received the sender. Empty: the transfer has no receivers, such as one that merges what the sender holds. NULL: the service left the list of receivers out. Costs a look-up per row.';
COMMENT ON COLUMN ledger.party_transfers.amount IS 'With sent what is sent to all receivers together, without the sender''s own change; 0 without receivers, NULL where the service left the list of them out. With received what is sent to this party. Before the receivers'' fees in both: what a receiver gets is net_amount.';
COMMENT ON COLUMN ledger.party_transfers.fee IS 'With sent the sender_fee as served: all that the sender pays for creating what the transfer creates; holding fees are not in it, see ledger.transfers. With received the receiver_fee of this party, which is taken off amount. NULL: left out.';
COMMENT ON COLUMN ledger.party_transfers.net_amount IS 'What the transfer adds to what the party has, with every digit: with received amount less fee; with sent amount and fee, negative. The fee for the sender''s change, holding fees and the rewards that the sender put in are not in it: see ledger.transfers. NULL: amount or fee is.';
COMMENT ON COLUMN ledger.party_transfers.date IS 'When the transfer took place. Microseconds, UTC.';
COMMENT ON COLUMN ledger.party_transfers.round IS 'Mining round of the transfer. NULL: left out.';
COMMENT ON COLUMN ledger.party_transfers.event_id IS 'Event id of the transfer''s record. Another record can have the same: join by seq. Costs a look-up per row.';
COMMENT ON COLUMN ledger.party_transfers.description IS 'What the transfer is for, in the sender''s words. NULL: it has none. Costs a look-up per row.';
COMMENT ON COLUMN ledger.party_transfers.seq IS 'Which row of ledger.transfers and ledger.transactions this is. (seq, party, direction) is unique.';
COMMENT ON COLUMN ledger.party_transfers.transfer_kind IS 'As in ledger.transfers. Costs a look-up per row.';

-- Reported balances ------------------------------------------------------------------------------------------------

CREATE TABLE balance_totals (
    party             text COLLATE "C" NOT NULL,
    round             bigint  NOT NULL,
    initial_amount    numeric NOT NULL,
    holding_fees_rate numeric NOT NULL,
    PRIMARY KEY (party, round)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
COMMENT ON TABLE balance_totals IS 'Derived from balance changes: running totals, one row per party and round in which the party has a change. Changes without a round are not in them. Read by ledger.reported_balance_at and ledger.reported_balances_at.';
COMMENT ON COLUMN balance_totals.initial_amount IS 'Sum of change_to_initial_amount_as_of_round_zero over all changes of the party in rounds up to and including this one.';
COMMENT ON COLUMN balance_totals.holding_fees_rate IS 'Sum of change_to_holding_fees_rate over the same changes.';

-- Often updated, but not in indexed columns: with free space in each page most updates don't touch the index (HOT).
CREATE TABLE latest_totals (
    party             text COLLATE "C" NOT NULL,
    round             bigint  NOT NULL,
    initial_amount    numeric NOT NULL,
    holding_fees_rate numeric NOT NULL,
    PRIMARY KEY (party)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
COMMENT ON TABLE latest_totals IS 'The last row of each party in balance_totals, so that the balances of all parties at a recent round need no search. Read by ledger.reported_balances_at.';

CREATE VIEW running_totals WITH (security_invoker = true) AS
SELECT x.party, x.round, x.initial_amount, x.holding_fees_rate, lead(x.round) OVER (PARTITION BY x.party ORDER BY x.round) IS NULL AS latest
FROM (
    SELECT c.party COLLATE "C" AS party, c.round,
        sum(sum(c.change_to_initial_amount_as_of_round_zero)) OVER rounds AS initial_amount,
        sum(sum(c.change_to_holding_fees_rate)) OVER rounds AS holding_fees_rate
    FROM balance_changes c
    WHERE c.round IS NOT NULL
    GROUP BY c.party COLLATE "C", c.round
    WINDOW rounds AS (PARTITION BY c.party COLLATE "C" ORDER BY c.round)
) x;
COMMENT ON VIEW running_totals IS 'What balance_totals should hold, computed from all its balance changes at once, and which of these rows latest_totals should hold.';
COMMENT ON COLUMN running_totals.latest IS 'Whether the party has no change in a later round.';

CREATE TABLE balance_rounds (
    only_row         boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    newest           bigint,
    first_incomplete bigint
);
INSERT INTO balance_rounds DEFAULT VALUES;
COMMENT ON TABLE balance_rounds IS 'The rounds for which balances are known.';
COMMENT ON COLUMN balance_rounds.newest IS 'The greatest round of any record of a known kind. NULL: none has a round.';
COMMENT ON COLUMN balance_rounds.first_incomplete IS 'The least round of a transfer without balance changes, or of a record of an unknown kind, which may be such a transfer. The least bigint: such a record, or any transfer, has no round, so no total is complete. NULL: all transfers have round and balance changes.';

CREATE VIEW wanted_rounds WITH (security_invoker = true) AS
SELECT true AS only_row, (SELECT max(x.round) FROM transactions x WHERE x.kind <> 'unknown') AS newest,
    (
        SELECT min(coalesce(x.round, -9223372036854775808))
        FROM transactions x
        LEFT JOIN transfers t ON t.seq = x.seq
        WHERE x.kind = 'unknown' OR x.kind = 'transfer' AND (x.round IS NULL OR coalesce(t.balance_changes, 0) = 0)
    ) AS first_incomplete;
COMMENT ON VIEW wanted_rounds IS 'What balance_rounds should hold, computed from all records.';

CREATE FUNCTION balances_are_known(round bigint) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    SELECT coalesce(balances_are_known.round <= b.newest, false)
       AND coalesce(balances_are_known.round < b.first_incomplete, true)
    FROM balance_rounds b
);
COMMENT ON FUNCTION balances_are_known(bigint) IS 'Whether, as far as is known, every transfer up to the round is stored and has its balance changes.';

CREATE FUNCTION ledger.reported_balance_at(party text, round bigint) RETURNS numeric LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    SELECT CASE WHEN b.balance >= 0 THEN b.balance END
    FROM (
        SELECT t.initial_amount - t.holding_fees_rate * (reported_balance_at.round::numeric + 1) AS balance
        FROM balance_totals t
        WHERE t.party = reported_balance_at.party AND t.round <= reported_balance_at.round
        ORDER BY t.round DESC
        LIMIT 1
    ) b
    WHERE balances_are_known(reported_balance_at.round)
);
COMMENT ON FUNCTION ledger.reported_balance_at(text, bigint) IS 'The sum of the balance changes that the Scan service reported for a party in rounds up to and including this one, less the holding fees that they report up to the end of the round. This is not what the party holds: taps, mints, expiry and everything else that is not a transfer cause no balance change. See ledger.holdings for what is held. NULL: the balance is not known, because a transfer up to this round has no balance changes (recent services send none), a transfer has no round, a record of an unknown kind may be such a transfer, or no record of this round or a later one has been seen. NULL also if the sum is negative, because the party got more in other ways than by transfers, and if no balance change up to the round names the party (check its spelling). The newest round, max(round) in ledger.transactions, may still grow.';

-- MATERIALIZED: each balance is computed once, and balances_are_known is called once.
CREATE FUNCTION ledger.reported_balances_at(round bigint) RETURNS TABLE (party text, balance numeric) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    WITH known AS MATERIALIZED (
        SELECT balances_are_known(reported_balances_at.round) AS are
    ), balances AS MATERIALIZED (
        SELECT l.party, CASE
            WHEN l.round <= reported_balances_at.round THEN l.initial_amount - l.holding_fees_rate * (reported_balances_at.round::numeric + 1)
            ELSE (
                SELECT t.initial_amount - t.holding_fees_rate * (reported_balances_at.round::numeric + 1)
                FROM balance_totals t
                WHERE t.party = l.party AND t.round <= reported_balances_at.round
                ORDER BY t.round DESC
                LIMIT 1
            )
        END AS balance
        FROM latest_totals l
    )
    SELECT b.party, CASE WHEN t.are AND b.balance >= 0 THEN b.balance END
    FROM known t
    LEFT JOIN balances b ON b.balance IS NOT NULL OR NOT t.are
    WHERE b.party IS NOT NULL OR NOT t.are; END;
COMMENT ON FUNCTION ledger.reported_balances_at(bigint) IS 'ledger.reported_balance_at for all parties at once: one row per party that a balance change names in a round up to and including this one, with a NULL balance where the sum is negative. It is not what they hold: taps, mints and expiry are not in it. If the balances of the round are not known, every party has a row and every balance is NULL. There is then at least one row, with a NULL party if no party is known, so that no rows means that there are no balances.';
