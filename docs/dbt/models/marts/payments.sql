-- depends_on: {{ ref('turns') }}
{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key=['seq', 'ordinal']) }}
SELECT seq, ordinal, date, sender, receiver, received
FROM {{ ref('stg_payments') }}
{% if is_incremental() %}
WHERE seq > (SELECT coalesce(max(seq), 0) FROM {{ this }})
{% endif %}
