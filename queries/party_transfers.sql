-- name: PartyTransfersCopy :copyfrom
INSERT INTO indexer.party_transfers (party, date, seq, sent, round, amount, fee)
VALUES (@party, @date, @seq, @sent, @round, @amount, @fee);
