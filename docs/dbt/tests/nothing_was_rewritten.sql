-- Rows that were copied have changed since: dbt run --full-refresh.
SELECT rewrite, stream, from_exclusive, to_inclusive, reason FROM {{ source('ledger', 'rewrites') }}
WHERE rewrite > (SELECT min(last_rewrite) FROM {{ ref('turns') }})
