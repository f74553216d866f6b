-- depends_on: {{ ref('turns') }}
{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key=['ledger_offset', 'node_id']) }}
SELECT ledger_offset, node_id, contract_id, choice, record_time
FROM {{ ref('stg_archived') }}
{% if is_incremental() %}
WHERE ledger_offset > (SELECT coalesce(max(ledger_offset), 0) FROM {{ this }})
{% endif %}
