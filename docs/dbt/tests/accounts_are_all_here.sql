-- The copy has what the ledger has, up to where the last run read.
SELECT s.contract_id FROM {{ ref('stg_created') }} s
WHERE s.package_name = 'bank' AND s.entity_name = 'Account' AND s.ledger_offset <= (SELECT max(up_to) FROM {{ ref('turns') }})
  AND NOT EXISTS (SELECT FROM {{ ref('accounts') }} c WHERE c.ledger_offset = s.ledger_offset AND c.node_id = s.node_id)
