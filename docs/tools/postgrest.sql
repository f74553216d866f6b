-- Roles for PostgREST. The owner of the database runs this once the indexer has made its schema, and again after an upgrade:
--   psql -v ON_ERROR_STOP=1 -v password=... -f postgrest.sql ledger
-- reader reads schema ledger, and requests are made as it; postgrest logs in, and can do nothing but become reader.

SELECT 'CREATE ROLE reader NOLOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'reader') \gexec
SELECT 'CREATE ROLE postgrest LOGIN NOINHERIT' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'postgrest') \gexec
ALTER ROLE postgrest PASSWORD :'password';
GRANT reader TO postgrest;

GRANT USAGE ON SCHEMA ledger TO reader;
GRANT SELECT ON ALL TABLES IN SCHEMA ledger TO reader;

ALTER ROLE postgrest SET timezone = 'UTC';
ALTER ROLE postgrest SET jit = off;
ALTER ROLE postgrest SET statement_timeout = '10s';
ALTER ROLE postgrest SET default_transaction_read_only = on;
