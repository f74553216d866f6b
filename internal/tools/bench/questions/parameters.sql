-- What the questions are about. Each has a value: a row with one column, of which a question has the text in place of :name or :'name'.

-- latest
SELECT ledger.latest_offset();
-- first
SELECT ledger_offset FROM ledger.updates ORDER BY ledger_offset LIMIT 1;
-- a little after the middle, where a copy of the ledger ends and with it all of its contracts' lives that end
-- half
SELECT (9 * :first + 11 * ledger.latest_offset()) / 20;
-- half_time
SELECT ledger.time_at(:half);
-- of what is superseded as long as something is active
-- always
SELECT 9223372036854775807;
-- later
SELECT :half + (ledger.latest_offset() - :half) / 10;
-- day
SELECT date_trunc('day', ledger.time_at(:half));
-- first_day
SELECT date_trunc('day', ledger.time_at(:first));
-- last_day
SELECT date_trunc('day', ledger.time_at(ledger.latest_offset()));
-- day_from
SELECT coalesce(max(ledger_offset), ledger.oldest_offset()) FROM ledger.updates WHERE record_time < :'day';
-- day_to
SELECT max(ledger_offset) FROM ledger.updates WHERE record_time < :'day'::timestamptz + interval '1 day';
-- dso
SELECT instrument_admin FROM ledger.holding_totals WHERE instrument = 'Amulet' AND admin_signed GROUP BY 1 ORDER BY count(*) DESC LIMIT 1;
-- party
SELECT party FROM ledger.party_transfers WHERE party IN (SELECT owner FROM ledger.holding_totals) GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1;
-- contract
SELECT contract_id FROM ledger.exercised_events e
WHERE ledger_offset > :half - 1000 AND entity_name = 'Account' AND consuming
  AND EXISTS (SELECT FROM ledger.created_events c WHERE c.contract_id = e.contract_id AND c.origin = 'transaction')
  AND NOT EXISTS (SELECT FROM ledger.reassignments r WHERE r.contract_id = e.contract_id)
ORDER BY ledger_offset, node_id LIMIT 1;
-- child
SELECT c.contract_id FROM ledger.events c
WHERE c.ledger_offset BETWEEN :half - 1000 AND :half AND c.kind = 'created' AND c.parent_node_id IS NOT NULL ORDER BY c.ledger_offset, c.node_id LIMIT 1;
-- viewed
SELECT v.contract_id FROM ledger.interface_views v
WHERE v.ledger_offset BETWEEN :half - 1000 AND :half AND v.status_code = 0 AND v.view_value IS NOT NULL
  AND NOT EXISTS (SELECT FROM ledger.interface_views w WHERE w.ledger_offset = v.ledger_offset AND w.node_id = v.node_id AND w.status_code <> 0)
  AND NOT EXISTS (SELECT FROM ledger.reassignments r WHERE r.contract_id = v.contract_id)
ORDER BY v.ledger_offset, v.node_id LIMIT 1;
-- update
SELECT update_id FROM ledger.exercised_events WHERE ledger_offset BETWEEN :half - 1000 AND :half GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1;
-- key
SELECT contract_key FROM ledger.active_contracts WHERE package_name = 'registry' AND entity_name = 'Entry' AND activated_offset > :half ORDER BY activated_offset LIMIT 1;
-- key_hash
SELECT contract_key_hash FROM ledger.created_events WHERE entity_name = 'Entry' AND contract_key = :'key' LIMIT 1;
-- command
SELECT command_id FROM ledger.updates WHERE command_id <> '' AND ledger_offset > :half ORDER BY ledger_offset LIMIT 1;
-- workflow
SELECT workflow_id FROM ledger.updates WHERE workflow_id <> '' AND ledger_offset > :half ORDER BY ledger_offset LIMIT 1;
-- owner
SELECT payload ->> 'owner' FROM ledger.created_events WHERE entity_name = 'Account' AND ledger_offset > :half AND origin = 'transaction' ORDER BY ledger_offset LIMIT 1;
-- event
SELECT event_id FROM ledger.transfers WHERE seq > (SELECT max(seq) / 2 FROM ledger.transactions) ORDER BY seq LIMIT 1;
-- recorded_update
SELECT t.update_id FROM ledger.transactions t JOIN ledger.updates u USING (update_id) WHERE u.ledger_offset BETWEEN :half - 1000 AND :half ORDER BY t.seq LIMIT 1;
-- round
SELECT max(round) / 2 FROM ledger.transactions;
-- lock_from
SELECT ledger.time_at(:latest);

-- Numbers of types that PQS's functions look up by name.

-- pqs_account
SELECT pk FROM pqs_layout.contract_tpe WHERE payload_type = 'template' AND entity_name = 'Account';
-- pqs_amulet
SELECT pk FROM pqs_layout.contract_tpe WHERE payload_type = 'template' AND entity_name = 'Amulet';
-- pqs_entry
SELECT pk FROM pqs_layout.contract_tpe WHERE payload_type = 'template' AND entity_name = 'Entry';
-- pqs_offer
SELECT pk FROM pqs_layout.contract_tpe WHERE payload_type = 'template' AND entity_name = 'Offer';
-- pqs_cash
SELECT pk FROM pqs_layout.contract_tpe WHERE payload_type = 'template' AND package_name = 'bank' AND entity_name = 'Holding';
-- pqs_holding_view
SELECT pk FROM pqs_layout.contract_tpe WHERE payload_type = 'interface' AND module_name = 'Splice.Api.Token.HoldingV1';
-- pqs_split
SELECT pk FROM pqs_layout.exercise_tpe WHERE choice = 'Holding_Split';
-- limit
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY "limit") FROM fastest.limits;
