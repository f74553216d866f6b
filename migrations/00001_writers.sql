-- Who writes, how far writing has come, and what writers report. Here is what every later migration begins with
-- (store/migrate.go).
--
-- Of all these files: a relation stands in one place, with its indexes, constraints and comments, and the view of schema
-- ledger that shows it comes next. Files are in the order of what needs what, and nothing is made that is replaced.
-- Tables, and what only the indexer reads, name no schema. Names, columns and meaning of what is in schema ledger are a
-- contract: they do not change. docs/relations.md is made from the comments there.
-- Keys: views have none, so tools read them from comments, which end in a line that pg_graphql reads. A relation without
-- that line has no columns that are unique and never NULL. The row that a reference names may be missing: rows of a
-- snapshot have no update, and a contract's creation need not be stored.
-- Rights: views have those of their reader (security_invoker), so that the tables' policies apply. Only views that
-- policies read (00003), and views that show nothing about other parties from tables that do, keep their owner's.

-- +goose Up

CREATE SCHEMA ledger;
COMMENT ON SCHEMA ledger IS 'The ledger as one participant shows it, up to ledger.latest_offset(). Read docs/sql.md.';

CREATE TABLE leadership (
    lease      text PRIMARY KEY,
    epoch     bigint NOT NULL,
    holder    text,
    led_since timestamptz
);
INSERT INTO leadership (lease, epoch) VALUES ('updates', 0), ('transactions', 0), ('pruning', 0), ('repair', 0);
COMMENT ON TABLE leadership IS 'One row per lease: the right to write a stream, to prune, or to repair. Every write transaction holds its row FOR SHARE at its own epoch, so that an earlier leader can commit nothing.';

-- What is locked are views that show nothing. A database role that may only read can't lock them against others, as it could with advisory
-- locks; and vacuum, which would wait for the leader, passes views by.
DO $$
DECLARE
    lock record;
BEGIN
    FOR lock IN
        SELECT 'lead_' || lease AS name, 'Locked by the process that has the lease.' AS use FROM leadership
        UNION ALL SELECT 'turn_' || lease, 'Locked by each transaction that writes with the lease. Writers share it; a repair waits here for its turn.' FROM leadership
        UNION ALL VALUES ('turn_lists', 'Locked by who adds lists of parties.'), ('turn_indexes', 'Locked by who makes or drops indexes of fields.')
    LOOP
        EXECUTE format('CREATE VIEW %I WITH (security_invoker = true) AS SELECT', lock.name);
        EXECUTE format('COMMENT ON VIEW %I IS %L', lock.name, lock.use || ' Shows nothing.');
    END LOOP;
END
$$;

CREATE FUNCTION lock_holders(lock regclass) RETURNS TABLE (pid integer) LANGUAGE sql STABLE
BEGIN ATOMIC
SELECT k.pid FROM pg_catalog.pg_locks k
WHERE k.locktype = 'relation' AND k.granted AND k.mode = 'ExclusiveLock' AND k.relation = lock
    AND k.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database());
END;
COMMENT ON FUNCTION lock_holders(regclass) IS 'The sessions that have locked a view against all others.';

-- Where streams resume ---------------------------------------------------------------------------------------------

CREATE TABLE checkpoints (
    stream        text NOT NULL,
    ledger_offset bigint,
    event_id      text,
    updated_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (stream),
    CHECK (stream = 'transactions' OR stream = 'updates' AND ledger_offset IS NOT NULL AND event_id IS NULL)
);
COMMENT ON TABLE checkpoints IS 'Where each stream resumes. For updates this is the watermark, up to which readers see everything. Shown as ledger.stream_checkpoints.';

CREATE FUNCTION watermark() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
RETURN (SELECT c.ledger_offset FROM checkpoints c WHERE c.stream = 'updates');
COMMENT ON FUNCTION watermark() IS 'The last offset that is shown. NULL: nothing has been indexed. Shown as ledger.latest_offset().';

-- SECURITY DEFINER: like views they read with their owner's rights, so analysts need none in schema indexer. PL/pgSQL: a session plans
-- such a function once. One in SQL is planned again with each query that calls it, since one with its owner's rights can't be inlined.
CREATE FUNCTION ledger.latest_offset() RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN (SELECT c.ledger_offset FROM checkpoints c WHERE c.stream = 'updates');
END
$$;
COMMENT ON FUNCTION ledger.latest_offset() IS 'The watermark: everything up to this offset is complete, and nothing after it is shown. NULL: nothing has been indexed.';

-- VOLATILE: each of its statements sees what was committed before that statement.
CREATE FUNCTION ledger.wait_for_offset(target bigint, timeout interval DEFAULT '10 s') RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $$
DECLARE
    until timestamptz := clock_timestamp() + timeout;
BEGIN
    IF target IS NULL OR timeout IS NULL THEN
        RAISE EXCEPTION 'an offset and a time are needed, not NULL' USING ERRCODE = 'null_value_not_allowed';
    ELSIF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RAISE EXCEPTION 'a transaction with isolation level % never sees an offset that comes later', current_setting('transaction_isolation')
            USING ERRCODE = 'active_sql_transaction', HINT = 'Wait before the transaction, or in one with isolation level read committed.';
    END IF;
    WHILE coalesce(ledger.latest_offset() < target, true) LOOP
        IF clock_timestamp() >= until THEN
            RETURN false;
        END IF;
        PERFORM pg_sleep(least(0.01, extract(epoch FROM until - clock_timestamp())));
    END LOOP;
    RETURN true;
END
$$;
COMMENT ON FUNCTION ledger.wait_for_offset(bigint, interval) IS 'Waits until everything up to an offset is visible, and returns true; false after the timeout. For a program that submitted a command and reads its update here. An error in a transaction with isolation level repeatable read or serializable, which never sees later commits.';

-- The channel is named after the analysts' schema.
CREATE FUNCTION notify_readers() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    -- A listener whose transaction stays open keeps all notifications of the server in their queue. Where that is full, commits that notify fail.
    PERFORM pg_notify(TG_ARGV[0], NEW.ledger_offset::text) WHERE pg_notification_queue_usage() < 0.5;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION notify_readers() IS 'Sends the watermark as a notification, in the transaction that sets it.';

CREATE TRIGGER notify_readers AFTER INSERT OR UPDATE ON checkpoints FOR EACH ROW WHEN (NEW.stream = 'updates') EXECUTE FUNCTION notify_readers('ledger');

-- What writers report ----------------------------------------------------------------------------------------------

CREATE TABLE tasks (
    task         text PRIMARY KEY,
    succeeded_at timestamptz,
    failed_at    timestamptz,
    failure      text
);
COMMENT ON TABLE tasks IS 'When each stream and background task last succeeded, and when and why it last failed.';

CREATE TABLE progress (
    stream         text   PRIMARY KEY,
    unit           text   NOT NULL,
    began_at       timestamptz NOT NULL,
    from_exclusive bigint NOT NULL,
    reached        bigint NOT NULL,
    to_inclusive   bigint,
    done           bigint NOT NULL,
    per_second     numeric NOT NULL,
    time_left      interval,
    updated_at     timestamptz NOT NULL
);
COMMENT ON TABLE progress IS 'Long work that is under way, such as catching up: one row per stream. Written about every 10 seconds, not in the batches'' transactions, and removed when the work is done. A row that is older than half a minute belongs to a process that was killed, or that waits.';
COMMENT ON COLUMN progress.stream IS 'What is being read: updates, snapshot, transactions.';
COMMENT ON COLUMN progress.unit IS 'What is counted, such as updates.';
COMMENT ON COLUMN progress.began_at IS 'When the work began, or continued after a pause (clock of the process).';
COMMENT ON COLUMN progress.from_exclusive IS 'Where the work began. updates: an offset; else a number of units.';
COMMENT ON COLUMN progress.reached IS 'Where the work is now.';
COMMENT ON COLUMN progress.to_inclusive IS 'Where the work ends, as far as is known. NULL: not known.';
COMMENT ON COLUMN progress.done IS 'Units done since began_at.';
COMMENT ON COLUMN progress.per_second IS 'Units per second over the last ten seconds.';
COMMENT ON COLUMN progress.time_left IS 'Time until to_inclusive, at the rate of the last ten seconds. NULL: not known.';
COMMENT ON COLUMN progress.updated_at IS 'When the row was written (clock of the database).';
