-- Holdings from holding_events, the definition, for each active contract: what is kept with the active set must say the same.

CREATE VIEW public.holdings AS
SELECT e.owner, e.instrument, e.instrument_admin, e.amount, e.locked, e.locked_until, e.lock_holders, a.contract_id,
       e.created_at, a.activated_offset, a.activated_node_id, e.created_round,
       e.holding_fee_rate, e.source, e.admin_signed, t.template_id, t.package_id, t.package_name, t.module_name,
       t.entity_name, s.synchronizer_id, e.unread_amount
FROM (
    SELECT DISTINCT ON (x.contract_id) x.contract_id, x.synchronizer_ref, x.template_ref, x.activated_offset, x.activated_node_id
    FROM active_contracts x
    WHERE x.template_ref = ANY (ARRAY(SELECT k.template_ref FROM holding_templates k))
      AND x.activated_offset <= (SELECT ledger.latest_offset())
    ORDER BY x.contract_id, x.activated_offset DESC, x.activated_node_id DESC
) a
CROSS JOIN LATERAL (
    SELECT * FROM holding_events y WHERE y.ledger_offset = a.activated_offset AND y.node_id = a.activated_node_id LIMIT 1
) e
LEFT JOIN templates t ON t.template_ref = a.template_ref
LEFT JOIN synchronizers s ON s.synchronizer_ref = a.synchronizer_ref;

CREATE VIEW public.holding_totals AS
SELECT h.owner, h.instrument, h.instrument_admin, h.admin_signed, CASE WHEN bool_and(h.amount IS NOT NULL) THEN sum(h.amount) END AS amount,
       CASE WHEN bool_and(CASE WHEN h.locked THEN h.amount IS NOT NULL ELSE h.locked IS NOT NULL END)
            THEN coalesce(sum(h.amount) FILTER (WHERE h.locked), 0) END AS locked_amount,
       CASE WHEN bool_and(CASE WHEN NOT h.locked THEN h.amount IS NOT NULL ELSE h.locked IS NOT NULL END)
            THEN coalesce(sum(h.amount) FILTER (WHERE NOT h.locked), 0) END AS unlocked_amount,
       count(*) AS contracts, count(*) FILTER (WHERE h.amount IS NULL) AS unread_amounts
FROM public.holdings h
GROUP BY h.owner, h.instrument, h.instrument_admin, h.admin_signed;

CREATE FUNCTION public.holdings_at(at_offset bigint) RETURNS SETOF public.holdings
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER AS $$
DECLARE
    templates integer[] := ARRAY(SELECT k.template_ref FROM holding_templates k);
BEGIN
    PERFORM ledger.state_offset(at_offset);
    RETURN QUERY
    SELECT e.owner, e.instrument, e.instrument_admin, e.amount, e.locked, e.locked_until, e.lock_holders, a.contract_id,
           e.created_at, a.activated_offset, a.activated_node_id, e.created_round, e.holding_fee_rate, e.source,
           e.admin_signed, t.template_id, t.package_id, t.package_name, t.module_name, t.entity_name, s.synchronizer_id,
           e.unread_amount
    FROM (
        SELECT DISTINCT ON (x.contract_id) x.contract_id, x.synchronizer_ref, x.template_ref, x.activated_offset, x.activated_node_id
        FROM (
            SELECT o.contract_id, o.synchronizer_ref, o.template_ref, o.activated_offset, o.activated_node_id
            FROM active_contracts o
            WHERE o.template_ref = ANY (templates) AND o.activated_offset <= at_offset
            UNION ALL
            SELECT l.contract_id, l.synchronizer_ref, l.template_ref, l.activated_offset, l.activated_node_id
            FROM lifetimes l
            WHERE l.template_ref = ANY (templates) AND l.activated_offset <= at_offset AND l.deactivated_offset > at_offset
        ) x
        ORDER BY x.contract_id, x.activated_offset DESC, x.activated_node_id DESC
    ) a
    CROSS JOIN LATERAL (
        SELECT * FROM holding_events y WHERE y.ledger_offset = a.activated_offset AND y.node_id = a.activated_node_id LIMIT 1
    ) e
    LEFT JOIN templates t ON t.template_ref = a.template_ref
    LEFT JOIN synchronizers s ON s.synchronizer_ref = a.synchronizer_ref;
END
$$;
