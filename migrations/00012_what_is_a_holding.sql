-- What is a holding, of what and for whom: computed once for each contract, when it is written, and kept with the active set. Anybody can write
-- payloads and views that the indexed parties see, so no value in them may make a query fail: one that can't be read is NULL.

-- +goose Up

CREATE FUNCTION holding_version(interface_id text) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN interface_id LIKE '%:Splice.Api.Token.HoldingV1:Holding' THEN 1
    WHEN interface_id LIKE '%:Splice.Api.Token.HoldingV2:Holding' THEN 2
END;
COMMENT ON FUNCTION holding_version(text) IS 'Which version of the token standard''s Holding an interface is, by its module: the package id changes with each release.';

CREATE VIEW amulet_templates WITH (security_invoker = true) AS
SELECT t.template_ref, t.entity_name = 'LockedAmulet' AS is_locked
FROM templates t
WHERE t.package_name = 'splice-amulet' AND t.module_name = 'Splice.Amulet' AND t.entity_name IN ('Amulet', 'LockedAmulet');
COMMENT ON VIEW amulet_templates IS 'Templates of amulets, which are read by their payload.';

CREATE VIEW holding_templates WITH (security_invoker = true) AS
SELECT t.template_ref FROM amulet_templates t
UNION
SELECT i.template_ref FROM template_interfaces i WHERE holding_version(i.interface_id) IS NOT NULL;
COMMENT ON VIEW holding_templates IS 'Templates whose contracts can be holdings.';

-- Positions --------------------------------------------------------------------------------------------------------

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

-- A position is seen by the stakeholders of its holdings.
CREATE TABLE position_stakeholders (
    position_id      uuid    NOT NULL,
    stakeholders_ref integer NOT NULL,
    PRIMARY KEY (position_id, stakeholders_ref)
);
COMMENT ON TABLE position_stakeholders IS 'The stakeholders of contracts that are holdings of a position. Written with positions, and as these never removed.';

CREATE VIEW my_positions AS
SELECT p.position_id FROM position_stakeholders p WHERE get_bit((SELECT m.bits FROM my_lists m), p.stakeholders_ref) <> 0;

-- What each contract holds -----------------------------------------------------------------------------------------

-- The one definition of holdings, for creation events: rows written in Go must equal it. Views are read only if the payload can't be.
-- OFFSET 0 makes PostgreSQL compute p once, before them.
CREATE VIEW holding_events WITH (security_invoker = true) AS
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

CREATE VIEW held_positions WITH (security_invoker = true) AS
SELECT DISTINCT h.position_id, h.owner, h.instrument, h.instrument_admin, h.admin_signed
FROM holding_events h
WHERE h.template_ref = ANY (ARRAY(SELECT k.template_ref FROM holding_templates k));
COMMENT ON VIEW held_positions IS 'The positions of all holdings that are stored. positions must hold at least these.';

CREATE VIEW held_stakeholders WITH (security_invoker = true) AS
SELECT DISTINCT h.position_id, c.stakeholders_ref
FROM holding_events h
JOIN created c ON c.ledger_offset = h.ledger_offset AND c.node_id = h.node_id
WHERE c.stakeholders_ref IS NOT NULL AND h.template_ref = ANY (ARRAY(SELECT k.template_ref FROM holding_templates k));
COMMENT ON VIEW held_stakeholders IS 'The stakeholders of all holdings that are stored. position_stakeholders must hold at least these.';
