-- The roles that may read, see `indexer grant`.

-- name: ReaderList :many
SELECT r.reader, r.all_parties, r.history, r.granted_at,
    ARRAY(SELECT p.party FROM reader_parties p WHERE p.reader = r.reader ORDER BY p.party)::text[] AS parties
FROM readers r ORDER BY r.reader;

-- name: ReaderRemove :execrows
WITH parties AS (
    DELETE FROM reader_parties p WHERE p.reader = @reader
), lists AS (
    DELETE FROM reader_lists l WHERE l.reader = @reader
)
DELETE FROM readers r WHERE r.reader = @reader;

-- name: ReaderAdd :exec
WITH added AS (
    INSERT INTO readers (reader, all_parties, history) VALUES (@reader, @all_parties, @history) RETURNING reader
)
INSERT INTO reader_parties (reader, party) SELECT a.reader, p.party FROM added a, unnest(@parties::text[]) p (party);

-- name: ReaderListsAdd :exec
-- The caller holds the lock for adding lists of parties.
INSERT INTO reader_lists (reader, chunk, bits) SELECT w.reader, w.chunk, w.bits FROM wanted_reader_lists w WHERE w.reader = @reader;
