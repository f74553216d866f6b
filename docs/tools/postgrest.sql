-- Roles for PostgREST. A role that may create roles runs this, and the indexer's role then lets reader read, once:
--   psql -v ON_ERROR_STOP=1 -v password=... -f postgrest.sql ledger
--   indexer grant reader --all-parties
-- reader reads schema ledger, and requests are made as it; postgrest logs in, and can do nothing but become reader.

SELECT 'CREATE ROLE reader NOLOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'reader') \gexec
SELECT 'CREATE ROLE postgrest LOGIN NOINHERIT' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'postgrest') \gexec
ALTER ROLE postgrest PASSWORD :'password';
GRANT reader TO postgrest;

ALTER ROLE postgrest SET timezone = 'UTC';
ALTER ROLE postgrest SET jit = off;
ALTER ROLE postgrest SET statement_timeout = '10s';
ALTER ROLE postgrest SET default_transaction_read_only = on;
