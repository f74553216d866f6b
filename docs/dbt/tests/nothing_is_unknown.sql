SELECT 'update' AS what, ledger_offset AS place FROM {{ source('ledger', 'unknown_updates') }}
UNION ALL
SELECT 'record', seq FROM {{ source('ledger', 'unknown_transactions') }}
