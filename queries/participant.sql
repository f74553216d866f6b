-- name: ParticipantGet :one
SELECT participant_id FROM indexer.participant;

-- name: ParticipantRecord :exec
INSERT INTO indexer.participant (participant_id) VALUES (@participant_id) ON CONFLICT DO NOTHING;

-- name: ParticipantClear :exec
DELETE FROM indexer.participant;
