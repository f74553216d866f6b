SELECT (date AT TIME ZONE 'UTC')::date AS day, count(*) AS payments, sum(received) AS received
FROM {{ ref('payments') }} GROUP BY 1
