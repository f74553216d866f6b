package store

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// What a party holds is known from when on, and until when, the participant hosts it; of others where it hosts the
// administrator. Whoever holds something, and administers what is held, is asked about: once, after a topology event,
// and after a day.
func TestWhatIsHeldIsKnownOfHostedParties(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	topology := func(offset ledger.Offset, kind ledger.TopologyEventKind, party, participant string) {
		u := storetest.NewUpdate(offset, "sync::1")
		u.Topology = []ledger.TopologyEvent{{Kind: kind, PartyID: &party, ParticipantID: &participant}}
		d.append(l, offset-1, u)
	}
	holding := func(offset ledger.Offset, owner, payloadOwner string) {
		u := storetest.NewUpdate(offset, "sync::1")
		c := tokenCreation(0, "of-"+payloadOwner, view(storetest.HoldingV1, valueV1(payloadOwner, "5", "null")))
		c.Observers = append(c.Observers, owner)
		u.Created = []ledger.CreatedEvent{c}
		d.append(l, offset-1, u)
	}
	wanted := func(named ...string) []string {
		list, _, err := l.WantedHosting(t.Context(), named, 100)
		require.NoError(t, err)
		return list
	}
	answered := func(hosted map[string]bool) {
		_, at, err := l.WantedHosting(t.Context(), nil, 100)
		require.NoError(t, err)
		require.NoError(t, l.SaveHosting(t.Context(), hosted, at))
	}
	relation := func() []string {
		return d.Rows("SELECT party, hosted, since, until, onboarded FROM ledger.hosted_parties WHERE party <> 'admin' ORDER BY party")
	}
	balance := func(party string, at int64) string {
		return d.Row("SELECT ledger.balance_at_offset($1, 'Token', $2)::text", party, at)
	}
	topology(1, ledger.TopologyAdded, "stays", "participant::1")
	for i, owner := range []string{"stays", "far", "goes", "comes"} {
		holding(ledger.Offset(2+i), owner, owner)
	}
	holding(6, "x", "made up")
	require.Equal(t, []string{"admin", "comes", "far", "goes", "stays"}, wanted())
	require.Equal(t, []string{"far"}, wanted("far"))
	require.Equal(t, "5", balance("far", 6), "nobody was asked yet")

	answered(map[string]bool{"admin": false, "comes": false, "far": false, "goes": true, "stays": true})
	require.Empty(t, wanted())
	require.Equal(t, []string{"comes false <nil> <nil> false", "far false <nil> <nil> false", "goes true <nil> <nil> false", "stays true 1 <nil> false"}, relation())
	d.becomeAnalyst()
	totals := []string{"comes <nil> <nil> <nil> 1", "far <nil> <nil> <nil> 1", "goes 5 0 5 1", "made up <nil> <nil> <nil> 1", "stays 5 0 5 1"}
	const query = "SELECT owner, amount::text, locked_amount::text, unlocked_amount::text, contracts FROM "
	require.Equal(t, totals, d.Rows(query+"ledger.holding_totals ORDER BY 1"))
	require.Equal(t, totals, d.Rows(query+"ledger.holding_totals_at(6) ORDER BY 1"))
	for party, want := range map[string]string{"stays": "5", "goes": "5", "far": "<nil>", "comes": "<nil>", "made up": "<nil>"} {
		require.Equal(t, want, balance(party, 6), party)
		require.Equal(t, []string{want}, d.Rows("SELECT balance::text FROM ledger.party_statement($1, 0, 6)", party), party)
	}
	require.Equal(t, "0 <nil>", balance("stays", 1)+" "+balance("far", 1))

	// Of those that come and go it is asked again. Other participants' topology is nothing to this one.
	topology(7, ledger.TopologyRevoked, "goes", "participant::1")
	topology(8, ledger.TopologyOnboarding, "comes", "participant::1")
	topology(9, ledger.TopologyRevoked, "stays", "participant::2")
	require.Equal(t, []string{"comes", "goes"}, wanted())
	answered(map[string]bool{"comes": true, "goes": false})
	require.Equal(t, []string{"comes true 8 <nil> true", "far false <nil> <nil> false", "goes false <nil> 7 false", "stays true 1 <nil> false"}, relation())
	require.Equal(t, "<nil> 5", balance("comes", 7)+" "+balance("comes", 8))
	require.Equal(t, "5 <nil>", balance("goes", 6)+" "+balance("goes", 7))
	require.Equal(t, []string{"comes 5", "goes <nil>"}, d.Rows("SELECT owner, amount::text FROM ledger.holding_totals WHERE owner IN ('comes', 'goes') ORDER BY 1"))
	require.Equal(t, []string{"comes <nil>", "goes 5"}, d.Rows("SELECT owner, amount::text FROM ledger.holding_totals_at(6) WHERE owner IN ('comes', 'goes') ORDER BY 1"))

	d.Exec("RESET ROLE")
	d.Exec("UPDATE indexer.hosting SET asked_at = now() - interval '25 hours' WHERE party = 'admin'")
	require.Equal(t, []string{"admin"}, wanted())
	answered(map[string]bool{"admin": true})
	require.Equal(t, "5 5", balance("far", 9)+" "+balance("made up", 9), "the administrator sees what it signs")

	// A scope that names parties has all of these only.
	require.NoError(t, l.ForgetHosting(t.Context(), nil))
	require.Len(t, relation(), 4)
	require.NoError(t, l.ForgetHosting(t.Context(), []string{"stays"}))
	require.Equal(t, "5 <nil>", balance("stays", 9)+" "+balance("comes", 9))
}

// A role that is limited to a party of which nobody was asked takes the sums of others that it sees a part of for unknown,
// and so does everybody what another administrator's instrument of the same name may add.
func TestSumsOfOthersAreUnknown(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	for i, admin := range []string{"admin", "other"} {
		c := tokenCreation(0, "of-"+admin, view(storetest.HoldingV1, strings.Replace(valueV1("far", "5", "null"), `"admin": "admin"`, `"admin": "`+admin+`"`, 1)))
		c.Signatories, c.Observers = []string{admin}, []string{"auditor"}
		u := storetest.NewUpdate(ledger.Offset(2*i+1), "sync::1")
		u.Created = []ledger.CreatedEvent{c}
		d.append(l, u.Offset-1, u)
		ended := storetest.NewUpdate(u.Offset+1, "sync::1")
		ended.Archived = []ledger.ArchivedEvent{storetest.Archival(0, c.ContractID)}
		d.append(l, u.Offset, ended)
	}
	require.NoError(t, l.SaveHosting(t.Context(), map[string]bool{"admin": true, "other": false, "far": false}, 4))
	const balance = "SELECT ledger.balance_at_offset('far', 'Token', $1, $2)::text"
	require.Equal(t, "5 0 <nil> <nil> <nil>", strings.Join([]string{d.Row(balance, 1, "admin"), d.Row(balance, 4, "admin"), d.Row(balance, 4, "other"), d.Row(balance, 4, nil), d.Row(balance, 1, nil)}, " "))
	role, _ := throwaway.Login(t, d.URL, "")
	_, err := d.store().Grant(t.Context(), Reader{Role: role, Parties: []string{"auditor"}})
	require.NoError(t, err)
	d.Exec("SET ROLE " + role)
	require.Equal(t, "<nil> <nil>", d.Row(balance, 1, "admin")+" "+d.Row(balance, 3, "other"))
	require.Equal(t, []string{"other <nil> 1"}, d.Rows("SELECT instrument_admin, amount::text, contracts FROM ledger.holding_totals_at(3)"))
	d.Exec("RESET ROLE")
}
