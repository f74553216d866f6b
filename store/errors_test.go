package store

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// Who was let in before and is refused now waits, but not for ever.
func TestWhoWasLetInWaitsToBeLetInAgain(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	name, as := throwaway.Login(t, d.URL, "")
	role := pgx.Identifier{name}.Sanitize()
	d.Exec("GRANT ALL ON SCHEMA indexer TO " + role)
	d.Exec("GRANT ALL ON ALL TABLES IN SCHEMA indexer TO " + role)
	s := d.open(as, nil)
	lead := func() error {
		l, _, err := s.LeadUpdates(t.Context())
		if err == nil {
			l.Close()
		}
		return err
	}
	patience := s.db.Patience
	for range 2 { // the second time begins anew
		s.db.Patience = patience
		require.NoError(t, lead())
		d.Exec("ALTER ROLE " + role + " NOLOGIN")
		err := lead()
		require.ErrorContains(t, err, "not permitted to log in")
		require.NotErrorAs(t, err, new(*ledger.Problem))
		s.db.Patience = time.Nanosecond
		storetest.RequireProblem(t, lead(), "can't be used", "let the user in")
		d.Exec("ALTER ROLE " + role + " LOGIN")
	}
	require.NoError(t, lead())
}
