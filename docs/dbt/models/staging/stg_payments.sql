-- One row per transfer and receiver.
SELECT t.seq, r.ordinal, t.date, t.sender, r.party AS receiver, r.net_amount::numeric(38, 10) AS received
FROM {{ source('ledger', 'transfers') }} t JOIN {{ source('ledger', 'transfer_receivers') }} r USING (seq)
