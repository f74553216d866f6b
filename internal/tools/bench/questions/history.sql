-- # 31 The latest twenty transfers of a party
-- goal 1
-- ours
SELECT date, direction, counterparties, net_amount, amount, fee, description FROM ledger.party_transfers WHERE party = :'party' LIMIT 20;
-- fastest
SELECT p.date, CASE WHEN p.sent THEN 'sent' ELSE 'received' END,
       CASE WHEN p.sent THEN ARRAY(SELECT r.party FROM indexer.transfer_receivers r WHERE r.seq = p.seq ORDER BY r.ordinal) ELSE ARRAY[t.sender] END,
       CASE WHEN p.sent THEN -(p.amount + p.fee) ELSE p.amount - p.fee END, p.amount, p.fee, t.description
FROM (SELECT * FROM indexer.party_transfers WHERE party = :'party' ORDER BY party DESC, date DESC, seq DESC, sent DESC LIMIT 20) p JOIN indexer.transfers t USING (seq);

-- # 31 What a party sent and received on a day
-- ours
SELECT direction, count(*), sum(net_amount) FROM ledger.party_transfers WHERE party = :'party' AND date >= :'day' AND date < :'day'::timestamptz + interval '1 day' GROUP BY 1;
-- fastest
SELECT CASE WHEN sent THEN 'sent' ELSE 'received' END, count(*), sum(CASE WHEN sent THEN -(amount + fee) ELSE amount - fee END) FROM indexer.party_transfers
WHERE party = :'party' AND date >= :'day' AND date < :'day'::timestamptz + interval '1 day' GROUP BY 1;

-- # 32 What all transfers added to a party
-- ours
SELECT count(*), sum(net_amount) FROM ledger.party_transfers WHERE party = :'party';
-- fastest
SELECT count(*), sum(CASE WHEN sent THEN -(amount + fee) ELSE amount - fee END) FROM indexer.party_transfers WHERE party = :'party';

-- # 33 Turnover of a day
-- ours
SELECT count(DISTINCT t.seq), count(r.seq), sum(r.net_amount), sum(r.receiver_fee)
FROM ledger.transfers t LEFT JOIN ledger.transfer_receivers r USING (seq) WHERE t.date >= :'day' AND t.date < :'day'::timestamptz + interval '1 day';
-- fastest
SELECT count(DISTINCT t.seq), count(r.seq), sum(r.amount - r.receiver_fee), sum(r.receiver_fee)
FROM indexer.transfers t LEFT JOIN indexer.transfer_receivers r USING (seq) WHERE t.date >= :'day' AND t.date < :'day'::timestamptz + interval '1 day';

-- # 33 Who sent how much to whom
-- ours
SELECT t.sender, r.party, count(*), sum(r.amount) FROM ledger.transfers t JOIN ledger.transfer_receivers r USING (seq) GROUP BY 1, 2;
-- fastest
SELECT t.sender, r.party, count(*), sum(r.amount) FROM indexer.transfers t JOIN indexer.transfer_receivers r USING (seq) GROUP BY 1, 2;

-- # 34 Fees of each day
-- ours
SELECT (date AT TIME ZONE 'UTC')::date, sum(sender_fee + sender_change_fee), sum(holding_fees) FROM ledger.transfers GROUP BY 1;
-- fastest
SELECT (date AT TIME ZONE 'UTC')::date, sum(sender_fee + sender_change_fee), sum(holding_fees) FROM indexer.transfers GROUP BY 1;

-- # 35 Reported balance of a party as of a round
-- ours
SELECT ledger.reported_balance_at(:'party', :round);
-- fastest
SELECT CASE WHEN b >= 0 THEN b END FROM (SELECT initial_amount - holding_fees_rate * (:round + 1) AS b FROM indexer.balance_totals
WHERE party = :'party' AND round <= :round ORDER BY round DESC LIMIT 1) x;

-- # 35 Reported balances of all parties as of a round
-- ours
SELECT party, balance FROM ledger.reported_balances_at(:round);
-- fastest
SELECT l.party, CASE WHEN b.b >= 0 THEN b.b END FROM indexer.latest_totals l CROSS JOIN LATERAL (
    SELECT t.initial_amount - t.holding_fees_rate * (:round + 1) AS b FROM indexer.balance_totals t
    WHERE t.party = l.party AND t.round <= :round ORDER BY t.round DESC LIMIT 1) b;

-- # 37 The updates of the latest records
-- ours
SELECT t.event_id, u.ledger_offset FROM (SELECT * FROM ledger.transactions WHERE date <= :'half_time' ORDER BY seq DESC LIMIT 10) t JOIN ledger.updates u USING (update_id);
-- fastest
SELECT t.event_id, u.ledger_offset FROM (SELECT * FROM indexer.transactions WHERE date <= :'half_time' ORDER BY seq DESC LIMIT 10) t
JOIN indexer.updates u ON u.update_id = split_part(substr(t.event_id, 2), ':', 1);

-- # 38 The records of an update
-- ours
SELECT seq, kind, event_id FROM ledger.transactions WHERE update_id = :'recorded_update';
-- fastest
SELECT seq, kind, event_id FROM indexer.transactions WHERE indexer.update_id_of(event_id) = :'recorded_update';

-- # A record by its event id
-- ours
SELECT seq, sender, input_amount FROM ledger.transfers WHERE event_id = :'event';
-- fastest
SELECT x.seq, x.sender, x.input_amount FROM indexer.transactions t JOIN indexer.transfers x USING (seq) WHERE t.event_id = :'event';
