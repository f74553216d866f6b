package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// The movements of one party, which are found by where its holdings begin and end, are those of all that are the
// party's: of every party, whoever asks, and whatever of the ledger is read.
func TestMovementsOfOneParty(t *testing.T) {
	t.Parallel()
	const lessIsRead = "all, and after less is read"
	const ownersAndParties = "SELECT owner FROM indexer.positions WHERE owner IS NOT NULL UNION SELECT party FROM ledger.parties"
	for name, read := range map[string]func(*testing.T, *begunWorld){
		"what is active and what ends": func(t *testing.T, w *begunWorld) {
			w.scope.Shape = "acs-delta"
			w.index(t, true)
		},
		"what two parties see": func(t *testing.T, w *begunWorld) {
			w.scope.Parties = w.ledger.Parties()[1:3]
			w.index(t, true)
		},
		"from a snapshot on": func(t *testing.T, w *begunWorld) {
			_, err := RunBackfill(t.Context(), backfillFor(w.database, w.ledgerURL, w.scope, w.ledger.Offset(100)), testLogger(t), nil)
			require.NoError(t, err)
			w.index(t, true)
		},
		"from the middle on, without a snapshot": func(t *testing.T, w *begunWorld) {
			w.at = w.ledger.Offset(150)
			w.index(t, false)
		},
		lessIsRead: func(t *testing.T, w *begunWorld) {
			w.index(t, true)
			requireMovementsOfParties(t, w.database, texts(t, w.database, ownersAndParties))
			w.scope.Parties = w.ledger.Parties()[1:3]
			w.ledger.Grow(100)
			require.NoError(t, w.change(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			w := newScopeWorld(t, 48, 220)
			w.scope.Shape, w.scope.Interfaces = "ledger-effects", sandbox.InterfaceNames()
			read(t, w)
			parties := texts(t, w.database, ownersAndParties)
			if name == lessIsRead { // of others later ends are not found
				parties = w.scope.Parties
			}
			requireMovementsOfParties(t, w.database, parties)
			for i, party := range w.ledger.Parties()[1:3] {
				_, as := limitedRole(t, w.database, "_limited_"+string(rune('a'+i)), store.Reader{Parties: []string{party}})
				requireMovementsOfParties(t, as, []string{party})
			}
		})
	}
}

// requireMovementsOfParties compares what a reader is shown of each of some parties with the part of all that is
// theirs, from the first update on and in a range.
func requireMovementsOfParties(t *testing.T, reader string, parties []string) {
	t.Helper()
	require.Equal(t, []string{"true"}, texts(t, reader, "SELECT (count(*) > 10)::text FROM ledger.token_events WHERE party = ANY ($1)", parties))
	require.Empty(t, texts(t, reader, `
		WITH known AS MATERIALIZED (SELECT e.party, e::text AS row FROM ledger.token_events e WHERE e.party = ANY ($1)), asked AS MATERIALIZED (
			SELECT p.party, e::text FROM unnest($1::text[]) p (party) CROSS JOIN LATERAL ledger.token_events_of(p.party) e)
		SELECT 'not found: ' || x.row FROM (TABLE known EXCEPT ALL TABLE asked) x (party, row)
		UNION ALL SELECT 'not there: ' || x.row FROM (TABLE asked EXCEPT ALL TABLE known) x (party, row)`, parties))
	floor := texts(t, reader, "SELECT ledger.state_floor()::text WHERE ledger.state_floor() IS NOT NULL")
	if len(floor) == 0 {
		return
	}
	for _, from := range []string{"ledger.state_floor()", "(ledger.state_floor() + ledger.latest_offset()) / 2"} {
		require.Empty(t, texts(t, reader, `
			WITH known AS MATERIALIZED (
				SELECT e.party, e.ledger_offset, e.node_id, e.instrument, e.instrument_admin, e.label, e.counterparties, e.amount
				FROM ledger.token_events e WHERE e.party = ANY ($1) AND e.admin_signed AND e.ledger_offset > `+from+`),
			asked AS MATERIALIZED (
				SELECT p.party, s.ledger_offset, s.node_id, s.instrument, s.instrument_admin, s.label, s.counterparties, s.amount
				FROM unnest($1::text[]) p (party)
				CROSS JOIN LATERAL ledger.party_statement(p.party, `+from+`, ledger.latest_offset()) s)
			SELECT x::text FROM ((TABLE known EXCEPT ALL TABLE asked) UNION ALL (TABLE asked EXCEPT ALL TABLE known)) x`, parties))
	}
}
