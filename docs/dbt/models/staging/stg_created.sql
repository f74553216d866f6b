-- Contracts as they became active. Arrivals from another synchronizer are left out, and what was merely witnessed.
SELECT ledger_offset, node_id, contract_id, package_name, module_name, entity_name, payload, created_at, record_time, origin
FROM {{ source('ledger', 'created_events') }}
WHERE origin <> 'assignment' AND acs_delta IS NOT FALSE AND ledger_offset <= {{ var('up_to') }}
