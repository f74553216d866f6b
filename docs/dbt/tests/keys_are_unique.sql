SELECT 'accounts' AS model, contract_id AS key FROM {{ ref('accounts') }} GROUP BY 2 HAVING count(*) > 1
UNION ALL
SELECT 'archivals', contract_id FROM {{ ref('archivals') }} GROUP BY 2 HAVING count(*) > 1
UNION ALL
SELECT 'payments', seq || ':' || ordinal FROM {{ ref('payments') }} GROUP BY 2 HAVING count(*) > 1
