package app

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// factRows are all rows of a table of facts, or of a subscriber's view of one.
func factRows(t *testing.T, database, relation string) []string {
	t.Helper()
	return texts(t, database, fmt.Sprintf("SELECT (to_jsonb(t) - 'applied')::text FROM indexer.%s t ORDER BY 1", relation))
}

// A subscriber has every row of the facts once, through crashes of both servers and kills of the indexer, resets and a
// reanchoring, and partitions that are made and dropped, and keeps what is pruned.
func TestSubscriber(t *testing.T) {
	t.Parallel()
	brief.Long(t, "starts two servers")
	l := sandbox.NewLedger(sandbox.Options{Seed: 31})
	l.Grow(60)
	ledgerURL := serve(t, l, sandbox.ServerOptions{})
	publisher := throwaway.LocalServer(t, throwaway.Options{Durable: true, Settings: map[string]string{"wal_level": "logical"}})
	require.NoError(t, publisher.CreateDatabase(t.Context(), "published"))
	from := publisher.URL("published")
	index := func() {
		t.Helper()
		require.NoError(t, RunIndexer(t.Context(), indexerFor(from, ledgerURL, everything("ledger-effects")), testLogger(t)))
	}
	index()
	_, err := RunReset(t.Context(), config.Database{DatabaseURL: from}, 30, true, testLogger(t))
	require.NoError(t, err)
	index()

	db, err := store.Open(store.Config{URL: from})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.EnablePublication(t.Context(), "ledger"))
	require.NoError(t, db.EnablePublication(t.Context(), "ledger"), "again, as after an upgrade")
	schema, err := db.SubscriberSchema(t.Context())
	require.NoError(t, err)
	subscriber := throwaway.LocalServer(t, throwaway.Options{Settings: map[string]string{"wal_retrieve_retry_interval": "200ms"}})
	require.NoError(t, subscriber.CreateDatabase(t.Context(), "copied"))
	to := subscriber.URL("copied")
	execute(t, to, schema)
	copier, as := throwaway.Login(t, from, "REPLICATION")
	_, err = db.Grant(t.Context(), store.Reader{Role: copier, AllParties: true})
	require.NoError(t, err)
	execute(t, from, "GRANT USAGE ON SCHEMA indexer TO "+pgx.Identifier{copier}.Sanitize())
	execute(t, to, fmt.Sprintf("CREATE SUBSCRIPTION ledger CONNECTION '%s' PUBLICATION ledger, ledger_watermark", as))
	defer execute(t, to, "DROP SUBSCRIPTION ledger")
	eventuallyIn(t, to, "everything is copied", "NOT EXISTS (SELECT FROM pg_subscription_rel WHERE srsubstate <> 'r') AND EXISTS (SELECT FROM pg_subscription_rel)")

	const watermark = "SELECT c::text FROM indexer.checkpoints c WHERE c.stream = 'updates'" // and when it moved
	arrived := func() {
		t.Helper()
		eventuallyIn(t, to, "the subscriber has the watermark", "$1 = ("+watermark+")", texts(t, from, watermark)[0])
	}
	facts := texts(t, to, `SELECT substr(viewname, 9) FROM pg_views WHERE schemaname = 'indexer' AND viewname LIKE 'current\_%'`)
	require.Contains(t, facts, "created")
	requireCopied := func() {
		t.Helper()
		arrived()
		for _, table := range facts {
			require.Equal(t, factRows(t, from, table), factRows(t, to, "current_"+table), table)
		}
		require.Equal(t, texts(t, from, "SELECT parties::text FROM indexer.party_lists ORDER BY party_list_ref"),
			texts(t, to, "SELECT parties::text FROM indexer.party_lists ORDER BY party_list_ref"))
	}
	requireCopied()
	require.NoError(t, subscriber.Crash())
	l.Grow(20)
	index()
	require.NoError(t, subscriber.Restart(t.Context()))
	requireCopied()
	require.NoError(t, publisher.Crash())
	require.NoError(t, publisher.Restart(t.Context()))
	l.Grow(20)
	index()
	requireCopied()

	for _, back := range []ledger.Offset{30, 50} { // the second one leaves rows that were read again after the first
		_, err = RunReset(t.Context(), config.Database{DatabaseURL: from}, back, true, testLogger(t))
		require.NoError(t, err)
		index()
		requireCopied()
	}
	l.Redeal(70, 7) // the participant is restored from a backup, and deals the offsets anew
	_, err = RunReanchor(t.Context(), reanchorFor(from, ledgerURL, true), testLogger(t))
	require.NoError(t, err)
	index()
	requireCopied()
	// An update that was read ahead, and that the ledger does not have any more.
	leader, ok, err := db.LeadUpdates(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	at, _, err := leader.Watermark(t.Context())
	require.NoError(t, err)
	scope, _, err := db.Scope(t.Context())
	require.NoError(t, err)
	synchronizer := "gone"
	require.NoError(t, leader.WriteAhead(t.Context(), scope, []ledger.Page{{From: at, To: at + 2, Updates: []ledger.Update{{
		Offset: at + 1, Kind: ledger.KindTransaction, ID: "gone", SynchronizerID: &synchronizer,
		Archived: []ledger.ArchivedEvent{{NodeID: 1000, ContractID: "gone", TemplateID: "gone:Gone:Gone"}},
	}}}}))
	_, err = leader.Reset(t.Context(), at)
	require.NoError(t, err)
	leader.Close()
	l.Grow(120)
	env := []string{"INDEXER_DATABASE_URL=" + from, "INDEXER_LEDGER_URL=" + ledgerURL, "INDEXER_LISTEN=", "INDEXER_SHAPE=ledger-effects", "INDEXER_BLOBS=true",
		"INDEXER_INTERFACES=" + strings.Join(sandbox.InterfaceNames(), ",")}
	require.Positive(t, killUntilDone(t, rand.New(rand.NewPCG(31, 0)), env, build(t, "indexer"), "run", "--until-current"))
	require.Equal(t, []string{fmt.Sprint(lastUpdate(l))}, texts(t, from, "SELECT max(ledger_offset)::text FROM indexer.updates"))
	requireCopied()

	copied := map[string][]string{}
	for _, table := range facts {
		copied[table] = factRows(t, to, table)
	}
	last, floor := lastUpdate(l), ledger.Offset(lastUpdate(l)-10)
	_, err = RunPrune(t.Context(), config.Database{DatabaseURL: from}, store.PruneBefore{Offset: &floor}, true, testLogger(t))
	require.NoError(t, err)
	require.Empty(t, texts(t, from, "SELECT update_id FROM indexer.updates WHERE ledger_offset < $1", int64(floor)))
	l.Grow(5)
	index()
	arrived()
	for _, table := range facts { // what stays is not published again
		added := texts(t, from, fmt.Sprintf("SELECT to_jsonb(t)::text FROM indexer.%s t WHERE t.ledger_offset > $1", table), last)
		copied[table] = append(copied[table], added...)
		require.ElementsMatch(t, copied[table], factRows(t, to, table), table)
	}

	// Partitions are made for an update far behind the others, and those of before are dropped.
	leader, ok, err = db.LeadUpdates(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	at, _, err = leader.Watermark(t.Context())
	require.NoError(t, err)
	far := at + 10_000_000
	require.NoError(t, leader.Append(t.Context(), scope, []ledger.Page{{From: at, To: far, Updates: []ledger.Update{{
		Offset: far, Kind: ledger.KindTransaction, ID: "far", SynchronizerID: &synchronizer,
		Archived: []ledger.ArchivedEvent{{NodeID: 1000, ContractID: "far", TemplateID: "far:Far:Far"}},
	}}}}))
	leader.Close()
	const partitions = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'indexer.updates'::regclass"
	before := texts(t, from, partitions)
	floor = far - 1
	_, err = RunPrune(t.Context(), config.Database{DatabaseURL: from}, store.PruneBefore{Offset: &floor}, true, testLogger(t))
	require.NoError(t, err)
	require.Greater(t, len(before), len(texts(t, from, partitions)), "partitions are dropped")
	arrived()
	for _, table := range facts {
		added := texts(t, from, fmt.Sprintf("SELECT to_jsonb(t)::text FROM indexer.%s t WHERE t.ledger_offset > $1", table), int64(at))
		require.Equal(t, map[string]int{"updates": 1, "archived": 1}[table], len(added), table)
		require.ElementsMatch(t, append(copied[table], added...), factRows(t, to, table), table)
	}
	// What the new snapshot has came before, and does not come again.
	eventuallyIn(t, to, "the subscriber has the floor", "$1 = (SELECT f.state_floor FROM indexer.floors f WHERE f.stream = 'updates')", int64(floor-1))
	require.NotEmpty(t, texts(t, from, "SELECT contract_id FROM indexer.created WHERE origin = 'snapshot'"))

	removed, err := db.DisablePublication(t.Context(), "ledger")
	require.NoError(t, err)
	require.True(t, removed)
	require.Empty(t, texts(t, from, "SELECT pubname::text FROM pg_publication"))
}

func TestPublicationIsRefused(t *testing.T) {
	t.Parallel()
	database := throwaway.Migrated(t, migrate)
	db, err := store.Open(store.Config{URL: database})
	require.NoError(t, err)
	defer db.Close()
	removed, err := db.DisablePublication(t.Context(), "ledger")
	require.NoError(t, err)
	require.False(t, removed)
	execute(t, database, "CREATE PUBLICATION theirs")
	_, err = db.DisablePublication(t.Context(), "theirs")
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.Contains(t, problem.What, "was not made by `indexer publication enable`")
	if conn := open(t, database); levelOf(t, conn) != "logical" {
		require.ErrorAs(t, db.EnablePublication(t.Context(), "ledger"), &problem)
		require.Contains(t, problem.Do, "wal_level = logical")
	}
}

func levelOf(t *testing.T, conn *pgx.Conn) (level string) {
	t.Helper()
	require.NoError(t, conn.QueryRow(t.Context(), "SHOW wal_level").Scan(&level))
	return level
}
