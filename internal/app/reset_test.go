package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// Nothing is removed, or written again, beside a process that writes or does the same, and who that is is said.
func TestCommandsBesideAWriter(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits for sessions that the server has to end, and that takes seconds")
	w := newBegunWorld(t, 96, true, sandbox.ServerOptions{Version: "3.6"}, "acs-delta")
	db, err := store.Open(store.Config{URL: w.database, Holder: "another one"})
	require.NoError(t, err)
	defer db.Close()
	for _, lead := range []func() (interface{ Close() }, bool, error){
		func() (interface{ Close() }, bool, error) { return db.LeadUpdates(t.Context()) },
		func() (interface{ Close() }, bool, error) { return db.LeadPruning(t.Context()) },
		func() (interface{ Close() }, bool, error) { return audit.LeadRepair(t.Context(), db) },
	} {
		leader, ok, err := lead()
		require.NoError(t, err)
		require.True(t, ok)
		defer leader.Close()
	}
	pair, before := config.Database{DatabaseURL: w.database}, relations(t, w.database)
	contract := texts(t, w.database, "SELECT contract_id FROM ledger.archived_events LIMIT 1")[0]
	type answer struct {
		do  string
		err error
	}
	answers := make(chan answer)
	commands := map[string]func() error{
		"stop it before resetting": func() error {
			_, err := RunReset(t.Context(), pair, 1, true, testLogger(t))
			return err
		},
		"stop it before reanchoring": func() error {
			_, err := RunReanchor(t.Context(), reanchorFor(w.database, w.ledgerURL, true), testLogger(t))
			return err
		},
		"wait until it is done: it prunes": func() error {
			limit := store.PruneBefore{Offset: new(ledger.Offset(w.at + 10))}
			_, err := RunPrune(t.Context(), pair, limit, true, testLogger(t))
			return err
		},
		"wait until it is done: it repairs, or redacts": func() error {
			_, err := RunRedact(t.Context(), pair, audit.Redaction{ContractID: contract}, "a test", true, testLogger(t))
			return err
		},
	}
	for do, command := range commands { // all at once: each waits as long as the lead of who was killed stays
		go func() { answers <- answer{do, command()} }()
	}
	for range commands {
		a := <-answers
		requireProblem(t, a.err, "another process writes this database: another one", a.do)
	}
	require.Empty(t, sandbox.Diff(before, relations(t, w.database)))
}
