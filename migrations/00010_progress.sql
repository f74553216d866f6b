-- The progress of long work, for other processes to read.

-- +goose Up

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
