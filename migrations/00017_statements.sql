-- What a party held, and its statement of account.

-- +goose Up

CREATE FUNCTION held_amount(party text, instrument text, at_offset bigint, instrument_admin text, nothing numeric) RETURNS numeric
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
    admins text[];
    amount numeric;
    held   boolean;
BEGIN
    PERFORM ledger.state_offset(at_offset); -- a plan that finds nobody of this name would not ask
    SELECT array_agg(DISTINCT h.instrument_admin), CASE WHEN count(h.amount) = count(*) THEN sum(h.amount) END, count(*) > 0 INTO admins, amount, held
    FROM ledger.holding_totals_at(at_offset) h
    WHERE h.owner = held_amount.party AND h.instrument = held_amount.instrument AND h.admin_signed
      AND (held_amount.instrument_admin IS NULL OR h.instrument_admin = held_amount.instrument_admin);
    IF cardinality(admins) > 1 THEN
        RAISE EXCEPTION '% parties administer an instrument % that this party holds', cardinality(admins), left(instrument, 100)
            USING ERRCODE = 'ambiguous_parameter', HINT = 'Name the administrator as the last argument: ' || left(array_to_string(admins, ', '), 1000);
    END IF;
    RETURN nothing + CASE WHEN held THEN amount ELSE 0 END;
END
$$;
COMMENT ON FUNCTION held_amount(text, text, bigint, text, numeric) IS 'What a party holds of an instrument after the update at an offset. nothing is 0, or NULL where it is not known. NULL: not known.';

-- Nothing held is 0 only for a party that has held the instrument at some time: what is misspelt was never held.
CREATE FUNCTION ledger.balance_at_offset(party text, instrument text, at_offset bigint, instrument_admin text DEFAULT NULL) RETURNS numeric
LANGUAGE sql STABLE PARALLEL SAFE
RETURN held_amount(party, instrument, at_offset, instrument_admin, (
    SELECT CASE WHEN bool_and(holdings_are_known(p.owner, p.instrument_admin, balance_at_offset.at_offset)) THEN 0 END FROM positions p
    WHERE p.owner = balance_at_offset.party AND p.instrument = balance_at_offset.instrument AND p.admin_signed
      AND (balance_at_offset.instrument_admin IS NULL OR p.instrument_admin = balance_at_offset.instrument_admin)));
COMMENT ON FUNCTION ledger.balance_at_offset(text, text, bigint, text) IS 'What a party holds of an instrument after the update at an offset: the sum of ledger.holdings_at, of holdings that the administrator signed. 0: nothing, of a party that held it at some time, be it before what was pruned: what is active at ledger.state_floor() stays. NULL: no holding of the party''s was ever stored, so perhaps a name is misspelt; or an amount among them can''t be read (ledger.holdings_at has it, with unread_amount); or the participant did not host the party at the offset, nor each administrator of such an id (see ledger.hosted_parties). What was redacted since is missing in it: it is not known any more whose it was. An error where the party holds several instruments with this id and none of their administrators is named, and where the active contracts are not known at the offset.';

CREATE FUNCTION ledger.balance_at(party text, instrument text, at_time timestamptz, instrument_admin text DEFAULT NULL) RETURNS numeric
LANGUAGE sql STABLE PARALLEL SAFE
RETURN ledger.balance_at_offset(party, instrument, ledger.offset_at(at_time), instrument_admin);
COMMENT ON FUNCTION ledger.balance_at(text, text, timestamptz, text) IS 'ledger.balance_at_offset at ledger.offset_at of a time.';

CREATE FUNCTION ledger.party_statement(party text, from_exclusive bigint, to_inclusive bigint)
RETURNS TABLE (ledger_offset bigint, node_id integer, record_time timestamptz, update_id text, instrument text, instrument_admin text, label text,
    counterparties text[], amount numeric, transferred numeric, minted numeric, burned numeric, unexplained numeric, balance numeric, reason text,
    instruction_id text)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
WITH opening AS MATERIALIZED (
    SELECT h.instrument, h.instrument_admin, CASE WHEN count(h.amount) = count(*) THEN sum(h.amount) END AS amount, true AS held
    FROM ledger.holdings_at(from_exclusive) h
    WHERE h.owner = party_statement.party AND h.admin_signed
      AND NOT EXISTS (SELECT FROM archivals a WHERE a.contract_id = h.contract_id AND a.ledger_offset + 0 <= from_exclusive OFFSET 0) -- not all archivals
    GROUP BY h.instrument, h.instrument_admin
)
SELECT e.ledger_offset, e.node_id, e.record_time, e.update_id, e.instrument, e.instrument_admin, e.label, e.counterparties, e.amount, e.transferred,
       CASE WHEN e.rest IS NOT NULL THEN greatest(e.rest, 0) END, CASE WHEN e.rest IS NOT NULL THEN greatest(-e.rest, 0) END, e.amount - e.transferred - e.rest,
       CASE WHEN holdings_are_known(party_statement.party, e.instrument_admin, from_exclusive)
                AND holdings_are_known(party_statement.party, e.instrument_admin, e.ledger_offset)
            THEN CASE WHEN o.held THEN o.amount ELSE 0 END + CASE WHEN count(e.amount) OVER before = count(*) OVER before THEN sum(e.amount) OVER before END
       END,
       e.reason, e.instruction_id
FROM (
    SELECT t.*, CASE WHEN t.standard IS NULL OR t.minted_amount IS NULL AND t.label NOT IN ('Unlock', 'ExpireDust') THEN 0
                ELSE t.amount - t.transferred END AS rest
    FROM (
        SELECT x.*, CASE
            WHEN x.counterparty_amounts IS NOT NULL THEN -(
                SELECT CASE WHEN count(a.amount) = count(*) THEN coalesce(sum(a.amount), 0) END FROM unnest(x.counterparty_amounts) a (amount))
            WHEN x.label = 'TransferIn' THEN x.amount ELSE 0 END AS transferred
        FROM ledger.token_events_of(party_statement.party) x
        WHERE x.admin_signed -- in plain conditions NULL would be false before it is refused
          AND x.ledger_offset > (SELECT ledger.state_offset(from_exclusive)) AND x.ledger_offset <= (SELECT ledger.state_offset(to_inclusive))
    ) t
) e
LEFT JOIN opening o ON o.instrument IS NOT DISTINCT FROM e.instrument AND o.instrument_admin IS NOT DISTINCT FROM e.instrument_admin
WHERE (SELECT ledger.state_offset(from_exclusive)) IS NOT NULL AND (SELECT ledger.state_offset(to_inclusive)) IS NOT NULL -- also where nothing moved
WINDOW before AS (PARTITION BY e.instrument, e.instrument_admin ORDER BY e.ledger_offset, e.node_id)
ORDER BY e.ledger_offset, e.node_id, e.instrument_admin, e.instrument;
END;
COMMENT ON FUNCTION ledger.party_statement(text, bigint, bigint) IS 'A party''s movements after one offset up to another, as ledger.token_events has them, of holdings that the administrator signed. amount has the sign of what it does to the party''s holdings, and is transferred (got less sent) + minted - burned (fees) + unexplained. balance is what the party holds of the instrument after it: what it held at the first offset, and all amounts since; NULL once one of these can''t be read. A contract that is archived before it is unassigned elsewhere counts until it is archived; ledger.holdings has it until it is unassigned. It is NULL too where the participant did not host the party at the first offset or at the movement''s, or the scope of then did not show all of it, nor of the administrator (see ledger.hosted_parties): the movements of such a party are those that others saw, also of holdings that they merely witnessed. For a role that is limited to other parties it is so of all parties but its own. An error where the active contracts are not known at both offsets.';
