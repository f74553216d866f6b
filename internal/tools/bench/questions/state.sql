-- # 19 Active contracts by template
-- ours
SELECT package_name, module_name, entity_name, sum(contracts) FROM ledger.active_counts GROUP BY 1, 2, 3;
-- fastest
SELECT t.package_name, t.module_name, t.entity_name, sum(a.n)::bigint FROM (SELECT template_ref, count(*) AS n FROM indexer.active_contracts GROUP BY 1) a
JOIN indexer.templates t USING (template_ref) GROUP BY 1, 2, 3;
-- pqs
SELECT t.package_name, t.module_name, t.entity_name, count(*) FROM pqs_layout.contracts c JOIN pqs_layout.contract_tpe t ON t.pk = c.tpe_pk
WHERE t.payload_type = 'template' AND c.life_ix @> :latest::bigint AND NOT c.divulged_only GROUP BY 1, 2, 3;

-- # 19 Active contracts by template, at half of history
-- now 19 Active contracts by template
-- goal 100
-- ours
WITH counted AS (SELECT template_number, count(*) AS n FROM ledger.active_at(:half) GROUP BY 1)
SELECT package_name, module_name, entity_name, sum(n) FROM counted JOIN ledger.template_numbers USING (template_number) GROUP BY 1, 2, 3;
-- fastest
SELECT t.package_name, t.module_name, t.entity_name, sum(a.n)::bigint
FROM (
    SELECT template_ref, count(*) AS n FROM indexer.active_contracts WHERE activated_offset <= :half GROUP BY 1
    UNION ALL
    SELECT template_ref, count(*) FROM indexer.lifetimes WHERE activated_offset <= :half AND deactivated_offset > :half GROUP BY 1
) a
JOIN indexer.templates t USING (template_ref) GROUP BY 1, 2, 3;
-- pqs
SELECT t.package_name, t.module_name, t.entity_name, count(*) FROM pqs_layout.contracts c JOIN pqs_layout.contract_tpe t ON t.pk = c.tpe_pk
WHERE t.payload_type = 'template' AND c.life_ix @> :half::bigint AND NOT c.divulged_only GROUP BY 1, 2, 3;

-- # 19 Active contracts of one template, at half of history
-- goal 100
-- ours
SELECT count(*) FROM ledger.active_at(:half) WHERE package_name = 'bank' AND module_name = 'Bank.Account' AND entity_name = 'Account';
-- fastest
SELECT (SELECT count(*) FROM indexer.active_contracts a JOIN indexer.templates t USING (template_ref) WHERE a.activated_offset <= :half AND t.entity_name = 'Account')
     + (SELECT count(*) FROM indexer.lifetimes l JOIN indexer.templates t USING (template_ref)
        WHERE l.activated_offset <= :half AND l.deactivated_offset > :half AND t.entity_name = 'Account');
-- pqs
SELECT count(*) FROM pqs_layout.contracts WHERE tpe_pk = :pqs_account AND life_ix @> :half::bigint AND NOT divulged_only;

-- # 20 Sum of a field over what was active at half of history
-- ours
SELECT count(*), sum((payload ->> 'amount')::numeric) FROM ledger.active_at(:half) WHERE package_name = 'trade' AND entity_name = 'Offer';
-- fastest
SELECT count(*), sum((c.payload ->> 'amount')::numeric)
FROM (
    SELECT template_ref, activated_offset, activated_node_id FROM indexer.active_contracts WHERE activated_offset <= :half
    UNION ALL
    SELECT template_ref, activated_offset, activated_node_id FROM indexer.lifetimes WHERE activated_offset <= :half AND deactivated_offset > :half
) a
JOIN indexer.templates t USING (template_ref)
JOIN indexer.created c ON c.ledger_offset = a.activated_offset AND c.node_id = a.activated_node_id
WHERE t.package_name = 'trade' AND t.entity_name = 'Offer';
-- pqs
SELECT count(*), sum((payload ->> 'amount')::numeric) FROM pqs_layout.contracts WHERE tpe_pk = :pqs_offer AND life_ix @> :half::bigint AND NOT divulged_only;

-- # 18 Stock of a template at the end of each day
-- ours
WITH days AS MATERIALIZED (
    SELECT day, ledger.offset_at(day + interval '1 day') AS at FROM generate_series(:'first_day'::timestamptz, :'last_day', interval '1 day') day)
SELECT d.day, count(*) FROM days d JOIN ledger.contract_lifetimes l ON l.active_from <= d.at AND l.active_before > d.at
WHERE l.package_name = 'bank' AND l.entity_name = 'Holding' GROUP BY 1;
-- fastest
WITH days AS MATERIALIZED (
    SELECT day, ledger.offset_at(day + interval '1 day') AS at FROM generate_series(:'first_day'::timestamptz, :'last_day', interval '1 day') day
), lives AS MATERIALIZED (
    SELECT activated_offset AS at, 1 AS n FROM indexer.active_contracts a JOIN indexer.templates t USING (template_ref) WHERE t.package_name = 'bank' AND t.entity_name = 'Holding'
    UNION ALL
    SELECT unnest(ARRAY[l.activated_offset, l.deactivated_offset]), unnest(ARRAY[1, -1])
    FROM indexer.lifetimes l JOIN indexer.templates t USING (template_ref) WHERE t.package_name = 'bank' AND t.entity_name = 'Holding'
)
SELECT d.day, (sum(c.n) OVER (ORDER BY d.day))::bigint
FROM days d
LEFT JOIN (SELECT (SELECT min(e.day) FROM days e WHERE e.at >= x.at) AS day, sum(x.n) AS n FROM (SELECT at, sum(n) AS n FROM lives GROUP BY 1) x GROUP BY 1) c USING (day);
-- pqs
SELECT day, (SELECT count(*) FROM pqs_layout.contracts
             WHERE tpe_pk = :pqs_cash AND life_ix @> (SELECT max(t.ix) FROM pqs_layout.transactions t WHERE t.effective_at <= day + interval '1 day') AND NOT divulged_only)
FROM generate_series(:'first_day'::timestamptz, :'last_day', interval '1 day') day;

-- # 23 What began and ended between two offsets, by template
-- ours
SELECT package_name, entity_name, count(*) FILTER (WHERE active_from > :half AND active_from <= :later) AS began,
       count(*) FILTER (WHERE active_until > :half AND active_until <= :later) AS ended
FROM ledger.contract_lifetimes WHERE active_before > :half AND active_from <= :later AND (active_from > :half OR active_before <= :later) GROUP BY 1, 2;
-- fastest
SELECT t.package_name, t.entity_name, sum(a.began)::bigint, sum(a.ended)::bigint
FROM (
    SELECT template_ref, count(*) AS began, 0 AS ended FROM indexer.active_contracts WHERE activated_offset > :half AND activated_offset <= :later GROUP BY 1
    UNION ALL
    SELECT template_ref, count(*) FILTER (WHERE activated_offset > :half AND activated_offset <= :later), count(*) FILTER (WHERE deactivated_offset <= :later)
    FROM indexer.lifetimes WHERE deactivated_offset > :half AND (activated_offset > :half AND activated_offset <= :later OR deactivated_offset <= :later) GROUP BY 1
) a
JOIN indexer.templates t USING (template_ref) GROUP BY 1, 2;
-- pqs
SELECT t.package_name, t.entity_name, sum(c.began)::bigint, sum(c.ended)::bigint
FROM (
    SELECT tpe_pk, count(*) AS began, 0 AS ended FROM pqs_layout.contracts WHERE created_at_ix > :half AND created_at_ix <= :later AND NOT divulged_only GROUP BY 1
    UNION ALL
    SELECT tpe_pk, 0, count(*) FROM pqs_layout.contracts WHERE archived_at_ix > :half AND archived_at_ix <= :later AND NOT divulged_only GROUP BY 1
) c
JOIN pqs_layout.contract_tpe t ON t.pk = c.tpe_pk WHERE t.payload_type = 'template' GROUP BY 1, 2;

-- # 25 Offers by receiver, and how many have expired
-- ours
WITH offers AS MATERIALIZED (
    SELECT payload ->> 'receiver' AS receiver, (payload ->> 'executeBefore')::timestamptz AS until
    FROM ledger.created_events JOIN ledger.active_events USING (ledger_offset, node_id, template_number) WHERE package_name = 'trade' AND entity_name = 'Offer'
)
SELECT receiver, count(*), count(*) FILTER (WHERE until < :'half_time') FROM offers GROUP BY 1;
-- fastest
SELECT c.payload ->> 'receiver', count(*), count(*) FILTER (WHERE (c.payload ->> 'executeBefore')::timestamptz < :'half_time')
FROM indexer.active_contracts a
JOIN indexer.templates t USING (template_ref)
JOIN indexer.created c ON c.ledger_offset = a.activated_offset AND c.node_id = a.activated_node_id
WHERE t.package_name = 'trade' AND t.entity_name = 'Offer' GROUP BY 1;
-- pqs
SELECT payload ->> 'receiver', count(*), count(*) FILTER (WHERE (payload ->> 'executeBefore')::timestamptz < :'half_time')
FROM pqs_layout.contracts WHERE tpe_pk = :pqs_offer AND life_ix @> :latest::bigint AND NOT divulged_only GROUP BY 1;

-- # 26 Sum of a field by another one, active contracts
-- ours
WITH holdings AS MATERIALIZED (
    SELECT payload -> 'holding' -> 'instrument' ->> 'id' AS instrument, (payload -> 'holding' -> 'amount' ->> 'initialAmount')::numeric AS amount
    FROM ledger.created_events JOIN ledger.active_events USING (ledger_offset, node_id, template_number) WHERE package_name = 'bank' AND entity_name = 'Holding'
)
SELECT instrument, count(*), sum(amount) FROM holdings GROUP BY 1;
-- fastest
SELECT c.payload -> 'holding' -> 'instrument' ->> 'id', count(*), sum((c.payload -> 'holding' -> 'amount' ->> 'initialAmount')::numeric)
FROM indexer.active_contracts a
JOIN indexer.templates t USING (template_ref)
JOIN indexer.created c ON c.ledger_offset = a.activated_offset AND c.node_id = a.activated_node_id
WHERE t.package_name = 'bank' AND t.entity_name = 'Holding' GROUP BY 1;
-- pqs
SELECT payload -> 'holding' -> 'instrument' ->> 'id', count(*), sum((payload -> 'holding' -> 'amount' ->> 'initialAmount')::numeric)
FROM pqs_layout.contracts WHERE tpe_pk = :pqs_cash AND life_ix @> :latest::bigint AND NOT divulged_only GROUP BY 1;

-- # 28 Active contracts by an indexed field, in a typed view
-- goal 5
-- ours
SELECT contract_id, number FROM typed.bank_account WHERE active AND owner = :'owner';
-- fastest
SELECT c.contract_id, (c.payload ->> 'number') FROM indexer.created c JOIN indexer.templates t USING (template_ref)
WHERE c.payload ->> 'owner' = :'owner' AND t.package_name = 'bank' AND t.entity_name = 'Account'
  AND EXISTS (SELECT FROM indexer.active_contracts a WHERE a.activated_offset = c.ledger_offset AND a.activated_node_id = c.node_id);
-- pqs
SELECT contract_id, payload ->> 'number' FROM pqs_layout.contracts
WHERE tpe_pk = :pqs_account AND life_ix @> :latest::bigint AND NOT divulged_only AND payload ->> 'owner' = :'owner';

-- # 28 Contracts in a range of an indexed number, in a typed view
-- goal 5
-- ours
SELECT contract_id, owner, "limit" FROM typed.bank_account WHERE "limit" BETWEEN :limit AND :limit + 100;
-- fastest
SELECT c.contract_id, c.payload ->> 'owner', (c.payload ->> 'limit')::numeric FROM fastest.limits f JOIN indexer.created c USING (ledger_offset, node_id)
WHERE f."limit" BETWEEN :limit AND :limit + 100;
-- pqs
SELECT contract_id, payload ->> 'owner', (payload ->> 'limit')::numeric FROM pqs_layout.contracts
WHERE tpe_pk = :pqs_account AND (payload ->> 'limit')::numeric BETWEEN :limit AND :limit + 100;

-- # 29 Contracts by key
-- ours
SELECT contract_id, ledger_offset FROM ledger.created_with_key(:'key');
-- fastest
SELECT c.contract_id, c.ledger_offset FROM fastest.keys k JOIN indexer.created c USING (ledger_offset, node_id)
WHERE k.contract_key_hash = :'key_hash' AND c.contract_key = :'key';
-- pqs
SELECT contract_id, created_at_ix FROM pqs_layout.contracts WHERE tpe_pk = :pqs_entry AND contract_key = :'key';

-- # 39 All parties
-- ours
SELECT party FROM ledger.parties WHERE in_events;
-- fastest
SELECT DISTINCT unnest(parties) FROM indexer.party_lists;
-- pqs
SELECT unnest(signatories) FROM pqs_layout.contracts UNION SELECT unnest(observers) FROM pqs_layout.contracts
UNION SELECT unnest(witnesses) FROM pqs_layout.contracts UNION SELECT unnest(controllers) FROM pqs_layout.exercises UNION SELECT unnest(witnesses) FROM pqs_layout.exercises;

-- # 40 Active contracts of a stakeholder, by template
-- ours
SELECT package_name, entity_name, count(*) FROM ledger.active_at() WHERE :'party' = ANY (stakeholders) GROUP BY 1, 2;
-- fastest
SELECT t.package_name, t.entity_name, count(*)
FROM indexer.active_contracts a
JOIN indexer.party_lists l ON l.party_list_ref = a.stakeholders_ref
JOIN indexer.templates t ON t.template_ref = a.template_ref
WHERE :'party' = ANY (l.parties) GROUP BY 1, 2;
-- pqs
SELECT t.package_name, t.entity_name, count(*) FROM pqs_layout.contracts c JOIN pqs_layout.contract_tpe t ON t.pk = c.tpe_pk
WHERE t.payload_type = 'template' AND c.life_ix @> :latest::bigint AND NOT c.divulged_only AND (:'party' = ANY (c.signatories) OR :'party' = ANY (c.observers)) GROUP BY 1, 2;

-- # 41 Templates, interfaces and choices that there are
-- ours
SELECT of_id, choice FROM ledger.choices;
-- fastest
SELECT package_id || ':' || module_name || ':' || entity_name, choice FROM indexer.package_choices;

-- # 42 Fields of a template, with their types
-- ours
SELECT path, type, since_version FROM ledger.fields WHERE package_name = 'bank' AND entity_name = 'Account' AND part = 'payload' ORDER BY ordinal;
-- fastest
SELECT f.path, (array_agg(f.type ORDER BY string_to_array(c.package_version, '.')::integer[] DESC))[1], (array_agg(c.package_version ORDER BY string_to_array(c.package_version, '.')::integer[]))[1]
FROM indexer.package_fields f JOIN indexer.package_contents c USING (package_id)
WHERE c.package_name = 'bank' AND f.entity_name = 'Account' AND f.part = 'payload' GROUP BY 1 ORDER BY (array_agg(f.ordinal ORDER BY string_to_array(c.package_version, '.')::integer[] DESC))[1];

-- # 52 Typed rows of all active contracts of a template
-- ours
SELECT contract_id, owner, opened, "limit" FROM typed.bank_account WHERE active;
-- fastest
SELECT c.contract_id, c.payload ->> 'owner', (c.payload ->> 'opened')::date, (c.payload ->> 'limit')::numeric
FROM indexer.active_contracts a
JOIN indexer.templates t USING (template_ref)
JOIN indexer.created c ON c.ledger_offset = a.activated_offset AND c.node_id = a.activated_node_id
WHERE t.package_name = 'bank' AND t.entity_name = 'Account';
-- pqs
SELECT contract_id, payload ->> 'owner', (payload ->> 'opened')::date, (payload ->> 'limit')::numeric
FROM pqs_layout.contracts WHERE tpe_pk = :pqs_account AND life_ix @> :latest::bigint AND NOT divulged_only;

-- # 56 Versions of packages, by active contracts
-- ours
SELECT p.package_name, p.package_version, sum(a.contracts) FROM ledger.active_counts a JOIN ledger.packages p USING (package_id) GROUP BY 1, 2;
-- fastest
SELECT p.package_name, p.package_version, sum(a.n)::bigint FROM (SELECT template_ref, count(*) AS n FROM indexer.active_contracts GROUP BY 1) a
JOIN indexer.templates t USING (template_ref) JOIN ledger.packages p USING (package_id) GROUP BY 1, 2;
