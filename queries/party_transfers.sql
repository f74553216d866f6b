-- name: PartyTransfersDerive :exec
-- Links the transfers of a range of records to their parties.
INSERT INTO indexer.party_transfers (party, date, seq, sent, round, amount, fee)
SELECT x.party, x.date, x.seq, x.sent, x.round, x.amount, x.fee
FROM indexer.transfer_parties x
WHERE x.seq > @from_exclusive::bigint AND x.seq <= @to_inclusive::bigint;
