-- The typed fields of a template's contracts: name yours. Each run adds the contracts that are new.
-- depends_on: {{ ref('turns') }}
{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key=['ledger_offset', 'node_id']) }}
SELECT ledger_offset, node_id, contract_id, payload->>'owner' AS owner, payload->>'number' AS number,
       ledger.as_numeric(payload->>'limit', 10)::numeric(38, 10) AS limit_amount, created_at
FROM {{ ref('stg_created') }}
WHERE package_name = 'bank' AND entity_name = 'Account'
{% if is_incremental() %}
  AND ledger_offset > (SELECT coalesce(max(ledger_offset), 0) FROM {{ this }})
{% endif %}
