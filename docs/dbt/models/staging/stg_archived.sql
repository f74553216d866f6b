SELECT ledger_offset, node_id, contract_id, choice, record_time
FROM {{ source('ledger', 'archived_events') }}
WHERE acs_delta IS NOT FALSE AND ledger_offset <= {{ var('up_to') }}
