-- Windows that were compared with their source again after they were stored, and ranges that changed after they were shown.

-- +goose Up

CREATE TABLE verifications (
    stream         text   NOT NULL CHECK (stream IN ('updates', 'snapshot', 'transactions')),
    from_exclusive bigint NOT NULL CHECK (from_exclusive >= 0),
    to_inclusive   bigint NOT NULL,
    verified_at    timestamptz NOT NULL,
    result         text   NOT NULL CHECK (result IN ('equal', 'different', 'not_shown', 'pruned')),
    differences    bigint NOT NULL,
    digest         bytea  NOT NULL CHECK (octet_length(digest) = 32),
    repaired_at    timestamptz,
    PRIMARY KEY (stream, from_exclusive),
    CHECK (from_exclusive < to_inclusive),
    CHECK (differences > 0 AND result = 'different' OR differences = 0 AND result <> 'different'),
    -- One per stream: without an extension a GiST index can't contain the stream's name.
    CONSTRAINT verifications_of_updates_once
        EXCLUDE USING gist (int8range(from_exclusive, to_inclusive, '(]') WITH &&) WHERE (stream = 'updates'),
    CONSTRAINT verifications_of_snapshot_once
        EXCLUDE USING gist (int8range(from_exclusive, to_inclusive, '(]') WITH &&) WHERE (stream = 'snapshot'),
    CONSTRAINT verifications_of_transactions_once
        EXCLUDE USING gist (int8range(from_exclusive, to_inclusive, '(]') WITH &&) WHERE (stream = 'transactions')
);
CREATE INDEX verifications_again ON verifications (stream, from_exclusive) WHERE result = 'different' OR repaired_at > verified_at;
COMMENT ON TABLE verifications IS 'Windows of the streams that were compared with their source, and sealed with a digest of their rows. Written in the transaction that compares. Shown as ledger.verifications.';
COMMENT ON COLUMN verifications.stream IS 'As in ledger.verifications.';
COMMENT ON COLUMN verifications.from_exclusive IS 'As in ledger.verifications.';
COMMENT ON COLUMN verifications.to_inclusive IS 'As in ledger.verifications.';
COMMENT ON COLUMN verifications.verified_at IS 'As in ledger.verifications.';
COMMENT ON COLUMN verifications.result IS 'As in ledger.verifications.';
COMMENT ON COLUMN verifications.differences IS 'As in ledger.verifications.';
COMMENT ON COLUMN verifications.digest IS 'As in ledger.verifications.';
COMMENT ON COLUMN verifications.repaired_at IS 'As in ledger.verifications. Later than verified_at: the window will be compared again.';

CREATE VIEW ledger.verifications WITH (security_invoker = true) AS
SELECT v.stream, v.from_exclusive, v.to_inclusive, v.verified_at, v.result, v.differences, v.digest, v.repaired_at
FROM verifications v;
COMMENT ON VIEW ledger.verifications IS 'One row per window (a range of offsets or records) that was read from its source again after it was stored, and compared. Windows of a stream do not overlap. With the digest `indexer verify --offline` finds windows that were changed since, even after the source has pruned them.
@graphql({"primary_key_columns": ["stream", "from_exclusive"]})';
COMMENT ON COLUMN ledger.verifications.stream IS 'updates: events, by offset. snapshot: the contracts of the snapshot that indexing began with; one window, up to its offset. transactions: the transaction history, by seq.';
COMMENT ON COLUMN ledger.verifications.from_exclusive IS 'The window begins after this offset; of transactions after this seq.';
COMMENT ON COLUMN ledger.verifications.to_inclusive IS 'The window ends with this offset, or seq.';
COMMENT ON COLUMN ledger.verifications.verified_at IS 'When the window was last compared, or found to be no longer available (clock of the database).';
COMMENT ON COLUMN ledger.verifications.result IS 'equal: all rows were as in the source. different: some were not, and the window was not compared again since. not_shown: the source no longer had the window (pruned), so nothing was compared; the digest still shows later changes. pruned: the same of a snapshot that pruning in this database made of rows that had been compared.';
COMMENT ON COLUMN ledger.verifications.differences IS 'How many differences were found: missing rows, additional rows, and columns with another value. 0 unless the result is different.';
COMMENT ON COLUMN ledger.verifications.digest IS 'SHA-256 over all rows of the window as they were stored at verified_at, and over this row''s own range, time and result. docs/reliability.md says how it is computed.';
COMMENT ON COLUMN ledger.verifications.repaired_at IS 'When rows of the window were last repaired. Later than verified_at: only a part of the window was repaired, and the whole has not been compared since. NULL: never.';

CREATE TABLE pruned_verifications (
    stream         text   NOT NULL,
    from_exclusive bigint NOT NULL,
    to_inclusive   bigint NOT NULL,
    verified_at    timestamptz NOT NULL,
    result         text   NOT NULL,
    differences    bigint NOT NULL,
    digest         bytea  NOT NULL,
    repaired_at    timestamptz,
    pruned_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (stream, from_exclusive, verified_at)
);
COMMENT ON TABLE pruned_verifications IS 'The windows of verifications that were pruned, in whole or in part, as they were. A backup that has their rows is proved by the same digests in its ledger.verifications, and these by `indexer verify --offline`.';
COMMENT ON COLUMN pruned_verifications.pruned_at IS 'When the window was pruned (clock of the database). The other columns are those of verifications.';

CREATE FUNCTION windows_reach(of_stream text, at bigint, results text[]) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce((
    -- In the order of the key, up to the first gap.
    SELECT w.to_inclusive
    FROM (
        SELECT f.from_exclusive, f.to_inclusive, f.result FROM verifications f
        WHERE f.stream = of_stream AND f.from_exclusive <= at ORDER BY f.from_exclusive DESC LIMIT 1
    ) l
    CROSS JOIN LATERAL (
        SELECT v.from_exclusive, v.to_inclusive, lead(v.from_exclusive) OVER (ORDER BY v.from_exclusive) AS next
        FROM verifications v
        WHERE v.stream = of_stream AND v.from_exclusive >= l.from_exclusive AND v.result = ANY (results)
    ) w
    WHERE l.to_inclusive > at AND l.result = ANY (results) AND w.next IS DISTINCT FROM w.to_inclusive
    ORDER BY w.from_exclusive LIMIT 1
), at);
COMMENT ON FUNCTION windows_reach(text, bigint, text[]) IS 'The end of the contiguous windows of a stream that have one of the results, from a place on. The place itself if no such window contains it.';

CREATE FUNCTION verified_offset() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    SELECT least(windows_reach('updates', f.history_floor, '{equal}'), watermark())
    FROM floors f
    WHERE f.stream = 'updates'
);
COMMENT ON FUNCTION verified_offset() IS 'The offset up to which updates were read again and found equal. Shown as ledger.verified_offset().';

-- SECURITY DEFINER: like views they read with their owner's rights, so analysts need none in schema indexer.
CREATE FUNCTION ledger.verified_offset() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER
RETURN verified_offset();
COMMENT ON FUNCTION ledger.verified_offset() IS 'Every event after oldest_offset() up to this offset was read from the participant again after it was stored, and was equal. oldest_offset(): nothing has been verified yet, or the first window differs. NULL: nothing has been indexed.';

CREATE FUNCTION verified_seq() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    SELECT CASE
        WHEN c.ledger_offset IS NULL THEN windows_reach('transactions', 0, '{equal}')
        ELSE coalesce((SELECT t.seq FROM transactions t WHERE t.ledger_offset <= verified_offset() ORDER BY t.ledger_offset DESC, t.seq DESC LIMIT 1), 0)
    END
    FROM transactions_position h
    LEFT JOIN checkpoints c ON c.stream = 'transactions'
    WHERE h.revision > 0
);
COMMENT ON FUNCTION verified_seq() IS 'The seq up to which records were read again and found equal, or the updates that they follow from were. Shown as ledger.verified_seq().';

CREATE FUNCTION ledger.verified_seq() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER
RETURN verified_seq();
COMMENT ON FUNCTION ledger.verified_seq() IS 'Every record of the transaction history up to this seq was read from the Scan service again after it was stored, and was equal. One less than the first seq: none has been verified yet (also after the history was read again from its beginning), or the first window differs. In the schemas of a network: every record up to this seq follows from updates up to verified_offset(), or from pruned ones. NULL: no history has been read.';

-- What changed -----------------------------------------------------------------------------------------------------

CREATE TABLE rewrites (
    rewrite        bigint PRIMARY KEY,
    stream         text   NOT NULL,
    from_exclusive bigint NOT NULL,
    to_inclusive   bigint NOT NULL,
    reason         text   NOT NULL,
    rewritten_at   timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE rewrites IS 'Changes of rows that readers may have read already. Numbered in the order of the commits, so that a reader that knows one number misses none after it.';

CREATE VIEW ledger.rewrites WITH (security_invoker = true) AS
SELECT r.rewrite, r.stream, r.from_exclusive, r.to_inclusive, r.reason, r.rewritten_at FROM rewrites r;
COMMENT ON VIEW ledger.rewrites IS 'Ranges below the watermark, or of the transaction history, that changed after they were shown: a reader that keeps a copy reads them again. Changes of projections such as active_contracts by new updates are not listed.
@graphql({"primary_key_columns": ["rewrite"]})';
COMMENT ON COLUMN ledger.rewrites.rewrite IS 'Number of the change; later changes have greater numbers. A change that continues the last one, but for a reset, replaces its row, with a new number and the whole range.';
COMMENT ON COLUMN ledger.rewrites.stream IS 'What changed: updates (by offset), snapshot (rows of a snapshot, with offsets up to its own), transactions (the transaction history, by seq).';
COMMENT ON COLUMN ledger.rewrites.from_exclusive IS 'The range begins after this offset or seq.';
COMMENT ON COLUMN ledger.rewrites.to_inclusive IS 'The range ends with this offset or seq. That of a reset ends with the last offset that was stored, even if it was not shown yet.';
COMMENT ON COLUMN ledger.rewrites.reason IS 'repaired: by indexer verify --repair. reset: removed by indexer reset or reanchor or, above the watermark, by a change of the scope; it is read again. scope changed: contracts begin at the offset because the scope shows them now, or end there because it does not any more. read again: the transaction history was read again, because the service had another order, and has other seqs. pruned: removed by indexer prune, but for what was active at the end of the range, which is carried. redacted: content was erased by indexer redact, see ledger.redactions.';
COMMENT ON COLUMN ledger.rewrites.rewritten_at IS 'When it changed (clock of the database).';
