-- How far long work has come, for those who look from outside of the process that does it.

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
COMMENT ON TABLE progress IS 'Long work that is under way, such as catching up: one row per stream. Written about every 10 seconds, beside the batches and not in their transactions, and removed when the work is done. A row that is older than half a minute was left behind by a process that was killed, or waits.';
COMMENT ON COLUMN progress.stream IS 'What is worked on: updates, history (below what is stored), snapshot, transactions.';
COMMENT ON COLUMN progress.unit IS 'What is counted, such as updates.';
COMMENT ON COLUMN progress.began_at IS 'When the work began, or went on after a pause (clock of the process).';
COMMENT ON COLUMN progress.from_exclusive IS 'Where it began: an offset of updates; of history a number of offsets that are filled; else so many units.';
COMMENT ON COLUMN progress.reached IS 'Where it stands.';
COMMENT ON COLUMN progress.to_inclusive IS 'Where it ends, as far as is known by now. NULL: that is not known.';
COMMENT ON COLUMN progress.done IS 'Units that were done since began_at.';
COMMENT ON COLUMN progress.per_second IS 'Units per second over the last ten seconds.';
COMMENT ON COLUMN progress.time_left IS 'Until to_inclusive, at the pace of the last ten seconds. NULL: not known.';
COMMENT ON COLUMN progress.updated_at IS 'When the row was written (clock of the database).';
