-- name: LookupsAnswered :many
-- The next contracts, in the order of ids, whose look-up has an answer that the participant can give again. Those of events of another scope
-- than the one in force may have been asked for as other parties.
SELECT l.contract_id FROM lookups l
WHERE l.status IN ('found', 'not_found') AND l.contract_id > @after::text AND NOT EXISTS (
    SELECT FROM coverage c JOIN floors f ON f.stream = c.stream
    WHERE c.stream = 'updates' AND c.scope <> f.changed_to AND c.from_exclusive < l.ledger_offset AND c.to_inclusive >= l.ledger_offset)
ORDER BY l.contract_id LIMIT @at_most::bigint;

-- name: LookupAskAgain :exec
-- Removes an answer, so that the contract is looked up again.
UPDATE lookups u SET status = 'wanted', reason = NULL, looked_up_at = NULL, template_ref = NULL, created_at = NULL, payload = NULL,
    contract_key = NULL, contract_key_hash = NULL, signatories = NULL, observers = NULL, witness_parties = NULL, exact = NULL
WHERE u.contract_id = @contract_id;
