-- One row per run: how far it read, and the last rewrite that it has. A full refresh begins again.
{{ config(materialized='incremental', incremental_strategy='append') }}
SELECT {{ var('up_to') }}::bigint AS up_to, coalesce(max(rewrite), 0) AS last_rewrite, now() AS read_at
FROM {{ source('ledger', 'rewrites') }}
