-- name: ParticipantGet :one
-- Empty: it was not recorded.
SELECT coalesce((SELECT p.participant_id FROM participant p), '')::text AS participant_id;

-- name: ParticipantRecord :exec
INSERT INTO participant (participant_id) VALUES (@participant_id)
ON CONFLICT DO NOTHING;

-- name: ParticipantClear :exec
DELETE FROM participant;
