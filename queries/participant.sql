-- name: ParticipantGet :one
-- Empty: it was not recorded.
SELECT coalesce((SELECT p.participant_id FROM participant p), '')::text AS participant_id;

-- name: ParticipantRecord :exec
INSERT INTO participant_both (only_row, participant_id, recorded_at, is_copy, digest)
SELECT r.*, c.is_copy, row_digest(r)
FROM (SELECT true AS only_row, @participant_id::text AS participant_id, now() AS recorded_at) r, unnest('{f,t}'::boolean[]) c (is_copy)
ON CONFLICT DO NOTHING;

-- name: ParticipantClear :exec
DELETE FROM participant_both;
