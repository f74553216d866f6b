-- Who holds what: computed once for each contract, when it is written, and kept with the active set. Anybody can write payloads and views
-- that the indexed parties see, so no value in them may make a query fail: one that can't be read is NULL.

-- +goose Up

-- The interfaces of each template --------------------------------------------------------------------------------

CREATE TABLE template_interfaces (
    template_ref integer NOT NULL,
    interface_id text    NOT NULL,
    PRIMARY KEY (template_ref, interface_id)
);
COMMENT ON TABLE template_interfaces IS 'The interfaces of which contracts of each template had views, so that holdings are found without reading every active contract. Written before the views, like the other dictionaries.';

CREATE FUNCTION shown_interfaces(from_exclusive bigint, to_inclusive bigint) RETURNS TABLE (template_ref integer, interface_id text)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT c.template_ref, v.interface_id
FROM interface_views v
JOIN created c ON c.ledger_offset = v.ledger_offset AND c.node_id = v.node_id
WHERE v.ledger_offset > from_exclusive AND v.ledger_offset <= to_inclusive AND c.ledger_offset > from_exclusive AND c.ledger_offset <= to_inclusive
UNION
SELECT c.template_ref, v.interface_id
FROM interface_views v
JOIN created c ON c.ledger_offset = v.ledger_offset AND c.node_id = v.node_id
CROSS JOIN (SELECT f.history_floor FROM floors f WHERE f.stream = 'updates') f
WHERE v.ledger_offset <= f.history_floor AND c.ledger_offset <= f.history_floor;
END;
COMMENT ON FUNCTION shown_interfaces(bigint, bigint) IS 'The interfaces of which contracts of each template had views in a range of offsets and in the shown snapshot. template_interfaces must hold at least these.';

-- Interface views ------------------------------------------------------------------------------------------------
-- The server names an interface by the id of its package. The package's name is known if the package is, or if --interfaces names this
-- module and entity with one package name only.

CREATE VIEW interface_names AS
SELECT i.interface_id, split_part(i.interface_id, ':', 2) AS module_name, split_part(i.interface_id, ':', 3) AS entity_name,
       coalesce(
           (SELECT nullif(p.package_name, '') FROM ledger.packages p WHERE p.package_id = split_part(i.interface_id, ':', 1)),
           (SELECT CASE WHEN count(DISTINCT a.asked) = 1 AND min(a.asked) LIKE '#%' THEN split_part(substr(min(a.asked), 2), ':', 1) END
            FROM scopes s, jsonb_array_elements_text(s.definition -> 'interfaces') a (asked)
            WHERE substr(a.asked, strpos(a.asked, ':')) = substr(i.interface_id, strpos(i.interface_id, ':')))
       ) AS package_name
FROM (SELECT DISTINCT x.interface_id FROM template_interfaces x) i;
COMMENT ON VIEW interface_names IS 'The interfaces that have views, with the parts of their ids.';

CREATE VIEW ledger.interface_views AS
SELECT v.ledger_offset, v.node_id, v.contract_id, v.interface_id, n.package_name, n.module_name, n.entity_name, v.view_value,
       v.status_code, v.status_message, v.status_details, v.implementation_package_id, v.ordinal,
       (SELECT u.update_id FROM updates u WHERE u.ledger_offset = v.ledger_offset AND v.node_id < 1073741824) AS update_id, s.synchronizer_id,
       v.record_time, v.extra
FROM interface_views v
LEFT JOIN interface_names n ON n.interface_id = v.interface_id
LEFT JOIN synchronizers s ON s.synchronizer_ref = v.synchronizer_ref
WHERE btint8cmp(v.ledger_offset, (SELECT k.ledger_offset FROM checkpoints k WHERE k.stream = 'updates')) <> 1;

COMMENT ON VIEW ledger.interface_views IS 'One row per interface view of a creation event: the contract as seen through an interface that --interfaces asked for. It belongs to the row of ledger.created_events with the same (ledger_offset, node_id).';
COMMENT ON COLUMN ledger.interface_views.ledger_offset IS 'Offset of the creation event. Indexed.';
COMMENT ON COLUMN ledger.interface_views.node_id IS 'Node id of the creation event. (ledger_offset, node_id, ordinal) is unique.';
COMMENT ON COLUMN ledger.interface_views.contract_id IS 'The contract. Not indexed here: go through ledger.created_events.';
COMMENT ON COLUMN ledger.interface_views.interface_id IS 'The interface, package-id:Module:Entity as the server sent it. It changes with each release of a package: filter by package_name, module_name and entity_name instead.';
COMMENT ON COLUMN ledger.interface_views.package_name IS 'Name of the interface''s package, the same over its releases: that of ledger.packages, or else the only one with which --interfaces named such an interface. NULL: neither is known.';
COMMENT ON COLUMN ledger.interface_views.module_name IS 'Module of the interface, with dots.';
COMMENT ON COLUMN ledger.interface_views.entity_name IS 'Name of the interface within its module.';
COMMENT ON COLUMN ledger.interface_views.view_value IS 'The view. NULL where it could not be computed, or was redacted: see ledger.redactions. Can be a stand-in with the key $exact: see ledger.exact_payloads.';
COMMENT ON COLUMN ledger.interface_views.status_code IS '0: the view was computed. Else the gRPC code of the error that came instead. NULL: the server sent no status.';
COMMENT ON COLUMN ledger.interface_views.status_message IS 'Text of the error; empty where there was none.';
COMMENT ON COLUMN ledger.interface_views.status_details IS 'Details of the error, a list as the server sent it.';
COMMENT ON COLUMN ledger.interface_views.implementation_package_id IS 'Package whose code computed the view. NULL where the server did not say (before release 3.5).';
COMMENT ON COLUMN ledger.interface_views.ordinal IS 'Place of the view within its event, from 0.';
COMMENT ON COLUMN ledger.interface_views.update_id IS 'Id of the event''s update. Costs a look-up per row. NULL for rows of a snapshot.';
COMMENT ON COLUMN ledger.interface_views.synchronizer_id IS 'Synchronizer of the creation event.';
COMMENT ON COLUMN ledger.interface_views.record_time IS 'When the synchronizer recorded the update. NULL for rows of a snapshot.';
COMMENT ON COLUMN ledger.interface_views.extra IS 'Fields that the server sent and this version does not know. NULL: none.';

-- Casts that return NULL instead of failing, and are simple enough to be inlined -----------------------------------

CREATE FUNCTION text_of(value jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN jsonb_typeof(value) = 'string' THEN value #>> '{}' END;
COMMENT ON FUNCTION text_of(jsonb) IS 'The text that a JSON value is.';

-- The one reader of decimals in SQL, as ledger.ParseDecimal is in Go: each form that Java's BigDecimal has (5.000E-7, 0E-10, 1E+3), and a
-- point that nothing follows. It is not inlined, so the functions that call it read the usual forms themselves. The length and the
-- exponent bound what is computed before it is found too long. A zero may have any exponent. No backslash: its text is read with the
-- caller's standard_conforming_strings.
CREATE FUNCTION decimal_within(value text, most_whole integer, most_fraction integer) RETURNS numeric
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
    n numeric;
BEGIN
    IF length(value) <= 700 THEN
        n := CASE WHEN value ~ '^-?[0-9]+[.]?[0-9]*([Ee][-+]?0*[0-9]?[0-9]?[0-9])?$' THEN value::numeric
                  WHEN value ~ '^-?0+[.]?0*[Ee][+]?0*[0-9]{1,9}$' THEN 0 END;
    END IF;
    RETURN CASE WHEN scale(n) <= most_fraction AND abs(n) < power(10::numeric, most_whole) THEN n END;
END
$$;
COMMENT ON FUNCTION decimal_within(text, integer, integer) IS 'The decimal that a text is, if it has at most so many digits before the point, and after it; else NULL.';

CREATE FUNCTION decimal_of(value text) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN value = '0E-10' THEN 0.0000000000 -- most fees that a Scan shows
            WHEN length(value) <= 300 AND value ~ '^-?[0-9]+\.?[0-9]*$' THEN value::numeric
            ELSE decimal_within(value, 300, 300) END;
COMMENT ON FUNCTION decimal_of(text) IS 'The decimal that a text is; NULL where it is none, or has more than 300 digits before or after the point. A ledger''s have at most 38.';

CREATE FUNCTION integer_of(value text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN value ~ '^-?[0-9]{1,19}$' THEN
    CASE WHEN value::numeric BETWEEN -9223372036854775808 AND 9223372036854775807 THEN value::bigint END END;
COMMENT ON FUNCTION integer_of(text) IS 'The 64-bit integer that a text is.';

-- Here and not with the other casts of typed views (00013_types.sql), whose remarks apply to it, because holdings need it.
CREATE FUNCTION ledger.as_timestamptz(value text) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN length(value) < 28 AND value LIKE '____-__-__T__:__:__%Z' AND value NOT LIKE '0000%'
             AND value ~ '^[0-9]+-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?Z$'
            THEN CASE WHEN substr(value, 9, 2)::integer <= 28
                        OR substr(value, 9, 2)::integer <= extract(day FROM make_date(left(value, 4)::integer, substr(value, 6, 2)::integer, 1)
                               + interval '1 month' - interval '1 day')
                      THEN make_timestamp(left(value, 4)::integer, substr(value, 6, 2)::integer, substr(value, 9, 2)::integer, substr(value, 12, 2)::integer,
                               substr(value, 15, 2)::integer, rtrim(substr(value, 18), 'Z')::double precision) AT TIME ZONE 'UTC' END END;
COMMENT ON FUNCTION ledger.as_timestamptz(text) IS 'The text (2025-06-18T00:00:00.000001Z) as timestamptz; NULL where it is none.';

-- At most 285 years, so that neither the interval nor a time plus it overflows.
CREATE FUNCTION duration_of(value text) RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN integer_of(value) BETWEEN -9000000000000000 AND 9000000000000000
    THEN integer_of(value) * interval '1 microsecond' END;
COMMENT ON FUNCTION duration_of(text) IS 'The duration that a number of microseconds is.';

CREATE FUNCTION holding_version(interface_id text) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN interface_id LIKE '%:Splice.Api.Token.HoldingV1:Holding' THEN 1
    WHEN interface_id LIKE '%:Splice.Api.Token.HoldingV2:Holding' THEN 2
END;
COMMENT ON FUNCTION holding_version(text) IS 'Which version of the token standard''s Holding an interface is, by its module: the package id changes with each release.';

-- What is a holding ----------------------------------------------------------------------------------------------

CREATE VIEW amulet_templates AS
SELECT t.template_ref, t.entity_name = 'LockedAmulet' AS is_locked
FROM templates t
WHERE t.package_name = 'splice-amulet' AND t.module_name = 'Splice.Amulet' AND t.entity_name IN ('Amulet', 'LockedAmulet');
COMMENT ON VIEW amulet_templates IS 'Templates of amulets, which are read by their payload.';

CREATE VIEW holding_templates AS
SELECT t.template_ref FROM amulet_templates t
UNION
SELECT i.template_ref FROM template_interfaces i WHERE holding_version(i.interface_id) IS NOT NULL;
COMMENT ON VIEW holding_templates IS 'Templates whose contracts can be holdings.';

-- Positions ------------------------------------------------------------------------------------------------------

-- The number of a position is computed from its texts, alike in Go and SQL, rather than taken from a sequence. Anybody can choose the texts,
-- so it is 128 bits of a hash for which collisions can't be found.

CREATE FUNCTION position_of(owner text, instrument text, instrument_admin text, admin_signed boolean) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN encode(substr(sha256(convert_to(
    coalesce(octet_length(owner) || ':' || owner, '-') || coalesce(octet_length(instrument) || ':' || instrument, '-')
    || coalesce(octet_length(instrument_admin) || ':' || instrument_admin, '-') || CASE WHEN admin_signed THEN '+' ELSE '-' END, 'UTF8')), 1, 16), 'hex')::uuid;
COMMENT ON FUNCTION position_of(text, text, text, boolean) IS 'The number of a position: the first 128 bits of the SHA-256 of its texts, each behind its length in bytes, or - for NULL. Package rows computes the same.';

CREATE TABLE positions (
    position_id      uuid PRIMARY KEY,
    owner            text,
    instrument       text,
    instrument_admin text,
    admin_signed     boolean NOT NULL
);
-- A hash index: an owner is any text, and a btree refuses long ones.
CREATE INDEX positions_owner ON positions USING hash (owner);
-- Without them a condition on both is expected to find next to nothing, and what follows is joined in nested loops.
CREATE STATISTICS positions_instruments (mcv) ON instrument, instrument_admin FROM positions;
COMMENT ON TABLE positions IS 'Who holds what, without how much: what contracts that are holdings are added up by. Written before the contracts, like the dictionaries, and removed by redactions only. One that no contract has does no harm.';

-- What each contract holds ---------------------------------------------------------------------------------------

-- The one definition of holdings, for creation events: rows written in Go must equal it. Views are read only if the payload can't be.
-- OFFSET 0 makes PostgreSQL compute p once, before them.
CREATE VIEW holding_events AS
SELECT c.ledger_offset, c.node_id, c.template_ref, c.created_at, h.owner, h.instrument, h.instrument_admin, h.amount, h.locked,
       least(ledger.as_timestamptz(h.lock ->> 'expiresAt'),
             c.created_at + duration_of(h.lock -> 'expiresAfter' ->> 'microseconds')) AS locked_until,
       CASE WHEN jsonb_typeof(h.lock -> 'holders') = 'array'
            THEN ARRAY(SELECT text_of(x.holder) FROM jsonb_array_elements(h.lock -> 'holders') x (holder)) END AS lock_holders,
       h.created_round, h.holding_fee_rate, h.source, g.admin_signed, h.unread_amount,
       position_of(h.owner, h.instrument, h.instrument_admin, g.admin_signed) AS position_id
FROM created c
LEFT JOIN amulet_templates m ON m.template_ref = c.template_ref
CROSS JOIN LATERAL (
    SELECT k.is_amulet, k.amulet,
           k.is_amulet AND (text_of(k.amulet -> 'owner') IS NOT NULL
                            OR decimal_of(k.amulet -> 'amount' ->> 'initialAmount') IS NOT NULL) AS readable
    FROM (
        SELECT m.template_ref IS NOT NULL AS is_amulet, CASE WHEN m.is_locked THEN c.payload -> 'amulet' ELSE c.payload END AS amulet
    ) k
    OFFSET 0
) p
LEFT JOIN LATERAL (
    SELECT i.interface_id, i.view_value, i.owner, i.amount, i.owner IS NOT NULL OR i.amount IS NOT NULL AS readable
    FROM (
        SELECT x.ordinal, x.interface_id, x.view_value, decimal_of(x.view_value ->> 'amount') AS amount,
               text_of(CASE holding_version(x.interface_id) WHEN 1 THEN x.view_value ELSE x.view_value -> 'account' END -> 'owner') AS owner
        FROM interface_views x
        WHERE NOT p.readable AND x.ledger_offset = c.ledger_offset AND x.node_id = c.node_id
          AND holding_version(x.interface_id) IS NOT NULL AND coalesce(x.status_code, 0) = 0 AND x.view_value IS NOT NULL
    ) i
    ORDER BY i.owner IS NOT NULL OR i.amount IS NOT NULL DESC, holding_version(i.interface_id) DESC, i.ordinal
    LIMIT 1
) v ON true
CROSS JOIN LATERAL (
    SELECT CASE WHEN p.readable THEN 'amulet payload' ELSE v.interface_id END AS source,
           CASE WHEN p.readable THEN text_of(p.amulet -> 'owner') ELSE v.owner END AS owner,
           CASE WHEN p.readable THEN 'Amulet' ELSE text_of(v.view_value -> 'instrumentId' -> 'id') END AS instrument,
           text_of(CASE WHEN p.readable THEN p.amulet -> 'dso' ELSE v.view_value -> 'instrumentId' -> 'admin' END) AS instrument_admin,
           CASE WHEN p.readable THEN decimal_of(p.amulet -> 'amount' ->> 'initialAmount') ELSE v.amount END AS amount,
           CASE WHEN p.readable OR v.interface_id IS NULL THEN CASE WHEN decimal_of(p.amulet -> 'amount' ->> 'initialAmount') IS NULL
                    THEN left(p.amulet -> 'amount' ->> 'initialAmount', 1000) END
                WHEN v.amount IS NULL THEN left(v.view_value ->> 'amount', 1000) END AS unread_amount,
           CASE WHEN p.readable THEN m.is_locked
                WHEN jsonb_typeof(v.view_value -> 'lock') = 'object' THEN true
                WHEN v.readable AND coalesce(v.view_value -> 'lock', 'null') = 'null' THEN false END AS locked,
           CASE WHEN NOT p.readable THEN v.view_value -> 'lock'
                WHEN m.is_locked THEN c.payload -> 'lock' END AS lock,
           CASE WHEN p.is_amulet THEN integer_of(
                CASE WHEN p.readable THEN p.amulet -> 'amount' -> 'createdAt' ->> 'number'
                ELSE v.view_value -> 'meta' -> 'values' ->> 'amulet.splice.lfdecentralizedtrust.org/created-in-round' END) END AS created_round,
           CASE WHEN p.is_amulet THEN decimal_of(
                CASE WHEN p.readable THEN p.amulet -> 'amount' -> 'ratePerRound' ->> 'rate'
                ELSE v.view_value -> 'meta' -> 'values' ->> 'amulet.splice.lfdecentralizedtrust.org/rate-per-round' END) END AS holding_fee_rate
) h
CROSS JOIN LATERAL (
    SELECT coalesce(h.instrument_admin = ANY ((SELECT l.parties FROM party_lists l WHERE l.party_list_ref = c.signatories_ref)::text[]), false) AS admin_signed
    OFFSET 0
) g
WHERE p.is_amulet OR v.interface_id IS NOT NULL;
COMMENT ON VIEW holding_events IS 'Holdings as their creation events describe them, one row per event, for look-ups by (ledger_offset, node_id).';

-- What projecting reads back: of a range of offsets, or of some contracts. Conditions on either reach the index of each table.
CREATE VIEW step_events AS
SELECT e.ledger_offset, e.node_id, e.kind, e.contract_id, e.synchronizer_ref, e.template_ref, e.flag, coalesce(e.counter, (
    SELECT r.reassignment_counter FROM reassignments r
    WHERE e.kind = 1 AND e.flag AND r.ledger_offset = e.ledger_offset AND r.node_id = e.node_id
), 0)::bigint AS counter, h.position_id, coalesce(h.amount::text, '')::text AS amount,
    (h.locked IS NOT NULL)::boolean AS lock_known, (h.locked IS TRUE)::boolean AS locked, h.locked_until::timestamptz AS locked_until, e.stakeholders_ref
FROM (
    SELECT c.ledger_offset, c.node_id, 1 AS kind, c.contract_id, coalesce(c.synchronizer_ref, 0) AS synchronizer_ref, c.template_ref,
        c.origin = 'assignment' AS flag, c.stakeholders_ref, c.reassignment_counter AS counter
    FROM created c
    WHERE c.served_offset IS NOT NULL OR c.origin <> 'snapshot' AND (c.origin = 'assignment' OR c.acs_delta IS NOT FALSE)
    UNION ALL
    SELECT a.ledger_offset, a.node_id, 2, a.contract_id, coalesce(a.synchronizer_ref, 0), 0, true, NULL, NULL
    FROM archived a
    UNION ALL
    SELECT x.ledger_offset, x.node_id, CASE WHEN x.consuming THEN 3 ELSE 4 END, x.contract_id, coalesce(x.synchronizer_ref, 0), 0,
        x.acs_delta IS NOT FALSE, NULL, NULL
    FROM exercised x
    WHERE x.consuming OR x.acs_delta IS NOT FALSE
    UNION ALL
    SELECT r.ledger_offset, r.node_id, 5, r.contract_id, r.source_ref, 0, false, NULL, NULL
    FROM reassignments r
    WHERE r.kind = 'unassigned' AND r.created_offset IS NULL
    UNION ALL
    SELECT d.ledger_offset, d.node_id, 6, d.contract_id, d.synchronizer_ref, 0, false, NULL, NULL
    FROM departures d
) e
LEFT JOIN LATERAL (
    SELECT y.position_id, y.amount, y.locked, y.locked_until FROM holding_events y
    WHERE e.kind = 1 AND e.template_ref = ANY (ARRAY(SELECT k.template_ref FROM holding_templates k))
      AND y.ledger_offset = e.ledger_offset AND y.node_id = e.node_id
    LIMIT 1
) h ON true;
COMMENT ON VIEW step_events IS 'The events that change the active set, or use what is in it, with what the contract of a creation holds. Package active says what the kinds are, and computes the same from events in memory.';

CREATE VIEW held_positions AS
SELECT DISTINCT h.position_id, h.owner, h.instrument, h.instrument_admin, h.admin_signed
FROM holding_events h
WHERE h.template_ref = ANY (ARRAY(SELECT k.template_ref FROM holding_templates k));
COMMENT ON VIEW held_positions IS 'The positions of all holdings that are stored. positions must hold at least these.';

CREATE FUNCTION active_holdings(from_exclusive bigint, to_inclusive bigint, ended_after bigint)
RETURNS TABLE (contract_id text, synchronizer_ref integer, template_ref integer, activated_offset bigint, activated_node_id integer,
    reassignment_counter bigint, deactivated_offset bigint, position_id uuid, amount numeric, locked boolean, locked_until timestamptz, stakeholders_ref integer)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT t.contract_id, t.synchronizer_ref, t.template_ref, t.activated_offset, t.activated_node_id, t.reassignment_counter, t.deactivated_offset,
       e.position_id, e.amount, e.locked, e.locked_until,
       (SELECT c.stakeholders_ref FROM created c WHERE c.ledger_offset = t.activated_offset AND c.node_id = t.activated_node_id)
FROM activations(from_exclusive, to_inclusive, ended_after) t
LEFT JOIN LATERAL (
    SELECT h.position_id, h.amount, h.locked, h.locked_until
    FROM holding_events h
    WHERE t.template_ref = ANY (ARRAY(SELECT k.template_ref FROM holding_templates k))
      AND h.ledger_offset = t.activated_offset AND h.node_id = t.activated_node_id
    LIMIT 1
) e ON true;
END;
COMMENT ON FUNCTION active_holdings(bigint, bigint, bigint) IS 'activations, with what each contract holds, and for whom. active_contracts and lifetimes must equal this.';

-- Parties hosted here ---------------------------------------------------------------------------------------------
-- Of a party that the participant does not host it shows only what parties see that it does host. What such a party holds is not known, but for
-- instruments whose administrator is hosted: who signs a holding sees it.

CREATE TABLE hosting (
    party        text PRIMARY KEY,
    hosted       boolean NOT NULL,
    since        bigint,
    until        bigint,
    onboarded    boolean NOT NULL,
    asked_at     timestamptz NOT NULL DEFAULT now(),
    asked_offset bigint  NOT NULL
);
COMMENT ON TABLE hosting IS 'What the participant answered when it was asked whether it hosts a party that holds something, or that the scope names. Empty: it can''t be asked. Shown as ledger.hosted_parties.';

CREATE VIEW known_parties AS
SELECT h.party, CASE WHEN h.onboarded THEN h.since ELSE 0 END AS known_from,
       CASE WHEN h.hosted THEN 9223372036854775807 ELSE h.until END AS known_before
FROM hosting h
WHERE h.hosted OR h.until IS NOT NULL;
COMMENT ON VIEW known_parties IS 'From which offset on, and before which one, all is stored that a party holds.';

CREATE FUNCTION holdings_are_known(owner text, instrument_admin text, at_offset bigint) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN NOT EXISTS (SELECT FROM hosting) OR EXISTS (
    SELECT FROM known_parties k
    WHERE k.party IN (holdings_are_known.owner, holdings_are_known.instrument_admin)
      AND k.known_from <= holdings_are_known.at_offset AND k.known_before > holdings_are_known.at_offset);
COMMENT ON FUNCTION holdings_are_known(text, text, bigint) IS 'Whether all is stored that a party holds of an instrument, whose administrator signed it, after the update at an offset.';

-- What analysts read ---------------------------------------------------------------------------------------------

-- Whatever is not kept with the active set is looked up, and only where a query names it: an event has at most one row, of which max() is
-- itself, and PostgreSQL leaves out a join with an aggregate of which nothing is named. So each look-up is made once for a row,
-- however often its columns are named. What is not locked has no lock to look up. Holdings of now are read without the lifetimes that have ended,
-- which would be planned with each query.

CREATE VIEW ledger.holdings AS
SELECT p.owner, p.instrument, p.instrument_admin, a.amount, a.locked, a.locked_until, k.lock_holders, a.contract_id,
       (SELECT c.created_at FROM creations c WHERE c.ledger_offset = a.activated_offset AND c.node_id = a.activated_node_id) AS created_at,
       a.activated_offset, a.activated_node_id, d.created_round, d.holding_fee_rate, d.source, p.admin_signed, t.template_id, t.package_id,
       t.package_name, t.module_name, t.entity_name, s.synchronizer_id, n.unread_amount
FROM active_contracts a
JOIN positions p ON p.position_id = a.position_id
LEFT JOIN templates t ON t.template_ref = a.template_ref
LEFT JOIN synchronizers s ON s.synchronizer_ref = a.synchronizer_ref
LEFT JOIN LATERAL (
    SELECT max(e.lock_holders) AS lock_holders FROM holding_events e
    WHERE e.ledger_offset = a.activated_offset AND e.node_id = a.activated_node_id AND a.locked IS NOT FALSE
) k ON true
LEFT JOIN LATERAL (
    SELECT max(e.created_round) AS created_round, max(e.holding_fee_rate) AS holding_fee_rate, max(e.source) AS source FROM holding_events e
    WHERE e.ledger_offset = a.activated_offset AND e.node_id = a.activated_node_id
) d ON true
LEFT JOIN LATERAL (
    SELECT max(e.unread_amount) AS unread_amount FROM holding_events e
    WHERE e.ledger_offset = a.activated_offset AND e.node_id = a.activated_node_id AND a.amount IS NULL
) n ON true
WHERE a.position_id IS NOT NULL AND btint8cmp(a.activated_offset, (SELECT ledger.latest_offset())) <> 1 AND NOT EXISTS (
    SELECT FROM active_contracts y
    WHERE y.contract_id = a.contract_id AND y.position_id IS NOT NULL AND y.reassignment_counter > 0
      AND (y.activated_offset, y.activated_node_id) > (a.activated_offset, a.activated_node_id));

-- The few contracts that have moved are looked up first, so that an index-only scan serves all others. OFFSET 0 keeps the look-ups from
-- becoming a join with all of active_contracts. MATERIALIZED: else the planner counts their cost for each party.
-- A sum over an amount that is not known is not known either.
CREATE VIEW held_totals AS
WITH superseded AS MATERIALIZED (
    SELECT o.activated_offset, o.activated_node_id
    FROM active_contracts y
    CROSS JOIN LATERAL (SELECT x.activated_offset, x.activated_node_id FROM active_contracts x WHERE x.contract_id = y.contract_id OFFSET 0) o
    WHERE y.position_id IS NOT NULL AND y.reassignment_counter > 0
      AND (y.activated_offset, y.activated_node_id) > (o.activated_offset, o.activated_node_id))
SELECT p.owner, p.instrument, p.instrument_admin, p.admin_signed, CASE WHEN count(a.amount) = count(*) THEN sum(a.amount) END AS amount,
       CASE WHEN count(*) FILTER (WHERE a.locked IS NULL OR a.locked AND a.amount IS NULL) = 0
            THEN coalesce(sum(a.amount) FILTER (WHERE a.locked), 0) END AS locked_amount,
       CASE WHEN count(*) FILTER (WHERE a.locked IS NULL OR NOT a.locked AND a.amount IS NULL) = 0
            THEN coalesce(sum(a.amount) FILTER (WHERE NOT a.locked), 0) END AS unlocked_amount,
       count(*) AS contracts, count(*) - count(a.amount) AS unread_amounts
FROM active_contracts a
JOIN positions p ON p.position_id = a.position_id
WHERE a.position_id IS NOT NULL AND btint8cmp(a.activated_offset, (SELECT ledger.latest_offset())) <> 1
  AND (a.activated_offset, a.activated_node_id) NOT IN (SELECT s.activated_offset, s.activated_node_id FROM superseded s)
GROUP BY p.position_id;
COMMENT ON VIEW held_totals IS 'What is held of each position as far as it is stored, also by parties that are hosted elsewhere.';

-- Not holdings_are_known, which would be called for each row: PostgreSQL looks up few parties, and reads all for many.
CREATE VIEW ledger.holding_totals AS
SELECT t.owner, t.instrument, t.instrument_admin, t.admin_signed, CASE WHEN k.known THEN t.amount END AS amount,
       CASE WHEN k.known THEN t.locked_amount END AS locked_amount, CASE WHEN k.known THEN t.unlocked_amount END AS unlocked_amount,
       t.contracts, t.unread_amounts
FROM held_totals t
CROSS JOIN LATERAL (
    SELECT NOT EXISTS (SELECT FROM hosting)
        OR EXISTS (SELECT FROM known_parties p WHERE p.party = t.owner AND p.known_from <= (SELECT ledger.latest_offset()) AND p.known_before > (SELECT ledger.latest_offset()))
        OR t.admin_signed AND EXISTS (SELECT FROM known_parties p WHERE p.party = t.instrument_admin AND p.known_from <= (SELECT ledger.latest_offset()) AND p.known_before > (SELECT ledger.latest_offset()))
        AS known
    OFFSET 0
) k;

-- Positions are joined below the UNION, where a condition on the owner uses the index. Scalar look-ups, not joins: a question about the past
-- reads many holdings, and few columns of each.
CREATE VIEW ledger.holding_lifetimes AS
SELECT x.owner, x.instrument, x.instrument_admin, x.amount, x.locked, x.locked_until,
       CASE WHEN x.locked IS NOT FALSE THEN (
           SELECT e.lock_holders FROM holding_events e WHERE e.ledger_offset = x.activated_offset AND e.node_id = x.activated_node_id LIMIT 1
       ) END AS lock_holders,
       x.contract_id,
       (SELECT c.created_at FROM creations c WHERE c.ledger_offset = x.activated_offset AND c.node_id = x.activated_node_id) AS created_at,
       x.activated_offset, x.activated_node_id,
       (SELECT e.created_round FROM holding_events e
        WHERE e.ledger_offset = x.activated_offset AND e.node_id = x.activated_node_id LIMIT 1) AS created_round,
       (SELECT e.holding_fee_rate FROM holding_events e
        WHERE e.ledger_offset = x.activated_offset AND e.node_id = x.activated_node_id LIMIT 1) AS holding_fee_rate,
       (SELECT e.source FROM holding_events e
        WHERE e.ledger_offset = x.activated_offset AND e.node_id = x.activated_node_id LIMIT 1) AS source,
       x.admin_signed, t.template_id, t.package_id, t.package_name, t.module_name, t.entity_name, s.synchronizer_id,
       x.active_until, x.reassignment_counter, x.active_before,
       CASE WHEN x.amount IS NULL THEN (
           SELECT e.unread_amount FROM holding_events e WHERE e.ledger_offset = x.activated_offset AND e.node_id = x.activated_node_id LIMIT 1
       ) END AS unread_amount
FROM (
    SELECT p.owner, p.instrument, p.instrument_admin, p.admin_signed, a.amount, a.locked, a.locked_until, a.contract_id, a.synchronizer_ref, a.template_ref, a.activated_offset, a.activated_node_id,
           NULL::bigint AS active_until, a.reassignment_counter, 9223372036854775807::bigint AS active_before
    FROM active_contracts a
    JOIN positions p ON p.position_id = a.position_id
    WHERE a.position_id IS NOT NULL AND btint8cmp(a.activated_offset, (SELECT ledger.latest_offset())) <> 1
    UNION ALL
    SELECT p.owner, p.instrument, p.instrument_admin, p.admin_signed, l.amount, l.locked, l.locked_until, l.contract_id, l.synchronizer_ref, l.template_ref, l.activated_offset, l.activated_node_id,
           l.deactivated_offset, l.reassignment_counter, l.deactivated_offset
    FROM lifetimes l
    JOIN positions p ON p.position_id = l.position_id
    WHERE l.position_id IS NOT NULL AND btint8cmp(l.deactivated_offset, (SELECT ledger.latest_offset())) <> 1
) x
LEFT JOIN templates t ON t.template_ref = x.template_ref
LEFT JOIN synchronizers s ON s.synchronizer_ref = x.synchronizer_ref;

CREATE FUNCTION ledger.state_offset(at_offset bigint) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
    state_floor   bigint := ledger.state_floor();
    latest_offset bigint := ledger.latest_offset();
BEGIN
    IF latest_offset IS NULL THEN
        RAISE EXCEPTION 'nothing has been indexed yet'
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Start the indexer, or wait for the snapshot to be complete.';
    ELSIF state_floor IS NULL THEN
        RAISE EXCEPTION 'the active contracts are known at no offset: indexing began in the middle, without a snapshot'
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Seed a new database from a snapshot to know what was active.';
    ELSIF at_offset IS NULL THEN
        RAISE EXCEPTION 'an offset is needed, not NULL' USING ERRCODE = 'null_value_not_allowed';
    ELSIF at_offset < state_floor THEN
        RAISE EXCEPTION 'the active contracts are not known at offset %, but from offset % on', at_offset, state_floor
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Ask for an offset between ledger.state_floor() and ledger.latest_offset().';
    ELSIF at_offset > latest_offset THEN
        RAISE EXCEPTION 'offset % has not been indexed yet: the latest is %', at_offset, latest_offset
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Ask for an offset between ledger.state_floor() and ledger.latest_offset().';
    END IF;
    RETURN at_offset;
END
$$;
COMMENT ON FUNCTION ledger.state_offset(bigint) IS 'The given offset, if the active contracts at it are known: from ledger.state_floor() to ledger.latest_offset(). Else an error, so that a query about the past returns no wrong answer.';

-- Conditions are outside of the UNION, so that those of a query reach the indexes of both tables.
CREATE VIEW held_lifetimes AS
SELECT x.position_id, x.amount, x.locked, x.contract_id, x.activated_offset, x.activated_node_id, x.reassignment_counter, x.active_before
FROM (
    SELECT a.position_id, a.amount, a.locked, a.contract_id, a.activated_offset, a.activated_node_id, a.reassignment_counter,
           9223372036854775807::bigint AS active_before, a.activated_offset AS shown_at
    FROM active_contracts a
    UNION ALL
    SELECT l.position_id, l.amount, l.locked, l.contract_id, l.activated_offset, l.activated_node_id, l.reassignment_counter,
           l.deactivated_offset, l.deactivated_offset
    FROM lifetimes l
) x
WHERE x.position_id IS NOT NULL AND btint8cmp(x.shown_at, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW held_lifetimes IS 'The lifetimes of holdings, with what is kept of them.';

-- PostgreSQL inlines it into the calling query, as ledger.active_at: only columns that the query names are looked up. The argument is
-- computed once, because it may be a call such as ledger.offset_at. Of what is active now active_before is a constant, so that the offset is
-- checked before a row is read, and even if nothing is held. A condition without a column would check it too, but PostgreSQL then keeps
-- joins of which no column is named. Only a contract that has moved can replace another row: in both tables those have an index.
CREATE FUNCTION ledger.holdings_at(at_offset bigint) RETURNS SETOF ledger.holdings
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    WITH known AS MATERIALIZED (SELECT ledger.state_offset(at_offset) AS at)
    SELECT h.owner, h.instrument, h.instrument_admin, h.amount, h.locked, h.locked_until, h.lock_holders, h.contract_id,
           h.created_at, h.activated_offset, h.activated_node_id, h.created_round,
           h.holding_fee_rate, h.source, h.admin_signed, h.template_id, h.package_id, h.package_name, h.module_name,
           h.entity_name, h.synchronizer_id, h.unread_amount
    FROM ledger.holding_lifetimes h
    WHERE h.activated_offset <= (SELECT k.at FROM known k) AND h.active_before > (SELECT k.at FROM known k)
      AND NOT EXISTS (
          SELECT FROM held_lifetimes y
          WHERE y.contract_id = h.contract_id AND y.reassignment_counter > 0 AND y.activated_offset <= (SELECT k.at FROM known k)
            AND y.active_before > (SELECT k.at FROM known k) AND (y.activated_offset, y.activated_node_id) > (h.activated_offset, h.activated_node_id)); END;

-- The same, added up by position: that is faster than by its texts. The first condition checks the offset, even if nothing is held. What newer
-- activations have replaced is looked up first, as in ledger.holding_totals, so that contract ids are read of what has moved only. It is found
-- by the creation events of the contract: an older activation that has ended is among them, too, and is not held anyway.
CREATE FUNCTION ledger.holding_totals_at(at_offset bigint) RETURNS SETOF ledger.holding_totals
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    WITH known AS MATERIALIZED (SELECT ledger.state_offset(at_offset) AS at), superseded AS MATERIALIZED (
        SELECT o.ledger_offset, o.node_id
        FROM held_lifetimes y
        CROSS JOIN LATERAL (SELECT c.ledger_offset, c.node_id FROM creations c WHERE c.contract_id = y.contract_id OFFSET 0) o
        WHERE y.reassignment_counter > 0 AND y.activated_offset <= (SELECT k.at FROM known k) AND y.active_before > (SELECT k.at FROM known k)
          AND (y.activated_offset, y.activated_node_id) > (o.ledger_offset, o.node_id)), totals AS (
    SELECT p.owner, p.instrument, p.instrument_admin, p.admin_signed, CASE WHEN count(h.amount) = count(*) THEN sum(h.amount) END AS amount,
           CASE WHEN count(*) FILTER (WHERE h.locked IS NULL OR h.locked AND h.amount IS NULL) = 0
                THEN coalesce(sum(h.amount) FILTER (WHERE h.locked), 0) END AS locked_amount,
           CASE WHEN count(*) FILTER (WHERE h.locked IS NULL OR NOT h.locked AND h.amount IS NULL) = 0
                THEN coalesce(sum(h.amount) FILTER (WHERE NOT h.locked), 0) END AS unlocked_amount,
           count(*) AS contracts, count(*) - count(h.amount) AS unread_amounts
    FROM held_lifetimes h
    JOIN positions p ON p.position_id = h.position_id
    WHERE (SELECT k.at FROM known k) IS NOT NULL AND h.activated_offset <= (SELECT k.at FROM known k) AND h.active_before > (SELECT k.at FROM known k)
      AND (h.activated_offset, h.activated_node_id) NOT IN (SELECT s.ledger_offset, s.node_id FROM superseded s)
    GROUP BY p.position_id)
    SELECT t.owner, t.instrument, t.instrument_admin, t.admin_signed, CASE WHEN k.known THEN t.amount END AS amount,
           CASE WHEN k.known THEN t.locked_amount END AS locked_amount, CASE WHEN k.known THEN t.unlocked_amount END AS unlocked_amount,
           t.contracts, t.unread_amounts
    FROM totals t
    CROSS JOIN LATERAL (
        SELECT NOT EXISTS (SELECT FROM hosting)
            OR EXISTS (SELECT FROM known_parties p WHERE p.party = t.owner AND p.known_from <= (SELECT s.at FROM known s) AND p.known_before > (SELECT s.at FROM known s))
            OR t.admin_signed AND EXISTS (SELECT FROM known_parties p WHERE p.party = t.instrument_admin AND p.known_from <= (SELECT s.at FROM known s) AND p.known_before > (SELECT s.at FROM known s))
            AS known
        OFFSET 0
    ) k; END;

CREATE VIEW ledger.hosted_parties AS
SELECT h.party, h.hosted, h.since, h.until, h.onboarded, h.asked_at FROM hosting h;
COMMENT ON VIEW ledger.hosted_parties IS 'Which parties the participant hosts, of those that hold something or administer it, or, where --parties names some, of these: all is stored that these hold. Of others, and of parties without a row, balances and sums of holdings are NULL. No rows at all: the participant can''t be asked (also in the schema of a network), or was not asked yet; then every sum is of what is stored. A limited role sees its own parties.';
COMMENT ON COLUMN ledger.hosted_parties.party IS 'The party. Unique.';
COMMENT ON COLUMN ledger.hosted_parties.hosted IS 'Whether the participant hosts it. False: another one does, or nobody knows the party, or it belongs to another identity provider than the indexer''s user.';
COMMENT ON COLUMN ledger.hosted_parties.since IS 'Offset of the topology event since which it is hosted, the last one on the synchronizer that has hosted it longest. NULL: since before the stored events, or topology events are not read, or it was never hosted.';
COMMENT ON COLUMN ledger.hosted_parties.until IS 'Of a party that is not hosted any more: the offset of the topology event that says so. NULL: it is hosted, or no stored event says that it was.';
COMMENT ON COLUMN ledger.hosted_parties.onboarded IS 'Whether it came with contracts from another participant: what it held before since is not known, and of what it brought along only what updates show. `indexer verify` names the rest.';
COMMENT ON COLUMN ledger.hosted_parties.asked_at IS 'When the participant was asked (clock of the database). It is asked again after a day, and after a topology event of the party.';

COMMENT ON VIEW ledger.holdings IS 'Who holds what: one row per contract that is active at ledger.latest_offset() and holds an amount for an owner. That is every contract of the amulet templates (Amulet and LockedAmulet of package splice-amulet), and every contract with a view of the token standard''s Holding interface (Splice.Api.Token.HoldingV1 or HoldingV2) that the server could compute. It covers what the indexed parties may see and what was asked for: views are here only if --interfaces asked for them. A contract that is active on two synchronizers has one row, for the synchronizer where it became active last. Payload and view say what the contract''s author wrote: check admin_signed before you rely on it. A value that can''t be read is NULL; a holding without readable owner and amount is here too. Holdings from before indexing began are missing where ledger.state_floor() is NULL.';
COMMENT ON COLUMN ledger.holdings.owner IS 'The party that owns the holding. NULL: not readable, or an account without an owner (HoldingV2).';
COMMENT ON COLUMN ledger.holdings.instrument IS 'Id of the instrument that is held: Amulet for amulets, else the id that the administrator gave it. Two administrators can use the same id.';
COMMENT ON COLUMN ledger.holdings.instrument_admin IS 'The party that administers the instrument, of amulets the DSO. Not proved unless admin_signed is true.';
COMMENT ON COLUMN ledger.holdings.amount IS 'Amount that is held. Of an amulet it is the initial amount: the holding fees since created_round, holding_fee_rate for each round, are not taken off. NULL: not readable; see unread_amount.';
COMMENT ON COLUMN ledger.holdings.locked IS 'Whether the holding carries a lock. It may have expired: compare locked_until with the time you mean. NULL: not readable.';
COMMENT ON COLUMN ledger.holdings.locked_until IS 'When the lock expires: the earlier of its expiry time and created_at plus its duration. NULL: no lock, no known end, or not readable. Microseconds, UTC.';
COMMENT ON COLUMN ledger.holdings.lock_holders IS 'Parties that hold the lock. NULL: no lock, or not readable. Costs a look-up per row, unless the holding is not locked.';
COMMENT ON COLUMN ledger.holdings.contract_id IS 'Id of the contract. Indexed.';
COMMENT ON COLUMN ledger.holdings.created_at IS 'Ledger time of the contract''s creation. Microseconds, UTC. Costs a look-up per row.';
COMMENT ON COLUMN ledger.holdings.activated_offset IS 'Offset of the event that made the contract active where it is: its creation, or its assignment to synchronizer_id. With activated_node_id it names the row of ledger.created_events.';
COMMENT ON COLUMN ledger.holdings.activated_node_id IS 'Node id of that event.';
COMMENT ON COLUMN ledger.holdings.created_round IS 'Round in which an amulet was created. NULL for other holdings. Costs a look-up per row.';
COMMENT ON COLUMN ledger.holdings.holding_fee_rate IS 'Holding fee of an amulet for each round. NULL for other holdings. Costs a look-up per row.';
COMMENT ON COLUMN ledger.holdings.source IS 'What the row was read from: amulet payload, or the id of the interface whose view it was. An amulet''s view is read only where its payload is not served. HoldingV2 is preferred to HoldingV1. NULL: an amulet of which nothing can be read. Costs a look-up per row.';
COMMENT ON COLUMN ledger.holdings.admin_signed IS 'Whether instrument_admin is among the contract''s signatories. False: the holding may be forged; leave it out of sums. True proves only that this administrator signed: anybody can administer an instrument with the same id, so filter by the administrator, too.';
COMMENT ON COLUMN ledger.holdings.template_id IS 'Template as the server sent it with the activation, package-id:Module:Entity.';
COMMENT ON COLUMN ledger.holdings.package_id IS 'The part of template_id before the first colon.';
COMMENT ON COLUMN ledger.holdings.package_name IS 'Name of the package, the same over its releases.';
COMMENT ON COLUMN ledger.holdings.module_name IS 'Module of the template, with dots.';
COMMENT ON COLUMN ledger.holdings.entity_name IS 'Name of the template within its module.';
COMMENT ON COLUMN ledger.holdings.synchronizer_id IS 'Synchronizer on which the contract is active; of several the one where it became active last. NULL where the server did not say.';
COMMENT ON COLUMN ledger.holdings.unread_amount IS 'What is written where the amount should be and is no decimal, its first 1,000 characters. NULL: amount is readable, or nothing is written there, or it was redacted. Costs a look-up per row where amount is NULL.';

COMMENT ON VIEW ledger.holding_totals IS 'Sums of ledger.holdings, whose comment says what they cover: one row per owner, instrument, administrator and admin_signed. Its sums are NULL where ledger.hosted_parties has rows, but neither the owner nor, where it signed, the administrator as hosted: of parties that are hosted elsewhere only some holdings are seen. Holdings that the administrator did not sign are never added to those that it did.';
COMMENT ON COLUMN ledger.holding_totals.owner IS 'The owner. NULL: not readable.';
COMMENT ON COLUMN ledger.holding_totals.instrument IS 'Id of the instrument.';
COMMENT ON COLUMN ledger.holding_totals.instrument_admin IS 'The instrument''s administrator. Not proved unless admin_signed is true.';
COMMENT ON COLUMN ledger.holding_totals.admin_signed IS 'Whether the administrator signed these contracts. False: they may be forged. See ledger.holdings.admin_signed.';
COMMENT ON COLUMN ledger.holding_totals.amount IS 'Sum of the amounts; of amulets the initial amounts. NULL: one of them can''t be read, which unread_amounts counts, or the owner is not known to be hosted by the participant.';
COMMENT ON COLUMN ledger.holding_totals.locked_amount IS 'The part of amount that is locked, also by locks that have expired. 0: none. NULL: an amount of it can''t be read, or of a contract whether it is locked, or the owner is not known to be hosted.';
COMMENT ON COLUMN ledger.holding_totals.unlocked_amount IS 'The part of amount that is not locked. NULL: as of locked_amount.';
COMMENT ON COLUMN ledger.holding_totals.contracts IS 'How many contracts that are stored hold it, those without a readable amount included.';
COMMENT ON COLUMN ledger.holding_totals.unread_amounts IS 'How many of these contracts have no readable amount: ledger.holdings has them, with unread_amount.';

COMMENT ON VIEW ledger.holding_lifetimes IS 'One row per holding, synchronizer and time in which it is active there, with the columns of ledger.holdings. Held at offset N: activated_offset <= N and active_before > N, once for each synchronizer; ledger.holdings_at(N) has each contract once. Lifetimes are complete from ledger.state_floor() on.';
COMMENT ON COLUMN ledger.holding_lifetimes.owner IS 'The party that owns the holding. NULL: not readable, or an account without an owner (HoldingV2).';
COMMENT ON COLUMN ledger.holding_lifetimes.instrument IS 'Id of the instrument that is held: Amulet for amulets, else the id that the administrator gave it. Two administrators can use the same id.';
COMMENT ON COLUMN ledger.holding_lifetimes.instrument_admin IS 'The party that administers the instrument, of amulets the DSO. Not proved unless admin_signed is true.';
COMMENT ON COLUMN ledger.holding_lifetimes.amount IS 'Amount that is held. Of an amulet it is the initial amount: the holding fees since created_round, holding_fee_rate for each round, are not taken off. NULL: not readable; see unread_amount.';
COMMENT ON COLUMN ledger.holding_lifetimes.locked IS 'Whether the holding carries a lock. It may have expired: compare locked_until with the time you mean. NULL: not readable.';
COMMENT ON COLUMN ledger.holding_lifetimes.locked_until IS 'When the lock expires: the earlier of its expiry time and created_at plus its duration. NULL: no lock, no known end, or not readable. Microseconds, UTC.';
COMMENT ON COLUMN ledger.holding_lifetimes.lock_holders IS 'Parties that hold the lock. NULL: no lock, or not readable. Costs a look-up per row, unless the holding is not locked.';
COMMENT ON COLUMN ledger.holding_lifetimes.contract_id IS 'Id of the contract.';
COMMENT ON COLUMN ledger.holding_lifetimes.created_at IS 'Ledger time of the contract''s creation. Microseconds, UTC. Costs a look-up per row.';
COMMENT ON COLUMN ledger.holding_lifetimes.activated_offset IS 'Offset of the event that made the contract active where it is: its creation, or its assignment to synchronizer_id. With activated_node_id it names the row of ledger.created_events.';
COMMENT ON COLUMN ledger.holding_lifetimes.activated_node_id IS 'Node id of that event.';
COMMENT ON COLUMN ledger.holding_lifetimes.created_round IS 'Round in which an amulet was created. NULL for other holdings. Costs a look-up per row.';
COMMENT ON COLUMN ledger.holding_lifetimes.holding_fee_rate IS 'Holding fee of an amulet for each round. NULL for other holdings. Costs a look-up per row.';
COMMENT ON COLUMN ledger.holding_lifetimes.source IS 'What the row was read from: amulet payload, or the id of the interface whose view it was. An amulet''s view is read only where its payload is not served. HoldingV2 is preferred to HoldingV1. NULL: an amulet of which nothing can be read. Costs a look-up per row.';
COMMENT ON COLUMN ledger.holding_lifetimes.admin_signed IS 'Whether instrument_admin is among the contract''s signatories. False: the holding may be forged; leave it out of sums. True proves only that this administrator signed: anybody can administer an instrument with the same id, so filter by the administrator, too.';
COMMENT ON COLUMN ledger.holding_lifetimes.template_id IS 'Template as the server sent it with the activation, package-id:Module:Entity.';
COMMENT ON COLUMN ledger.holding_lifetimes.package_id IS 'The part of template_id before the first colon.';
COMMENT ON COLUMN ledger.holding_lifetimes.package_name IS 'Name of the package, the same over its releases.';
COMMENT ON COLUMN ledger.holding_lifetimes.module_name IS 'Module of the template, with dots.';
COMMENT ON COLUMN ledger.holding_lifetimes.entity_name IS 'Name of the template within its module.';
COMMENT ON COLUMN ledger.holding_lifetimes.synchronizer_id IS 'Synchronizer on which the contract is active; NULL where the server did not say.';
COMMENT ON COLUMN ledger.holding_lifetimes.active_until IS 'Offset of the archival, or of the unassignment: not held at this offset any more. NULL: held now.';
COMMENT ON COLUMN ledger.holding_lifetimes.reassignment_counter IS 'How often the contract had moved when it came to this synchronizer. 0: it was created on it.';
COMMENT ON COLUMN ledger.holding_lifetimes.active_before IS 'active_until for conditions: held now is the greatest bigint instead of NULL.';
COMMENT ON COLUMN ledger.holding_lifetimes.unread_amount IS 'What is written where the amount should be and is no decimal, its first 1,000 characters. NULL: amount is readable, or nothing is written there, or it was redacted. Costs a look-up per row where amount is NULL.';

COMMENT ON FUNCTION ledger.holdings_at(bigint) IS 'ledger.holdings as of the given offset, with the same columns: what was active after the update at that offset. An error below ledger.state_floor(), where that is NULL, and beyond ledger.latest_offset(). It takes longer the more contracts have ended since. The argument should be a constant, a parameter or a call, and neither a subquery nor a column.';
COMMENT ON FUNCTION ledger.holding_totals_at(bigint) IS 'ledger.holding_totals as of the given offset, with the same columns: the sums of ledger.holdings_at, whose comment says what offsets and arguments it takes. It takes less time than to add those up.';
