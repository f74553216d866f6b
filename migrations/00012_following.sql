-- For readers that follow the ledger: a notification of each new watermark, and a list of the changes below it.

-- +goose Up

-- The channel is named after the analysts' schema. LISTEN needs quotes if that name does.
CREATE FUNCTION notify_readers() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    -- A listener whose transaction stays open keeps all notifications of the server in their queue. Where that is full, commits that notify fail.
    PERFORM pg_notify(TG_ARGV[0], NEW.ledger_offset::text) WHERE pg_notification_queue_usage() < 0.5;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION notify_readers() IS 'Sends the watermark as a notification, in the transaction that sets it.';

DO $$
DECLARE
    views name := (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = 'ledger.updates'::regclass);
BEGIN
    EXECUTE format('CREATE TRIGGER notify_readers AFTER INSERT OR UPDATE ON checkpoints FOR EACH ROW WHEN (NEW.stream = ''updates'') EXECUTE FUNCTION notify_readers(%L)', views);
END
$$;

CREATE TABLE rewrites (
    rewrite        bigint PRIMARY KEY,
    stream         text   NOT NULL,
    from_exclusive bigint NOT NULL,
    to_inclusive   bigint NOT NULL,
    reason         text   NOT NULL,
    rewritten_at   timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE rewrites IS 'Changes of rows that readers may have read already. Numbered in the order of the commits, so that a reader that knows one number misses none after it.';

CREATE VIEW ledger.rewrites AS
SELECT r.rewrite, r.stream, r.from_exclusive, r.to_inclusive, r.reason, r.rewritten_at FROM rewrites r;
COMMENT ON VIEW ledger.rewrites IS 'Ranges below the watermark, or of the transaction history, that changed after they were shown: a reader that keeps a copy reads them again. Changes of projections such as active_contracts by new updates are not listed.';
COMMENT ON COLUMN ledger.rewrites.rewrite IS 'Number of the change; later changes have greater numbers. A change that continues the last one, but for a reset, replaces its row, with a new number and the whole range.';
COMMENT ON COLUMN ledger.rewrites.stream IS 'What changed: updates (by offset), snapshot (rows of a snapshot, with offsets up to its own), transactions (the transaction history, by seq).';
COMMENT ON COLUMN ledger.rewrites.from_exclusive IS 'The range begins after this offset or seq.';
COMMENT ON COLUMN ledger.rewrites.to_inclusive IS 'The range ends with this offset or seq. That of a reset ends with the last offset that was stored, even if it was not shown yet.';
COMMENT ON COLUMN ledger.rewrites.reason IS 'repaired: by indexer verify --repair. reset: removed by indexer reset or reanchor or, above the watermark, by a change of the scope; it is read again. scope changed: contracts begin at the offset because the scope shows them now, or end there because it does not any more. read again: the transaction history was read again, because the service had another order, and has other seqs. pruned: removed by indexer prune, but for what was active at the end of the range, which is carried. redacted: content was erased by indexer redact, see ledger.redactions.';
COMMENT ON COLUMN ledger.rewrites.rewritten_at IS 'When it changed (clock of the database).';
