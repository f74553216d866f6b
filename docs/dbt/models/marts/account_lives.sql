-- Accounts and their ends.
SELECT c.contract_id, c.owner, c.number, c.limit_amount, c.created_at, a.record_time AS closed_at, a.choice AS closed_by
FROM {{ ref('accounts') }} c LEFT JOIN {{ ref('archivals') }} a USING (contract_id)
