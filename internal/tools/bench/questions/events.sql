-- # 8 The life of a contract
-- ours
SELECT ledger_offset, kind FROM ledger.contract_history(:'contract');
-- fastest
SELECT ledger_offset, CASE origin WHEN 'assignment' THEN 'assigned' ELSE 'created' END FROM indexer.created WHERE contract_id = :'contract'
UNION ALL SELECT ledger_offset, 'exercised' FROM indexer.exercised WHERE contract_id = :'contract'
UNION ALL SELECT ledger_offset, 'archived' FROM indexer.archived WHERE contract_id = :'contract'
UNION ALL SELECT ledger_offset, kind FROM indexer.reassignments WHERE contract_id = :'contract' AND kind = 'unassigned';
-- pqs
SELECT created_at_ix, 'created' FROM pqs_layout.contracts c JOIN pqs_layout.contract_tpe t ON t.pk = c.tpe_pk WHERE contract_id = :'contract' AND t.payload_type = 'template'
UNION ALL SELECT exercised_at_ix, 'exercised' FROM pqs_layout.exercises WHERE contract_id = :'contract';

-- # 9 The same with choices, arguments and actors
-- ours
SELECT ledger_offset, kind, choice, acting_parties, argument FROM ledger.contract_history(:'contract');
-- fastest
SELECT ledger_offset, CASE origin WHEN 'assignment' THEN 'assigned' ELSE 'created' END, NULL, NULL::text[], payload FROM indexer.created WHERE contract_id = :'contract'
UNION ALL SELECT e.ledger_offset, 'exercised', e.choice, l.parties, e.choice_argument
FROM indexer.exercised e LEFT JOIN indexer.party_lists l ON l.party_list_ref = e.acting_parties_ref WHERE e.contract_id = :'contract'
UNION ALL SELECT ledger_offset, 'archived', NULL, NULL, NULL FROM indexer.archived WHERE contract_id = :'contract'
UNION ALL SELECT ledger_offset, kind, NULL, NULL, NULL FROM indexer.reassignments WHERE contract_id = :'contract' AND kind = 'unassigned';
-- pqs
SELECT created_at_ix, 'created', NULL, NULL, payload FROM pqs_layout.contracts c JOIN pqs_layout.contract_tpe t ON t.pk = c.tpe_pk
WHERE contract_id = :'contract' AND t.payload_type = 'template'
UNION ALL SELECT e.exercised_at_ix, 'exercised', t.choice, e.controllers, e.argument
FROM pqs_layout.exercises e JOIN pqs_layout.exercise_tpe t ON t.pk = e.tpe_pk WHERE e.contract_id = :'contract';

-- # 10 The views of a contract
-- ours
SELECT v.module_name, v.entity_name, v.view_value FROM ledger.created_events c JOIN ledger.interface_views v USING (ledger_offset, node_id) WHERE c.contract_id = :'viewed';
-- fastest
SELECT n.module_name, n.entity_name, v.view_value
FROM indexer.created c JOIN indexer.interface_views v USING (ledger_offset, node_id)
LEFT JOIN indexer.interface_names n USING (interface_id) WHERE c.contract_id = :'viewed';
-- pqs
SELECT t.module_name, t.entity_name, c.payload FROM pqs_layout.contracts c JOIN pqs_layout.contract_tpe t ON t.pk = c.tpe_pk
WHERE c.contract_id = :'viewed' AND t.payload_type = 'interface';

-- # 11 The last twenty exercises of a choice
-- ours
SELECT ledger_offset, contract_id, choice_argument FROM ledger.exercised_events WHERE choice = 'Holding_Split' ORDER BY ledger_offset DESC, node_id DESC LIMIT 20;
-- fastest
SELECT ledger_offset, contract_id, choice_argument FROM indexer.exercised WHERE choice = 'Holding_Split' ORDER BY ledger_offset DESC, node_id DESC LIMIT 20;
-- pqs
SELECT exercised_at_ix, contract_id, argument FROM pqs_layout.exercises WHERE tpe_pk = :pqs_split ORDER BY exercised_at_ix DESC, exercise_event_pk DESC LIMIT 20;

-- # 11 The last twenty exercises by a party
-- ours
SELECT ledger_offset, choice, contract_id FROM ledger.exercised_events WHERE :'party' = ANY (acting_parties) ORDER BY ledger_offset DESC, node_id DESC LIMIT 20;
-- fastest
SELECT ledger_offset, choice, contract_id FROM indexer.exercised
WHERE acting_parties_ref = ANY (ARRAY(SELECT party_list_ref FROM indexer.party_lists WHERE :'party' = ANY (parties))) ORDER BY ledger_offset DESC, node_id DESC LIMIT 20;
-- pqs
SELECT e.exercised_at_ix, t.choice, e.contract_id FROM pqs_layout.exercises e JOIN pqs_layout.exercise_tpe t ON t.pk = e.tpe_pk WHERE :'party' = ANY (e.controllers)
ORDER BY e.exercised_at_ix DESC, e.exercise_event_pk DESC LIMIT 20;

-- # 12 Who exercised a choice on a day
-- ours
SELECT ledger_offset, acting_parties FROM ledger.exercised_events
WHERE choice = 'Holding_Split' AND record_time >= :'day' AND record_time < :'day'::timestamptz + interval '1 day';
-- fastest
SELECT e.ledger_offset, l.parties FROM indexer.exercised e JOIN indexer.party_lists l ON l.party_list_ref = e.acting_parties_ref
WHERE e.choice = 'Holding_Split' AND e.ledger_offset > :day_from AND e.ledger_offset <= :day_to
  AND e.record_time >= :'day' AND e.record_time < :'day'::timestamptz + interval '1 day';
-- pqs
SELECT e.exercised_at_ix, e.controllers FROM pqs_layout.exercises e JOIN pqs_layout.transactions t ON t.ix = e.exercised_at_ix
WHERE e.tpe_pk = :pqs_split AND t.effective_at >= :'day' AND t.effective_at < :'day'::timestamptz + interval '1 day';

-- # 13 Exercises by an argument of the choice
-- ours
SELECT count(*), sum((choice_argument ->> 'amount')::numeric) FROM ledger.exercised_events WHERE choice = 'Holding_Split' AND choice_argument ->> 'actor' = :'party';
-- fastest
SELECT count(*), sum((choice_argument ->> 'amount')::numeric) FROM indexer.exercised WHERE choice = 'Holding_Split' AND choice_argument ->> 'actor' = :'party';
-- pqs
SELECT count(*), sum((argument ->> 'amount')::numeric) FROM pqs_layout.exercises WHERE tpe_pk = :pqs_split AND argument ->> 'actor' = :'party';

-- # 14 An update as a tree
-- ours
SELECT node_id, kind, entity_name, choice FROM ledger.events WHERE ledger_offset = (SELECT ledger_offset FROM ledger.updates WHERE update_id = :'update') ORDER BY node_id;
-- fastest
WITH at AS MATERIALIZED (SELECT ledger_offset FROM indexer.updates WHERE update_id = :'update')
SELECT node_id, kind, t.entity_name, choice
FROM (
    SELECT node_id, CASE origin WHEN 'assignment' THEN 'assigned' ELSE 'created' END AS kind, template_ref, NULL AS choice
    FROM indexer.created WHERE ledger_offset = (SELECT ledger_offset FROM at)
    UNION ALL SELECT node_id, 'exercised', template_ref, choice FROM indexer.exercised WHERE ledger_offset = (SELECT ledger_offset FROM at)
    UNION ALL SELECT node_id, 'archived', template_ref, NULL FROM indexer.archived WHERE ledger_offset = (SELECT ledger_offset FROM at)
    UNION ALL SELECT node_id, kind, template_ref, NULL FROM indexer.reassignments WHERE ledger_offset = (SELECT ledger_offset FROM at) AND kind = 'unassigned'
) x JOIN indexer.templates t USING (template_ref) ORDER BY node_id;
-- pqs
SELECT x.pk % 1000, x.kind, t.entity_name, x.choice
FROM (
    SELECT c.create_event_pk AS pk, 'created' AS kind, c.tpe_pk, NULL AS choice FROM pqs_layout.transactions u JOIN pqs_layout.contracts c ON c.created_at_ix = u.ix
    WHERE u.transaction_id = :'update'
    UNION ALL
    SELECT e.exercise_event_pk, 'exercised', e.contract_tpe_pk, k.choice FROM pqs_layout.transactions u JOIN pqs_layout.exercises e ON e.exercised_at_ix = u.ix
    JOIN pqs_layout.exercise_tpe k ON k.pk = e.tpe_pk WHERE u.transaction_id = :'update'
) x JOIN pqs_layout.contract_tpe t ON t.pk = x.tpe_pk WHERE t.payload_type = 'template' ORDER BY 1;

-- # 15 The exercise that created a contract
-- ours
SELECT p.ledger_offset, p.choice, p.contract_id FROM ledger.created_events c
JOIN ledger.exercised_events p ON p.ledger_offset = c.ledger_offset AND p.node_id < c.node_id AND p.last_descendant_node_id >= c.node_id
WHERE c.contract_id = :'child' ORDER BY p.node_id DESC LIMIT 1;
-- fastest
SELECT p.ledger_offset, p.choice, p.contract_id FROM indexer.created c CROSS JOIN LATERAL (
    SELECT * FROM indexer.exercised e WHERE e.ledger_offset = c.ledger_offset AND e.node_id < c.node_id AND e.last_descendant_node_id >= c.node_id ORDER BY e.node_id DESC LIMIT 1
) p WHERE c.contract_id = :'child';
-- pqs
SELECT p.exercised_at_ix, k.choice, p.contract_id FROM (SELECT DISTINCT created_at_ix, create_event_pk FROM pqs_layout.contracts WHERE contract_id = :'child') c CROSS JOIN LATERAL (
    SELECT * FROM pqs_layout.exercises e WHERE e.exercised_at_ix = c.created_at_ix AND e.exercise_event_pk < c.create_event_pk
      AND e.last_descendant_node_id >= c.create_event_pk % 1000 ORDER BY e.exercise_event_pk DESC LIMIT 1
) p JOIN pqs_layout.exercise_tpe k ON k.pk = p.tpe_pk;

-- # 16 The choice that archived a contract
-- ours
SELECT ledger_offset, choice, acting_parties FROM ledger.archived_events WHERE contract_id = :'contract';
-- fastest
SELECT e.ledger_offset, e.choice, l.parties FROM indexer.exercised e LEFT JOIN indexer.party_lists l ON l.party_list_ref = e.acting_parties_ref
WHERE e.contract_id = :'contract' AND e.consuming
UNION ALL SELECT ledger_offset, NULL, NULL FROM indexer.archived WHERE contract_id = :'contract';
-- pqs
SELECT e.exercised_at_ix, t.choice, e.controllers FROM pqs_layout.exercises e JOIN pqs_layout.exercise_tpe t ON t.pk = e.tpe_pk
WHERE e.contract_id = :'contract' AND t.consuming;

-- # 17 Creations of each day, by template
-- ours
WITH made AS (SELECT (record_time AT TIME ZONE 'UTC')::date AS day, template_number, count(*) AS n FROM ledger.created_events WHERE origin = 'transaction' GROUP BY 1, 2)
SELECT day, package_name, entity_name, sum(n) FROM made JOIN ledger.template_numbers USING (template_number) GROUP BY 1, 2, 3;
-- fastest
SELECT c.day, t.package_name, t.entity_name, sum(c.n)::bigint
FROM (SELECT (record_time AT TIME ZONE 'UTC')::date AS day, template_ref, count(*) AS n FROM indexer.created WHERE origin = 'transaction' GROUP BY 1, 2) c
JOIN indexer.templates t USING (template_ref) GROUP BY 1, 2, 3;

-- # 21 How long contracts lived, by template
-- ours
WITH lived AS (
    SELECT c.template_number, count(*) AS n, sum(e.record_time - c.created_at) AS lived
    FROM ledger.created_events c JOIN ledger.exercised_events e USING (contract_id)
    WHERE c.origin <> 'assignment' AND c.acs_delta IS NOT FALSE AND e.consuming GROUP BY 1
)
SELECT package_name, module_name, entity_name, sum(n), sum(lived) / sum(n)::bigint FROM lived JOIN ledger.template_numbers USING (template_number) GROUP BY 1, 2, 3;
-- fastest
SELECT t.package_name, t.module_name, t.entity_name, sum(x.n)::bigint, sum(x.lived) / sum(x.n)::bigint
FROM (
    SELECT c.template_ref, count(*) AS n, sum(e.record_time - c.created_at) AS lived
    FROM indexer.created c JOIN indexer.exercised e USING (contract_id)
    WHERE c.origin <> 'assignment' AND c.acs_delta IS NOT FALSE AND e.consuming GROUP BY 1
) x JOIN indexer.templates t USING (template_ref) GROUP BY 1, 2, 3;

-- # 22 Contracts that one update created and archived, by template
-- ours
SELECT c.package_name, c.entity_name, count(*) FROM ledger.created_events c JOIN ledger.archived_events a USING (ledger_offset, contract_id)
WHERE c.acs_delta IS NOT TRUE AND a.acs_delta IS NOT TRUE GROUP BY 1, 2;
-- fastest
SELECT t.package_name, t.entity_name, sum(x.n)::bigint
FROM (SELECT c.template_ref, count(*) AS n FROM indexer.created c JOIN indexer.exercised e USING (ledger_offset, contract_id)
      WHERE e.consuming AND c.acs_delta IS NOT TRUE AND e.acs_delta IS NOT TRUE GROUP BY 1) x
JOIN indexer.templates t USING (template_ref) GROUP BY 1, 2;
-- pqs
SELECT t.package_name, t.entity_name, count(*) FROM pqs_layout.contracts c JOIN pqs_layout.contract_tpe t ON t.pk = c.tpe_pk
WHERE t.payload_type = 'template' AND c.created_at_ix = c.archived_at_ix GROUP BY 1, 2;

-- # 27 Sum of a field by another one, all history
-- ours
WITH holdings AS MATERIALIZED (
    SELECT payload -> 'holding' -> 'instrument' ->> 'id' AS instrument, (payload -> 'holding' -> 'amount' ->> 'initialAmount')::numeric AS amount
    FROM ledger.created_events WHERE package_name = 'bank' AND entity_name = 'Holding'
)
SELECT instrument, count(*), sum(amount) FROM holdings GROUP BY 1;
-- fastest
WITH holdings AS MATERIALIZED (
    SELECT payload -> 'holding' -> 'instrument' ->> 'id' AS instrument, (payload -> 'holding' -> 'amount' ->> 'initialAmount')::numeric AS amount
    FROM indexer.created JOIN indexer.templates t USING (template_ref) WHERE t.package_name = 'bank' AND t.entity_name = 'Holding'
)
SELECT instrument, count(*), sum(amount) FROM holdings GROUP BY 1;
-- pqs
WITH holdings AS MATERIALIZED (
    SELECT payload -> 'holding' -> 'instrument' ->> 'id' AS instrument, (payload -> 'holding' -> 'amount' ->> 'initialAmount')::numeric AS amount
    FROM pqs_layout.contracts WHERE tpe_pk = :pqs_cash
)
SELECT instrument, count(*), sum(amount) FROM holdings GROUP BY 1;

-- # 43 Creations of a workflow
-- ours
SELECT c.ledger_offset, c.contract_id FROM ledger.updates u JOIN ledger.created_events c USING (ledger_offset) WHERE u.workflow_id = :'workflow';
-- fastest
SELECT c.ledger_offset, c.contract_id FROM indexer.updates u JOIN indexer.created c USING (ledger_offset) WHERE u.workflow_id = :'workflow';
-- pqs
SELECT u.ix, c.contract_id FROM pqs_layout.transactions u JOIN pqs_layout.contracts c ON c.created_at_ix = u.ix
JOIN pqs_layout.contract_tpe t ON t.pk = c.tpe_pk WHERE u.workflow_id = :'workflow' AND t.payload_type = 'template';

-- # 44 An update by its command
-- ours
SELECT ledger_offset, update_id FROM ledger.updates WHERE command_id = :'command';
-- fastest
SELECT u.ledger_offset, u.update_id FROM indexer.updates u WHERE u.command_id = :'command';

-- # 45 Traffic cost of each day
-- ours
SELECT (record_time AT TIME ZONE 'UTC')::date, sum(paid_traffic_cost) FROM ledger.updates WHERE kind = 'transaction' GROUP BY 1;
-- fastest
SELECT (record_time AT TIME ZONE 'UTC')::date, sum(paid_traffic_cost) FROM indexer.updates WHERE kind = 'transaction' GROUP BY 1;

-- # 46 How far in time the data go
-- ours
SELECT record_time FROM ledger.stream_checkpoints WHERE stream = 'updates';
-- fastest
SELECT record_time FROM indexer.updates WHERE record_time IS NOT NULL ORDER BY ledger_offset DESC LIMIT 1;

-- # 47 A page of creations
-- ours
SELECT ledger_offset, node_id, contract_id FROM ledger.created_events WHERE (ledger_offset, node_id) > (:half, 0) ORDER BY ledger_offset, node_id LIMIT 100;
-- fastest
SELECT ledger_offset, node_id, contract_id FROM indexer.created WHERE (ledger_offset, node_id) > (:half, 0) ORDER BY ledger_offset, node_id LIMIT 100;
-- pqs
SELECT created_at_ix, create_event_pk % 1000, contract_id FROM pqs_layout.contracts c
WHERE tpe_pk IN (SELECT pk FROM pqs_layout.contract_tpe WHERE payload_type = 'template') AND created_at_ix >= :half AND create_event_pk > :half * 1000::bigint
ORDER BY created_at_ix, create_event_pk LIMIT 100;

-- # 48 A turn of a program that follows the ledger
-- ours
SELECT ledger_offset, node_id, contract_id, payload FROM ledger.created_events WHERE ledger_offset > :half AND ledger_offset <= :half + 100 ORDER BY ledger_offset, node_id;
-- fastest
SELECT ledger_offset, node_id, contract_id, payload FROM indexer.created WHERE ledger_offset > :half AND ledger_offset <= :half + 100 ORDER BY ledger_offset, node_id;
-- pqs
SELECT created_at_ix, create_event_pk % 1000, contract_id, payload FROM pqs_layout.contracts c
WHERE tpe_pk IN (SELECT pk FROM pqs_layout.contract_tpe WHERE payload_type = 'template') AND created_at_ix > :half AND created_at_ix <= :half + 100
ORDER BY created_at_ix, create_event_pk;

-- # 54 The newest hundred creations, all columns
-- ours
SELECT * FROM ledger.created_events ORDER BY ledger_offset DESC LIMIT 100;

-- # 55 A template's creations, for a file
-- ours
SELECT ledger_offset, contract_id, payload FROM ledger.created_events WHERE package_name = 'trade' AND entity_name = 'Offer';
-- fastest
SELECT ledger_offset, contract_id, payload FROM indexer.created JOIN indexer.templates t USING (template_ref) WHERE t.package_name = 'trade' AND t.entity_name = 'Offer';
-- pqs
SELECT created_at_ix, contract_id, payload FROM pqs_layout.contracts WHERE tpe_pk = :pqs_offer;

-- # The offset at a time
-- goal 5
-- ours
SELECT ledger.offset_at(:'half_time');
-- fastest
SELECT coalesce((SELECT ledger_offset - 1 FROM fastest.latest_so_far WHERE record_time > :'half_time' ORDER BY record_time LIMIT 1), :latest);

-- # The time of an offset
-- ours
SELECT ledger.time_at(:half);
-- fastest
SELECT record_time FROM indexer.updates WHERE ledger_offset <= :half AND record_time IS NOT NULL ORDER BY ledger_offset DESC LIMIT 1;
