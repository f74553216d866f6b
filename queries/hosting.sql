-- name: HostingWanted :many
-- Parties that the participant is to be asked about: those that the scope names, or else those that hold something and are stakeholders of it, and
-- those that administer it; and again after a day, or after a topology event that the last answer can't know of.
WITH fresh AS NOT MATERIALIZED (
    SELECT h.party FROM hosting h
    WHERE h.asked_at > now() - interval '1 day' AND h.asked_at <= now() AND h.asked_offset <= watermark() AND NOT EXISTS (
        SELECT FROM topology_events t
        WHERE t.party_id = h.party AND t.participant_id = (SELECT p.participant_id FROM participant p)
          AND t.ledger_offset > h.asked_offset AND t.ledger_offset <= watermark())
)
SELECT w.party::text AS party, watermark()::bigint AS at_offset FROM (
    SELECT n.party FROM unnest(@parties::text[]) n (party) WHERE NOT EXISTS (SELECT FROM fresh f WHERE f.party = n.party)
    UNION
    SELECT p.owner FROM positions p
    WHERE cardinality(@parties::text[]) = 0 AND NOT EXISTS (SELECT FROM fresh f WHERE f.party = p.owner) AND EXISTS (
        SELECT FROM position_stakeholders s JOIN party_lists l ON l.party_list_ref = s.stakeholders_ref
        WHERE s.position_id = p.position_id AND p.owner = ANY (l.parties))
    UNION
    SELECT p.instrument_admin FROM positions p
    WHERE cardinality(@parties::text[]) = 0 AND p.admin_signed AND NOT EXISTS (SELECT FROM fresh f WHERE f.party = p.instrument_admin)
) w
WHERE length(w.party) <= 255 AND watermark() IS NOT NULL -- no ledger's party is longer
ORDER BY w.party LIMIT @most;

-- name: HostingSave :exec
-- What the participant answered, with what the topology events up to the watermark say of when. since is of the synchronizers that host the party
-- now, or else hosted it; an event of another kind comes first where the party was hosted before the stored events.
INSERT INTO hosting AS o (party, hosted, since, until, onboarded, asked_offset)
SELECT n.party, n.hosted, h.since, CASE WHEN NOT n.hosted THEN h.until END, coalesce(h.onboarded AND h.since IS NOT NULL, false), @asked_offset
FROM (SELECT unnest(@parties::text[]) AS party, unnest(@hosted::boolean[]) AS hosted) n
CROSS JOIN LATERAL (
    SELECT CASE WHEN count(e.since) = count(*) THEN min(e.since) END AS since, max(e.until) AS until, bool_or(e.onboarded) AS onboarded
    FROM (
        SELECT max(t.ledger_offset) FILTER (WHERE t.kind IN ('added', 'onboarding')) AS since,
               max(t.ledger_offset) FILTER (WHERE t.kind = 'revoked') AS until, bool_or(t.kind = 'onboarding') AS onboarded,
               (array_agg(t.kind ORDER BY t.ledger_offset DESC, t.node_id DESC))[1] AS last
        FROM topology_events t
        WHERE t.party_id = n.party AND t.participant_id = (SELECT p.participant_id FROM participant p) AND t.ledger_offset <= watermark()
        GROUP BY t.synchronizer_ref
    ) e
    WHERE NOT n.hosted OR e.last <> 'revoked'
) h
ON CONFLICT (party) DO UPDATE
SET hosted = excluded.hosted, since = excluded.since, until = excluded.until, onboarded = excluded.onboarded, asked_at = now(), asked_offset = excluded.asked_offset;

-- name: HostingForget :exec
-- Of parties that the scope does not name any more not everything is read.
DELETE FROM hosting h WHERE cardinality(@parties::text[]) > 0 AND h.party <> ALL (@parties::text[]);
