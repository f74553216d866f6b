-- name: ParticipantGet :one
SELECT participant_id FROM participant;

-- name: ParticipantRecord :exec
INSERT INTO participant (participant_id) VALUES (@participant_id) ON CONFLICT DO NOTHING;

-- name: ParticipantClear :exec
DELETE FROM participant;
