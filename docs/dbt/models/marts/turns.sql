-- One row per run: how far it reads, and the last rewrite before it. What copies rows comes after it, so that no rewrite is missed. A full
-- refresh begins again.
{{ config(materialized='incremental', incremental_strategy='append') }}
SELECT {{ var('up_to') }}::bigint AS up_to, coalesce(max(rewrite), 0) AS last_rewrite, now() AS read_at
FROM {{ source('ledger', 'rewrites') }}
