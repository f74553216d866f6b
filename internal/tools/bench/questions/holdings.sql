-- # 1 Holdings by owner and instrument
-- goal 50
-- ours
SELECT owner, instrument, instrument_admin, amount, contracts FROM ledger.holding_totals WHERE admin_signed;
-- fastest
SELECT p.owner, p.instrument, p.instrument_admin, a.amount, a.contracts
FROM (SELECT position_id, sum(amount) AS amount, count(*) AS contracts FROM indexer.active_contracts a
      WHERE position_id IS NOT NULL AND (a.activated_offset, a.activated_node_id) NOT IN (SELECT s.activated_offset, s.activated_node_id FROM fastest.superseded s WHERE s.until = :always) GROUP BY 1) a
JOIN indexer.positions p USING (position_id) WHERE p.admin_signed;
-- pqs
SELECT payload ->> 'owner', payload -> 'instrumentId' ->> 'id', payload -> 'instrumentId' ->> 'admin', sum((payload ->> 'amount')::numeric), count(*)
FROM pqs_layout.contracts
WHERE tpe_pk = :pqs_holding_view AND life_ix @> :latest::bigint AND NOT divulged_only AND payload -> 'instrumentId' ->> 'admin' = ANY (signatories)
GROUP BY 1, 2, 3;

-- # 2 Holdings of one party, in total
-- goal 10
-- ours
SELECT instrument, instrument_admin, amount, contracts FROM ledger.holding_totals WHERE owner = :'party' AND admin_signed;
-- fastest
SELECT p.instrument, p.instrument_admin, sum(a.amount), count(*)
FROM indexer.positions p JOIN indexer.active_contracts a USING (position_id) WHERE p.owner = :'party' AND p.admin_signed AND a.position_id IS NOT NULL
  AND (a.activated_offset, a.activated_node_id) NOT IN (SELECT s.activated_offset, s.activated_node_id FROM fastest.superseded s WHERE s.until = :always) GROUP BY 1, 2;
-- pqs
SELECT payload -> 'instrumentId' ->> 'id', payload -> 'instrumentId' ->> 'admin', sum((payload ->> 'amount')::numeric), count(*)
FROM pqs_layout.contracts
WHERE tpe_pk = :pqs_holding_view AND life_ix @> :latest::bigint AND NOT divulged_only AND payload ->> 'owner' = :'party'
  AND payload -> 'instrumentId' ->> 'admin' = ANY (signatories)
GROUP BY 1, 2;

-- # 2 Holdings of one party, each
-- goal 10
-- ours
SELECT instrument_admin, instrument, amount, locked, contract_id FROM ledger.holdings WHERE owner = :'party' AND admin_signed;
-- fastest
SELECT p.instrument_admin, p.instrument, a.amount, a.locked, a.contract_id
FROM indexer.positions p JOIN indexer.active_contracts a USING (position_id) WHERE p.owner = :'party' AND p.admin_signed AND a.position_id IS NOT NULL
  AND (a.activated_offset, a.activated_node_id) NOT IN (SELECT s.activated_offset, s.activated_node_id FROM fastest.superseded s WHERE s.until = :always);
-- pqs
SELECT payload -> 'instrumentId' ->> 'admin', payload -> 'instrumentId' ->> 'id', (payload ->> 'amount')::numeric, coalesce(jsonb_typeof(payload -> 'lock') = 'object', false),
       contract_id
FROM pqs_layout.contracts
WHERE tpe_pk = :pqs_holding_view AND life_ix @> :latest::bigint AND NOT divulged_only AND payload ->> 'owner' = :'party'
  AND payload -> 'instrumentId' ->> 'admin' = ANY (signatories);

-- # 3 The twenty largest holders of Amulet
-- goal 50
-- ours
SELECT owner, amount, contracts FROM ledger.holding_totals
WHERE instrument = 'Amulet' AND instrument_admin = :'dso' AND admin_signed ORDER BY amount DESC NULLS LAST LIMIT 20;
-- fastest
SELECT p.owner, sum(a.amount), count(*) FROM indexer.positions p JOIN indexer.active_contracts a USING (position_id)
WHERE p.instrument = 'Amulet' AND p.instrument_admin = :'dso' AND p.admin_signed AND a.position_id IS NOT NULL
  AND (a.activated_offset, a.activated_node_id) NOT IN (SELECT s.activated_offset, s.activated_node_id FROM fastest.superseded s WHERE s.until = :always) GROUP BY p.position_id ORDER BY 2 DESC NULLS LAST LIMIT 20;
-- pqs
SELECT payload ->> 'owner', sum((payload ->> 'amount')::numeric), count(*) FROM pqs_layout.contracts
WHERE tpe_pk = :pqs_holding_view AND life_ix @> :latest::bigint AND NOT divulged_only
  AND payload -> 'instrumentId' ->> 'id' = 'Amulet' AND payload -> 'instrumentId' ->> 'admin' = :'dso' AND :'dso' = ANY (signatories)
GROUP BY 1 ORDER BY 2 DESC NULLS LAST LIMIT 20;

-- # 4 Holdings by owner and instrument, at half of history
-- now 1 Holdings by owner and instrument
-- goal 200
-- ours
SELECT instrument_admin, instrument, owner, amount FROM ledger.holding_totals_at(:half) WHERE admin_signed;
-- fastest
SELECT p.instrument_admin, p.instrument, p.owner, sum(x.amount)
FROM (
    SELECT position_id, sum(amount) AS amount
    FROM (
        SELECT position_id, amount FROM indexer.active_contracts WHERE position_id IS NOT NULL AND activated_offset <= :half
          AND (activated_offset, activated_node_id) NOT IN (SELECT s.activated_offset, s.activated_node_id FROM fastest.superseded s WHERE s.from_offset <= :half AND s.until > :half)
        UNION ALL
        SELECT position_id, amount FROM indexer.lifetimes WHERE position_id IS NOT NULL AND activated_offset <= :half AND deactivated_offset > :half
          AND (activated_offset, activated_node_id) NOT IN (SELECT s.activated_offset, s.activated_node_id FROM fastest.superseded s WHERE s.from_offset <= :half AND s.until > :half)
    ) a
    GROUP BY 1
) x
JOIN indexer.positions p USING (position_id) WHERE p.admin_signed GROUP BY 1, 2, 3;
-- pqs
SELECT payload -> 'instrumentId' ->> 'admin', payload -> 'instrumentId' ->> 'id', payload ->> 'owner', sum((payload ->> 'amount')::numeric)
FROM pqs_layout.contracts
WHERE tpe_pk = :pqs_holding_view AND life_ix @> :half::bigint AND NOT divulged_only
  AND create_event_pk NOT IN (SELECT s.activated_offset * 1000 + s.activated_node_id FROM fastest.superseded s WHERE s.from_offset <= :half AND s.until > :half)
  AND payload -> 'instrumentId' ->> 'admin' = ANY (signatories)
GROUP BY 1, 2, 3;

-- # 4 Holdings of one party, at half of history
-- now 2 Holdings of one party, in total
-- goal 200
-- ours
SELECT instrument_admin, instrument, amount FROM ledger.holding_totals_at(:half) WHERE owner = :'party' AND admin_signed;
-- fastest
SELECT p.instrument_admin, p.instrument, sum(a.amount)
FROM indexer.positions p
JOIN (
    SELECT position_id, amount FROM indexer.active_contracts WHERE position_id IS NOT NULL AND activated_offset <= :half
      AND (activated_offset, activated_node_id) NOT IN (SELECT s.activated_offset, s.activated_node_id FROM fastest.superseded s WHERE s.from_offset <= :half AND s.until > :half)
    UNION ALL
    SELECT position_id, amount FROM indexer.lifetimes WHERE position_id IS NOT NULL AND activated_offset <= :half AND deactivated_offset > :half
      AND (activated_offset, activated_node_id) NOT IN (SELECT s.activated_offset, s.activated_node_id FROM fastest.superseded s WHERE s.from_offset <= :half AND s.until > :half)
) a USING (position_id)
WHERE p.owner = :'party' AND p.admin_signed GROUP BY 1, 2;
-- pqs
SELECT payload -> 'instrumentId' ->> 'admin', payload -> 'instrumentId' ->> 'id', sum((payload ->> 'amount')::numeric)
FROM pqs_layout.contracts
WHERE tpe_pk = :pqs_holding_view AND life_ix @> :half::bigint AND NOT divulged_only
  AND create_event_pk NOT IN (SELECT s.activated_offset * 1000 + s.activated_node_id FROM fastest.superseded s WHERE s.from_offset <= :half AND s.until > :half)
  AND payload ->> 'owner' = :'party'
  AND payload -> 'instrumentId' ->> 'admin' = ANY (signatories)
GROUP BY 1, 2;

-- # 5 Holdings by instrument, at a time
-- goal 200
-- ours
SELECT instrument_admin, instrument, sum(amount) FROM ledger.holding_totals_at(ledger.offset_at(:'half_time')) WHERE admin_signed GROUP BY 1, 2;
-- fastest
WITH at AS MATERIALIZED (SELECT ledger.offset_at(:'half_time') AS n), x AS (
    SELECT position_id, sum(amount) AS amount
    FROM (
        SELECT position_id, amount FROM indexer.active_contracts WHERE position_id IS NOT NULL AND activated_offset <= (SELECT n FROM at)
          AND (activated_offset, activated_node_id) NOT IN (SELECT s.activated_offset, s.activated_node_id FROM fastest.superseded s WHERE s.from_offset <= (SELECT n FROM at) AND s.until > (SELECT n FROM at))
        UNION ALL
        SELECT position_id, amount FROM indexer.lifetimes WHERE position_id IS NOT NULL AND activated_offset <= (SELECT n FROM at) AND deactivated_offset > (SELECT n FROM at)
          AND (activated_offset, activated_node_id) NOT IN (SELECT s.activated_offset, s.activated_node_id FROM fastest.superseded s WHERE s.from_offset <= (SELECT n FROM at) AND s.until > (SELECT n FROM at))
    ) a
    GROUP BY 1)
SELECT p.instrument_admin, p.instrument, sum(x.amount) FROM x JOIN indexer.positions p USING (position_id) WHERE p.admin_signed GROUP BY 1, 2;

-- # 6 How holdings changed between two offsets
-- ours
WITH held AS (
    SELECT owner, instrument, instrument_admin, -amount AS amount FROM ledger.holding_totals_at(:half)
    UNION ALL
    SELECT owner, instrument, instrument_admin, amount FROM ledger.holding_totals_at(:later))
SELECT owner, instrument, sum(amount) FROM held WHERE instrument_admin = :'dso' GROUP BY 1, 2 HAVING sum(amount) <> 0;
-- fastest
SELECT p.owner, p.instrument, sum(x.amount)
FROM (
    SELECT position_id, sum(CASE WHEN activated_offset > :half THEN amount ELSE 0 END) AS amount
    FROM indexer.active_contracts WHERE position_id IS NOT NULL AND activated_offset > :half AND activated_offset <= :later GROUP BY 1
    UNION ALL
    SELECT position_id, sum(CASE WHEN activated_offset > :half THEN amount ELSE -amount END)
    FROM indexer.lifetimes
    WHERE position_id IS NOT NULL AND deactivated_offset > :half
      AND (activated_offset <= :half AND deactivated_offset <= :later OR activated_offset > :half AND activated_offset <= :later AND deactivated_offset > :later)
    GROUP BY 1
    UNION ALL
    SELECT l.position_id, sum(CASE WHEN s.until > :half AND s.from_offset <= :half THEN l.amount ELSE 0 END - CASE WHEN s.until > :later AND s.from_offset <= :later THEN l.amount ELSE 0 END)
    FROM fastest.superseded s
    JOIN (
        SELECT activated_offset, activated_node_id, position_id, amount FROM indexer.active_contracts
        UNION ALL
        SELECT activated_offset, activated_node_id, position_id, amount FROM indexer.lifetimes
    ) l USING (activated_offset, activated_node_id)
    WHERE s.from_offset <= :later AND s.until > :half GROUP BY 1
) x
JOIN indexer.positions p USING (position_id) WHERE p.instrument_admin = :'dso' GROUP BY 1, 2 HAVING sum(x.amount) <> 0;

-- # 7 Supply of Amulet at the end of each day
-- ours
WITH days AS MATERIALIZED (
    SELECT day, ledger.offset_at(day + interval '1 day') AS at FROM generate_series(:'first_day'::timestamptz, :'last_day', interval '1 day') day)
SELECT d.day, sum(l.amount) FROM days d JOIN ledger.holding_lifetimes l ON l.activated_offset <= d.at AND l.active_before > d.at
WHERE l.instrument = 'Amulet' AND l.instrument_admin = :'dso' GROUP BY 1;
-- fastest
WITH days AS MATERIALIZED (
    SELECT day, ledger.offset_at(day + interval '1 day') AS at FROM generate_series(:'first_day'::timestamptz, :'last_day', interval '1 day') day
), held AS MATERIALIZED (
    SELECT position_id FROM indexer.positions WHERE instrument = 'Amulet' AND instrument_admin = :'dso'
), changes AS MATERIALIZED (
    SELECT (SELECT min(d.day) FROM days d WHERE d.at >= x.at) AS day, sum(x.amount) AS amount
    FROM (
        SELECT activated_offset AS at, sum(amount) AS amount
        FROM (
            SELECT position_id, activated_offset, amount FROM indexer.active_contracts WHERE position_id IS NOT NULL
            UNION ALL
            SELECT position_id, activated_offset, amount FROM indexer.lifetimes WHERE position_id IS NOT NULL
        ) b WHERE b.position_id IN (SELECT position_id FROM held) GROUP BY 1
        UNION ALL
        SELECT deactivated_offset, -sum(amount) FROM indexer.lifetimes
        WHERE position_id IS NOT NULL AND position_id IN (SELECT position_id FROM held) GROUP BY 1
    ) x
    GROUP BY 1
)
SELECT d.day, sum(c.amount) OVER (ORDER BY d.day) FROM days d LEFT JOIN changes c USING (day);

-- # 24 Locks that expire within a day
-- ours
SELECT owner, instrument, amount, locked_until, contract_id FROM ledger.holdings
WHERE locked AND locked_until BETWEEN :'lock_from' AND :'lock_from'::timestamptz + interval '24 h';
-- fastest
SELECT p.owner, p.instrument, a.amount, a.locked_until, a.contract_id
FROM indexer.active_contracts a JOIN indexer.positions p USING (position_id)
WHERE a.locked AND a.locked_until BETWEEN :'lock_from' AND :'lock_from'::timestamptz + interval '24 h';

-- # 30 Holdings of other instruments than Amulet, through views
-- ours
SELECT instrument, sum(contracts), sum(amount) FROM ledger.holding_totals WHERE instrument <> 'Amulet' GROUP BY 1;
-- fastest
SELECT p.instrument, count(*), sum(a.amount) FROM indexer.active_contracts a JOIN indexer.positions p USING (position_id) WHERE p.instrument <> 'Amulet' GROUP BY 1;
-- pqs
SELECT payload -> 'instrumentId' ->> 'id', count(*), sum((payload ->> 'amount')::numeric)
FROM pqs_layout.contracts WHERE tpe_pk = :pqs_holding_view AND life_ix @> :latest::bigint AND NOT divulged_only
  AND payload -> 'instrumentId' ->> 'id' <> 'Amulet' GROUP BY 1;

-- # 36 Amulets less their holding fees
-- ours
SELECT owner, sum(greatest(amount - holding_fee_rate * (:round - created_round), 0)) FROM ledger.holdings
WHERE package_name = 'splice-amulet' AND owner = :'party' GROUP BY 1;
-- fastest
SELECT p.owner, sum(greatest(a.amount - (k.amulet -> 'amount' -> 'ratePerRound' ->> 'rate')::numeric * (:round - (k.amulet -> 'amount' -> 'createdAt' ->> 'number')::bigint), 0))
FROM indexer.positions p
JOIN indexer.active_contracts a USING (position_id)
JOIN indexer.templates t ON t.template_ref = a.template_ref AND t.package_name = 'splice-amulet'
JOIN indexer.created c ON c.ledger_offset = a.activated_offset AND c.node_id = a.activated_node_id
CROSS JOIN LATERAL (SELECT CASE t.entity_name WHEN 'LockedAmulet' THEN c.payload -> 'amulet' ELSE c.payload END AS amulet OFFSET 0) k
WHERE p.owner = :'party' AND a.position_id IS NOT NULL
  AND (a.activated_offset, a.activated_node_id) NOT IN (SELECT s.activated_offset, s.activated_node_id FROM fastest.superseded s WHERE s.until = :always) GROUP BY 1;
