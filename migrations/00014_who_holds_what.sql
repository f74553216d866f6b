-- Who holds what, now and at any offset.

-- +goose Up

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

CREATE VIEW ledger.hosted_parties WITH (security_invoker = true) AS
SELECT h.party, h.hosted, h.since, h.until, h.onboarded, h.asked_at FROM hosting h;
COMMENT ON VIEW ledger.hosted_parties IS 'Which parties the participant hosts, of those that hold something or administer it, or, where --parties names some, of these: all is stored that these hold. Of others, and of parties without a row, balances and sums of holdings are NULL. No rows at all: the participant can''t be asked (also in the schema of a network), or was not asked yet; then every sum is of what is stored. A limited role sees its own parties.
@graphql({"primary_key_columns": ["party"]})';
COMMENT ON COLUMN ledger.hosted_parties.party IS 'The party. Unique.';
COMMENT ON COLUMN ledger.hosted_parties.hosted IS 'Whether the participant hosts it. False: another one does, or nobody knows the party, or it belongs to another identity provider than the indexer''s user.';
COMMENT ON COLUMN ledger.hosted_parties.since IS 'Offset of the topology event since which it is hosted, the last one on the synchronizer that has hosted it longest. NULL: since before the stored events, or topology events are not read, or it was never hosted.';
COMMENT ON COLUMN ledger.hosted_parties.until IS 'Of a party that is not hosted any more: the offset of the topology event that says so. NULL: it is hosted, or no stored event says that it was.';
COMMENT ON COLUMN ledger.hosted_parties.onboarded IS 'Whether it came with contracts from another participant: what it held before since is not known, and of what it brought along only what updates show. `indexer verify` names the rest.';
COMMENT ON COLUMN ledger.hosted_parties.asked_at IS 'When the participant was asked (clock of the database). It is asked again after a day, and after a topology event of the party.';

-- With its owner's rights: a role that is limited to parties sees none of the others' rows, and must not take the relation for empty.
CREATE VIEW hosting_asked AS SELECT true AS asked FROM hosting LIMIT 1;
COMMENT ON VIEW hosting_asked IS 'A row if the participant was asked whom it hosts.';

CREATE VIEW known_parties WITH (security_invoker = true) AS
SELECT h.party, greatest(CASE WHEN h.onboarded THEN h.since ELSE 0 END, CASE WHEN (SELECT scope_was_widened()) THEN read_since(h.party) END) AS known_from,
       CASE WHEN h.hosted THEN 9223372036854775807 ELSE h.until END AS known_before
FROM hosting h
WHERE h.hosted OR h.until IS NOT NULL;
COMMENT ON VIEW known_parties IS 'From which offset on, and before which one, all is stored that a party holds.';

CREATE FUNCTION holdings_are_known(owner text, instrument_admin text, at_offset bigint) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN NOT EXISTS (SELECT FROM hosting_asked) OR EXISTS (
    SELECT FROM known_parties k
    WHERE k.party IN (holdings_are_known.owner, holdings_are_known.instrument_admin)
      AND k.known_from <= holdings_are_known.at_offset AND k.known_before > holdings_are_known.at_offset);
COMMENT ON FUNCTION holdings_are_known(text, text, bigint) IS 'Whether all is stored that a party holds of an instrument, whose administrator signed it, after the update at an offset.';

-- Now --------------------------------------------------------------------------------------------------------------

-- Whatever is not kept with the active set is looked up, and only where a query names it: an event has at most one row, of which max() is
-- itself, and PostgreSQL leaves out a join with an aggregate of which nothing is named. So each look-up is made once for a row,
-- however often its columns are named. What is not locked has no lock to look up. Holdings of now are read without the lifetimes that have ended,
-- which would be planned with each query.
CREATE VIEW ledger.holdings WITH (security_invoker = true) AS
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
COMMENT ON VIEW ledger.holdings IS 'Who holds what: one row per contract that is active at ledger.latest_offset() and holds an amount for an owner. That is every contract of the amulet templates (Amulet and LockedAmulet of package splice-amulet), and every contract with a view of the token standard''s Holding interface (Splice.Api.Token.HoldingV1 or HoldingV2) that the server could compute. It covers what the indexed parties may see and what was asked for: views are here only if --interfaces asked for them. A contract that is active on two synchronizers has one row, for the synchronizer where it became active last. Payload and view say what the contract''s author wrote: check admin_signed before you rely on it. A value that can''t be read is NULL; a holding without readable owner and amount is here too. Holdings from before indexing began are missing where ledger.state_floor() is NULL.
@graphql({"primary_key_columns": ["contract_id"], "foreign_keys": [{"local_columns": ["contract_id"], "foreign_schema": "ledger", "foreign_table": "contracts", "foreign_columns": ["contract_id"]}]})';
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

-- The few contracts that have moved are looked up first, so that an index-only scan serves all others. OFFSET 0 keeps the look-ups from
-- becoming a join with all of active_contracts. MATERIALIZED: else the planner counts their cost for each party.
-- A sum over an amount that is not known is not known either.
CREATE VIEW held_totals WITH (security_invoker = true) AS
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
CREATE VIEW ledger.holding_totals WITH (security_invoker = true) AS
SELECT t.owner, t.instrument, t.instrument_admin, t.admin_signed, CASE WHEN k.known THEN t.amount END AS amount,
       CASE WHEN k.known THEN t.locked_amount END AS locked_amount, CASE WHEN k.known THEN t.unlocked_amount END AS unlocked_amount,
       t.contracts, t.unread_amounts
FROM held_totals t
CROSS JOIN LATERAL (
    SELECT NOT EXISTS (SELECT FROM hosting_asked)
        OR EXISTS (SELECT FROM known_parties p WHERE p.party = t.owner AND p.known_from <= (SELECT ledger.latest_offset()) AND p.known_before > (SELECT ledger.latest_offset()))
        OR t.admin_signed AND EXISTS (SELECT FROM known_parties p WHERE p.party = t.instrument_admin AND p.known_from <= (SELECT ledger.latest_offset()) AND p.known_before > (SELECT ledger.latest_offset()))
        AS known
    OFFSET 0
) k;
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

-- At any offset ----------------------------------------------------------------------------------------------------

-- Positions are joined below the UNION, where a condition on the owner uses the index. Scalar look-ups, not joins: a question about the past
-- reads many holdings, and few columns of each.
CREATE VIEW ledger.holding_lifetimes WITH (security_invoker = true) AS
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
COMMENT ON VIEW ledger.holding_lifetimes IS 'One row per holding, synchronizer and time in which it is active there, with the columns of ledger.holdings. Held at offset N: activated_offset <= N and active_before > N, once for each synchronizer; ledger.holdings_at(N) has each contract once. Lifetimes are complete from ledger.state_floor() on.
@graphql({"primary_key_columns": ["activated_offset", "activated_node_id"], "foreign_keys": [{"local_columns": ["contract_id"], "foreign_schema": "ledger", "foreign_table": "contracts", "foreign_columns": ["contract_id"]}]})';
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

-- Conditions are outside of the UNION, so that those of a query reach the indexes of both tables.
CREATE VIEW held_lifetimes WITH (security_invoker = true) AS
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
COMMENT ON FUNCTION ledger.holdings_at(bigint) IS 'ledger.holdings as of the given offset, with the same columns: what was active after the update at that offset. An error below ledger.state_floor(), where that is NULL, and beyond ledger.latest_offset(). It takes longer the more contracts have ended since. The argument should be a constant, a parameter or a call, and neither a subquery nor a column.';

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
        SELECT NOT EXISTS (SELECT FROM hosting_asked)
            OR EXISTS (SELECT FROM known_parties p WHERE p.party = t.owner AND p.known_from <= (SELECT s.at FROM known s) AND p.known_before > (SELECT s.at FROM known s))
            OR t.admin_signed AND EXISTS (SELECT FROM known_parties p WHERE p.party = t.instrument_admin AND p.known_from <= (SELECT s.at FROM known s) AND p.known_before > (SELECT s.at FROM known s))
            AS known
        OFFSET 0
    ) k; END;
COMMENT ON FUNCTION ledger.holding_totals_at(bigint) IS 'ledger.holding_totals as of the given offset, with the same columns: the sums of ledger.holdings_at, whose comment says what offsets and arguments it takes. It takes less time than to add those up.';
