-- name: RedactionIDs :many
-- What was redacted.
SELECT r.kind, r.id FROM redactions r;

-- name: RedactionAdd :exec
INSERT INTO redactions (redaction, kind, id, of_update, redacted_at, redacted_by, reason, erased)
SELECT coalesce(max(x.redaction), 0) + 1, @kind::text, @id::text, sqlc.narg('of_update')::text, now(), session_user::text, @reason::text,
    @erased::jsonb
FROM redactions x;

-- name: RedactionOf :many
-- The redaction of a contract or an update, if there was one.
SELECT r.redaction, r.kind, r.id, r.of_update, r.redacted_at, r.redacted_by, r.reason FROM redactions r WHERE r.kind = @kind AND r.id = @id;

-- name: RedactionCounts :one
SELECT count(*) FILTER (WHERE r.kind = 'contract') AS contracts, count(*) FILTER (WHERE r.kind = 'update') AS updates FROM redactions r;

-- name: RedactionUnknown :many
-- Elements of unknown kinds that name one of some contracts. In jsonb's text an id is as in JSON.
SELECT u.ledger_offset, u.ordinal FROM unknown_elements u
WHERE EXISTS (
    SELECT FROM unnest(@contract_ids::text[]) c (id)
    WHERE strpos(u.raw::text, btrim(to_jsonb(c.id)::text, '"')) > 0
       OR strpos(u.exact->>'raw', c.id) > 0);

-- name: RedactionRecords :many
-- The records of some updates, those with some event ids, and those that name one of some contracts.
SELECT t.seq FROM transactions t WHERE update_id_of(t.event_id) = ANY (@update_ids::text[])
UNION
SELECT t.seq FROM transactions t WHERE t.event_id = ANY (@event_ids::text[])
UNION
SELECT t.seq FROM transfers t WHERE t.instruction_cid = ANY (@contract_ids::text[])
UNION
SELECT a.seq FROM aborted_transfer_instructions a WHERE a.instruction_cid = ANY (@contract_ids::text[])
UNION
SELECT u.seq FROM unknown_transactions u JOIN transactions t ON t.seq = u.seq
WHERE EXISTS (
    SELECT FROM unnest(@contract_ids::text[]) c (id)
    WHERE strpos(u.raw::text, btrim(to_jsonb(c.id)::text, '"')) > 0 OR strpos(t.exact->>'raw', c.id) > 0);

-- name: RedactionNoted :many
-- The noted records that name one of some contracts. In jsonb's text an id is as in JSON.
SELECT n.update_id, n.records FROM redacted_records n
WHERE EXISTS (SELECT FROM unnest(@contract_ids::text[]) c (id) WHERE strpos(n.records::text, btrim(to_jsonb(c.id)::text, '"')) > 0);

-- name: RedactionNoteRecords :exec
INSERT INTO redacted_records (update_id, records) VALUES (@update_id, @records)
ON CONFLICT (update_id) DO UPDATE SET records = excluded.records;

-- name: RedactionUpdates :many
-- Where an update is, of which something is shown. Updates of several synchronizers may have one id.
SELECT u.ledger_offset FROM updates u
WHERE u.update_id = @update_id::text
  AND EXISTS (SELECT FROM updates x WHERE x.update_id = @update_id::text AND x.ledger_offset <= watermark());

-- name: RedactionCreated :many
-- The contracts that updates created or assigned.
SELECT DISTINCT c.contract_id FROM created c WHERE c.ledger_offset = ANY (@ledger_offsets::bigint[]) AND c.origin <> 'snapshot' ORDER BY 1;

-- name: RedactionContracts :many
-- What is known of some contracts up to the watermark: whether it is active, whether its end is stored, and whether it can have been active.
SELECT k.id::text AS contract_id,
    EXISTS (SELECT FROM active_contracts a WHERE a.contract_id = k.id) AS active,
    (EXISTS (SELECT FROM archived a WHERE a.contract_id = k.id AND a.ledger_offset <= watermark())
     OR EXISTS (SELECT FROM exercised e WHERE e.contract_id = k.id AND e.consuming AND e.ledger_offset <= watermark()))::boolean AS ended,
    (EXISTS (SELECT FROM created c WHERE c.contract_id = k.id AND (c.acs_delta IS NOT FALSE OR c.origin <> 'transaction') AND c.ledger_offset <= watermark())
     OR EXISTS (SELECT FROM reassignments r WHERE r.contract_id = k.id AND r.created_offset IS NULL AND r.ledger_offset <= watermark())
     OR EXISTS (SELECT FROM floors f WHERE f.stream = 'updates' AND f.state_floor IS NULL)
        AND EXISTS (SELECT FROM exercised e WHERE e.contract_id = k.id AND e.ledger_offset <= watermark())
        AND NOT EXISTS (SELECT FROM created c WHERE c.contract_id = k.id AND c.ledger_offset <= watermark()))::boolean AS activated,
    (EXISTS (SELECT FROM created c WHERE c.contract_id = k.id AND c.ledger_offset <= watermark())
     OR EXISTS (SELECT FROM exercised e WHERE e.contract_id = k.id AND e.ledger_offset <= watermark())
     OR EXISTS (SELECT FROM reassignments r WHERE r.contract_id = k.id))::boolean AS known
FROM unnest(@contract_ids::text[]) k (id);

-- name: RedactionUnseal :exec
-- Removes the seals of the windows of a stream that contain one of some places.
DELETE FROM verifications v
WHERE v.stream = @stream AND EXISTS (SELECT FROM unnest(@places::bigint[]) p (at) WHERE p.at > v.from_exclusive AND p.at <= v.to_inclusive);

-- name: RedactionWithin :one
-- Whether something was erased in a range, whose seals went then.
SELECT EXISTS (SELECT FROM rewrites r WHERE r.stream = @stream AND r.reason = 'redacted'
    AND r.from_exclusive < @to_inclusive AND r.to_inclusive > @from_exclusive);

-- name: RedactionPositions :many
-- The positions of the creation events at some places. OFFSET 0 has each place looked up.
SELECT DISTINCT h.position_id
FROM (SELECT unnest(@ledger_offsets::bigint[]) AS ledger_offset, unnest(@node_ids::integer[]) AS node_id) p
CROSS JOIN LATERAL (SELECT x.position_id FROM holding_events x WHERE x.ledger_offset = p.ledger_offset AND x.node_id = p.node_id OFFSET 0) h;

-- name: RedactionHold :exec
-- The positions of the creation events at some places, and for whom, as they are without what was erased.
WITH held AS (
    SELECT h.position_id, h.owner, h.instrument, h.instrument_admin, h.admin_signed,
        (SELECT c.stakeholders_ref FROM created c WHERE c.ledger_offset = p.ledger_offset AND c.node_id = p.node_id) AS stakeholders_ref
    FROM (SELECT unnest(@ledger_offsets::bigint[]) AS ledger_offset, unnest(@node_ids::integer[]) AS node_id) p
    CROSS JOIN LATERAL (
        SELECT x.position_id, x.owner, x.instrument, x.instrument_admin, x.admin_signed FROM holding_events x
        WHERE x.ledger_offset = p.ledger_offset AND x.node_id = p.node_id OFFSET 0) h
), shown AS (
    INSERT INTO position_stakeholders (position_id, stakeholders_ref)
    SELECT DISTINCT h.position_id, h.stakeholders_ref FROM held h WHERE h.stakeholders_ref > 0
    ON CONFLICT DO NOTHING
)
INSERT INTO positions (position_id, owner, instrument, instrument_admin, admin_signed)
SELECT DISTINCT h.position_id, h.owner, h.instrument, h.instrument_admin, h.admin_signed FROM held h
ON CONFLICT DO NOTHING;

-- name: RedactionLetGo :one
-- Removes those of some positions that no other creation event has. What was active has its position in the active set or in lifetimes. For a
-- position that is not there, creation events are searched that have not been projected, or activated nothing, if they have the position's
-- stakeholders. The position of nothing stays: ANALYZE would leave the statistics of an empty table as they are, with the texts that
-- were removed.
WITH rare AS MATERIALIZED (
    SELECT p.position_id FROM positions p
    WHERE p.position_id = ANY (@position_ids::uuid[]) AND p.position_id <> position_of(NULL, NULL, NULL, false)
      AND NOT EXISTS (SELECT FROM active_contracts a WHERE a.position_id = p.position_id)
      AND NOT EXISTS (SELECT FROM lifetimes l WHERE l.position_id = p.position_id)
), lists AS MATERIALIZED (
    SELECT s.stakeholders_ref FROM position_stakeholders s WHERE s.position_id IN (SELECT r.position_id FROM rare r)
), places AS MATERIALIZED (
    SELECT c.ledger_offset, c.node_id FROM created c
    WHERE EXISTS (SELECT FROM rare)
      AND (c.acs_delta IS FALSE OR c.ledger_offset > watermark() OR c.origin = 'snapshot' AND c.reassignment_counter IS NULL)
      AND (c.stakeholders_ref IS NULL OR c.stakeholders_ref IN (SELECT l.stakeholders_ref FROM lists l))
), held AS MATERIALIZED (
    SELECT DISTINCT h.position_id FROM places p
    CROSS JOIN LATERAL (SELECT x.position_id FROM holding_events x WHERE x.ledger_offset = p.ledger_offset AND x.node_id = p.node_id OFFSET 0) h
), unheld AS (
    SELECT r.position_id FROM rare r WHERE r.position_id NOT IN (SELECT h.position_id FROM held h)
), stakeholders AS (
    DELETE FROM position_stakeholders s USING unheld u WHERE s.position_id = u.position_id
), nothing AS (
    INSERT INTO positions (position_id, admin_signed) VALUES (position_of(NULL, NULL, NULL, false), false) ON CONFLICT DO NOTHING
), gone AS (
    DELETE FROM positions p USING unheld u WHERE p.position_id = u.position_id RETURNING p.position_id
)
SELECT count(*) AS removed FROM gone;
