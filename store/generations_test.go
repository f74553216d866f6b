package store

import (
	"context"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/internal/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// A reader sees the one generation or the other, as a whole: while the new one is read the old one, and in one snapshot
// never both.
func TestGenerationsAreShownAsAWhole(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b", "c")
	h.moved(h.l.BeginGeneration(t.Context(), h.at))
	require.True(t, h.at.Rereading())
	h.append("c")
	require.Equal(t, []string{"1:a", "2:b", "3:c"}, h.stored())
	h.append("b", "a", "x")
	require.Equal(t, []string{"1:a", "2:b", "3:c"}, h.stored())
	require.Equal(t, "x", h.checkpoint(), "where reading continues")

	reader := h.Connect()
	tx, err := reader.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	count := func() (n int) {
		require.NoError(t, tx.QueryRow(t.Context(), "SELECT count(*) FROM ledger.transactions JOIN ledger.taps USING (seq)").Scan(&n))
		return n
	}
	require.Equal(t, 3, count())
	h.moved(h.l.ShowGeneration(t.Context(), h.at))
	require.Equal(t, []string{"4:c", "5:b", "6:a", "7:x"}, h.stored())
	require.Equal(t, 3, count())
	h.moved(h.l.DropLeftovers(t.Context(), h.at))
	require.Equal(t, 3, count(), "a reader's snapshot outlives it")
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, "4", h.Row("SELECT count(*) FROM indexer.transactions"))
	h.append("y")
	require.Equal(t, []string{"4:c", "5:b", "6:a", "7:x", "8:y"}, h.stored())
}

// A generation that is given up leaves nothing, and the seqs of no record are given to another one.
func TestAGenerationThatIsGivenUp(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.appendRecords(storetest.Transfer(storetest.Ptr(int64(1)), storetest.Change("alice", "1", "0")))
	h.moved(h.l.BeginGeneration(t.Context(), h.at))
	h.appendRecords(storetest.Transfer(storetest.Ptr(int64(1)), storetest.Change("alice", "10", "0")), storetest.Transfer(storetest.Ptr(int64(2)), storetest.Change("alice", "10", "0")))
	h.moved(h.l.BeginGeneration(t.Context(), h.at))
	h.moved(h.l.BeginGeneration(t.Context(), h.at)) // an empty one is given up too
	require.True(t, h.at.Leftovers)
	h.moved(h.l.DropLeftovers(t.Context(), h.at))
	require.Equal(t, "1", h.Row("SELECT count(*) FROM indexer.transactions"))
	require.Equal(t, "1", h.Row("SELECT ledger.reported_balance_at('alice', 1)::text"), "what is shown stays")
	h.appendRecords(storetest.Transfer(storetest.Ptr(int64(1)), storetest.Change("alice", "100", "0")))
	h.moved(h.l.ShowGeneration(t.Context(), h.at))
	require.Equal(t, "100", h.Row("SELECT ledger.reported_balance_at('alice', 1)::text"))
	require.Equal(t, []string{"4"}, h.Rows("SELECT seq FROM ledger.transactions"))
	h.moved(h.l.DropLeftovers(t.Context(), h.at))
	require.Equal(t, "1 1 1 1", h.Row(`SELECT (SELECT count(*) FROM indexer.balance_totals) || ' ' || (SELECT count(*) FROM indexer.latest_totals)
		|| ' ' || (SELECT count(*) FROM indexer.balance_rounds) || ' ' || (SELECT count(*) FROM indexer.party_transfers)`))
}

// An event id that is stored elsewhere in the generation is told, and nothing of the batch is stored. In another
// generation it is new.
func TestAnEventIDThatIsStoredIsNotNew(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b")
	batch := storetest.BatchOf(storetest.RecordsOf([]string{"c", "a"}))
	batch.New = []string{"c", "a"}
	_, err := h.l.AppendTransactions(t.Context(), h.at, nil, batch)
	var known *ledger.KnownEventIDError
	require.ErrorAs(t, err, &known)
	require.Equal(t, "a", known.EventID)
	require.Equal(t, []string{"1:a", "2:b"}, h.stored())
	stored, err := h.l.StoredTransactions(t.Context(), h.at, []string{"a", "c"})
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"a": true}, stored)
	h.moved(h.l.BeginGeneration(t.Context(), h.at))
	h.moved(h.l.AppendTransactions(t.Context(), h.at, nil, batch))
}

// What was verified of a generation says nothing of the next one.
func TestSealsBeginAgainWithAGeneration(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b")
	_, err := Audit.Sealer(h.l.store, h.l.Leader).SealRecords(t.Context(), 0, storetest.RecordsOf([]string{"a", "b"}))
	require.NoError(t, err)
	require.Equal(t, "2", h.Row("SELECT ledger.verified_seq()"))
	h.moved(h.l.BeginGeneration(t.Context(), h.at))
	h.append("b", "a")
	require.Equal(t, "2", h.Row("SELECT ledger.verified_seq()"))
	h.moved(h.l.ShowGeneration(t.Context(), h.at))
	require.Equal(t, "2", h.Row("SELECT ledger.verified_seq()"))
	require.Empty(t, h.Rows("SELECT FROM ledger.verifications"))
	w, err := Audit.Stored(h.l.store).NextWindow(t.Context(), findings.SealedTransactions, 10, 0, 0)
	require.NoError(t, err)
	require.Equal(t, &findings.Window{From: 2, To: 4}, w)
	c, err := Audit.Sealer(h.l.store, h.l.Leader).SealRecords(t.Context(), 2, storetest.RecordsOf([]string{"b", "a"}))
	require.NoError(t, err)
	require.Zero(t, c.Differences)
	require.Equal(t, "4", h.Row("SELECT ledger.verified_seq()"))
	var damaged []string
	err = Audit.Stored(h.l.store).CompareSeals(t.Context(), func(int64, int64) {}, func(d findings.Difference) error {
		damaged = append(damaged, d.String())
		return nil
	})
	require.NoError(t, err)
	require.Empty(t, damaged, "before the first record of a generation no window is missing")
}

// The switch happens wholly or not at all: what refuses the last of its statements leaves the old generation shown and
// sealed.
func TestTheSwitchOfGenerationsIsAllOrNothing(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a")
	_, err := Audit.Sealer(h.l.store, h.l.Leader).SealRecords(t.Context(), 0, storetest.RecordsOf([]string{"a"}))
	require.NoError(t, err)
	h.moved(h.l.BeginGeneration(t.Context(), h.at))
	h.append("b")
	for _, refuse := range []string{
		"ALTER TABLE indexer.transactions_position ADD CONSTRAINT refused CHECK (shown_after = 0) NOT VALID",
		"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION USING ERRCODE = ''57P01''; END'; " +
			"CREATE TRIGGER refused BEFORE DELETE ON indexer.verifications EXECUTE FUNCTION refuse()",
	} {
		h.Exec(refuse)
		at, err := h.l.ShowGeneration(t.Context(), h.at)
		require.Error(t, err)
		require.Equal(t, h.at, at)
		require.Equal(t, []string{"1:a"}, h.stored())
		require.Equal(t, "1", h.Row("SELECT ledger.verified_seq()"))
		h.Exec("ALTER TABLE indexer.transactions_position DROP CONSTRAINT IF EXISTS refused")
	}
	h.Exec("DROP TRIGGER refused ON indexer.verifications")
	h.moved(h.l.ShowGeneration(t.Context(), h.at))
	require.Equal(t, []string{"2:b"}, h.stored())
	require.Empty(t, h.Rows("SELECT FROM ledger.verifications"))
}

// Removing leftovers that was cut short is finished by the next try. Until then nobody sees them.
func TestLeftoversAreDroppedAfterACut(t *testing.T) {
	t.Parallel()
	brief.Long(t, "writes very many rows")
	h := newHistory(t)
	h.append("a")
	h.moved(h.l.BeginGeneration(t.Context(), h.at))
	h.append("b")
	h.moved(h.l.ShowGeneration(t.Context(), h.at))
	// More blocks of taps than are cleared at once, all but the last record's of a generation that was given up.
	const rows = 300_000
	h.Exec("INSERT INTO indexer.taps (seq, date, owner, amount) SELECT -i, now(), 'alice', 1 FROM generate_series(1, $1) i", rows)
	held := h.Connect()
	tx, err := held.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM indexer.taps WHERE seq = $1 FOR UPDATE", -rows)
	require.NoError(t, err)
	ctx, cut := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := h.l.DropLeftovers(ctx, h.at)
		ended <- err
	}()
	h.WaitFor(storetest.Waiting, 1)
	cut()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NoError(t, tx.Rollback(t.Context()))
	left := h.Row("SELECT count(*) FROM indexer.taps")
	require.NotEqual(t, "1", left)
	require.NotEqual(t, strconv.Itoa(rows+2), left, "what was removed stays so")
	require.Equal(t, []string{"2:b"}, h.stored())

	h.moved(h.l.DropLeftovers(t.Context(), h.at))
	require.Equal(t, "1", h.Row("SELECT count(*) FROM indexer.taps"))
	require.False(t, h.at.Leftovers)
}
