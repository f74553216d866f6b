package store

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/recorded"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

const holdingV2 = "pkg-v2:Splice.Api.Token.HoldingV2:Holding"

// recordedEntries is the recorded snapshot. All of its events have one place; here each has its own.
func recordedEntries(t *testing.T) []ledger.ContractEntry {
	t.Helper()
	body, err := os.ReadFile(recorded.Beside(t, "recorded/active-contracts-6.json"))
	require.NoError(t, err)
	entries, err := ledger.DecodeContractEntries(body)
	require.NoError(t, err)
	for i := range entries {
		entries[i].Active.Created.NodeID = int32(i)
	}
	return entries
}

// snapshot stores the entries as a snapshot at an offset.
func (d *testDB) snapshot(l *UpdatesWriter, at ledger.Offset, entries ...ledger.ContractEntry) {
	d.T.Helper()
	progress, err := l.BeginSnapshot(d.T.Context(), "participant::1", storetest.Scope, at)
	require.NoError(d.T, err)
	_, err = l.WriteSnapshotPage(d.T.Context(), progress, nil, ledger.SnapshotPage{Entries: entries, Last: true})
	require.NoError(d.T, err)
}

// append stores updates that come after an offset, each a page of its own.
func (d *testDB) append(l *UpdatesWriter, after ledger.Offset, updates ...ledger.Update) {
	d.T.Helper()
	for _, u := range updates {
		require.NoError(d.T, l.Append(d.T.Context(), storetest.Scope, []ledger.Page{{From: after, To: u.Offset, Updates: []ledger.Update{u}}}))
		after = u.Offset
	}
}

// holdings reads relation whole, one text per row, by contract.
func (d *testDB) holdings(relation string) []string {
	d.T.Helper()
	d.Exec("SET timezone = 'UTC'")
	return d.Rows("SELECT h::text FROM " + relation + " h ORDER BY h.contract_id")
}

const (
	recordedAmulet = `"1971-01-01 00:00:00+00",1,%d,%d,0.0038051800,"amulet payload",t,#package-name:Splice.Amulet:%s,#package-name,splice-amulet,Splice.Amulet,%[3]s,sync::normalized,)`
	recordedDummy  = `(alice::normalized,DummyHolding,alice::normalized,%s,f,,,%d,"1971-01-01 00:00:00+00",1,%d,,,#package-name:Splice.Api.Token.HoldingV1:Holding,t,` +
		`#package-name:Splice.Api.Token.Test.DummyHolding:DummyHolding,#package-name,splice-token-test-dummy-holding,Splice.Api.Token.Test.DummyHolding,DummyHolding,sync::normalized,)`
)

// A recorded snapshot, and what the stream does to it, as an analyst sees it who has no rights beneath.
func TestHoldingsRecorded(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	entries := recordedEntries(t)
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	d.snapshot(l, 10, entries...)
	created := storetest.NewUpdate(12, "sync::normalized")
	created.Created = []ledger.CreatedEvent{entries[4].Active.Created}
	created.Created[0].ContractID, created.Created[0].Origin, created.Created[0].NodeID = "7", ledger.OriginTransaction, 3
	archived := storetest.NewUpdate(11, "sync::normalized")
	archived.Archived = []ledger.ArchivedEvent{storetest.Archival(0, "2")}

	d.becomeAnalyst()
	want := []string{
		`(alice::normalized,Amulet,dso::normalized,1000.0000000000,t,"2025-06-18 00:00:00+00",{dso::normalized},1,` + fmt.Sprintf(recordedAmulet, 0, 0, "LockedAmulet"),
		`(alice::normalized,Amulet,dso::normalized,1.0000000000,f,,,2,` + fmt.Sprintf(recordedAmulet, 1, 0, "Amulet"),
		`(alice::normalized,Amulet,dso::normalized,4289.0000000000,f,,,3,` + fmt.Sprintf(recordedAmulet, 2, 0, "Amulet"),
		`(alice::normalized,Amulet,dso::normalized,500.0000000000,f,,,4,` + fmt.Sprintf(recordedAmulet, 3, 1, "Amulet"),
		fmt.Sprintf(recordedDummy, "30.0000000000", 5, 4),
		fmt.Sprintf(recordedDummy, "40.0000000000", 6, 5),
	}
	require.Equal(t, want, d.holdings("ledger.holdings"))
	require.Equal(t, want, d.holdings("ledger.holdings_at(10)"))
	require.Equal(t, []string{
		"(alice::normalized,Amulet,dso::normalized,t,5790.0000000000,1000.0000000000,4790.0000000000,4,0)",
		"(alice::normalized,DummyHolding,alice::normalized,t,70.0000000000,0,70.0000000000,2,0)",
	}, d.Rows("SELECT h::text FROM ledger.holding_totals h ORDER BY instrument"))

	d.append(l, 10, archived, created)
	after := append([]string{want[0]}, want[2:]...)
	require.Equal(t, want, d.holdings("ledger.holdings_at(10)"))
	require.Equal(t, after, d.holdings("ledger.holdings_at(11)"))
	added := strings.Replace(fmt.Sprintf(recordedDummy, "30.0000000000", 7, 3), `",1,3`, `",12,3`, 1)
	require.Equal(t, append(after, added), d.holdings("ledger.holdings_at(12)"))
	require.Equal(t, append(after, added), d.holdings("ledger.holdings"))
	require.Equal(t, []string{"Amulet 5789.0000000000 3", "DummyHolding 100.0000000000 3"}, d.Rows(
		"SELECT instrument, amount::text, contracts FROM ledger.holding_totals WHERE owner = 'alice::normalized' ORDER BY 1"))
}

// What is not known is an error, with a way out.
func TestHoldingsAtRefuses(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	refused := func(offset any, code, message, hint string) {
		t.Helper()
		for _, query := range []string{
			"SELECT * FROM ledger.holdings_at($1)", "SELECT instrument, sum(amount) FROM ledger.holdings_at($1) WHERE owner = 'nobody' GROUP BY 1",
			"SELECT ledger.state_offset($1)", "SELECT * FROM ledger.holding_totals_at($1)", "SELECT amount FROM ledger.holding_totals_at($1) WHERE owner = 'nobody'",
		} {
			_, err := d.Conn.Exec(t.Context(), query, offset)
			var refusal *pgconn.PgError
			require.ErrorAs(t, err, &refusal, query)
			require.Equal(t, code, refusal.Code)
			require.Equal(t, message, refusal.Message)
			require.Equal(t, hint, refusal.Hint)
		}
	}
	between := "Ask for an offset between ledger.state_floor() and ledger.latest_offset()."
	refused(10, "55000", "nothing has been indexed yet", "Start the indexer, or wait for the snapshot to be complete.")
	l := d.leadUpdates(d.store())
	d.snapshot(l, 10)
	d.append(l, 10, storetest.NewUpdate(12, "sync::1"))
	require.Empty(t, d.holdings("ledger.holdings_at(11)"))
	require.Equal(t, "10 12", d.Row("SELECT ledger.state_offset(10), ledger.state_offset(12)"))
	refused(9, "22023", "the active contracts are not known at offset 9, but from offset 10 on", between)
	refused(13, "22023", "offset 13 has not been indexed yet: the latest is 12", between)
	refused(nil, "22004", "an offset is needed, not NULL", "")
	d.Exec("UPDATE indexer.floors SET state_floor = NULL")
	refused(12, "55000", "the active contracts are known at no offset: indexing began in the middle, without a snapshot",
		"Seed a new database from a snapshot to know what was active.")
}

// view is a view that was computed.
func view(interfaceID, value string) ledger.InterfaceView {
	return ledger.InterfaceView{InterfaceID: interfaceID, Value: ledger.JSON(value), StatusCode: new(int32(0))}
}

// valueV1 is a view of HoldingV1 of an instrument of "admin".
func valueV1(owner, amount, lock string) string {
	return fmt.Sprintf(`{"owner": %q, "amount": %q, "instrumentId": {"admin": "admin", "id": "Token"}, "lock": %s, "meta": {"values": {}}}`, owner, amount, lock)
}

func valueV2(owner, amount string) string {
	return fmt.Sprintf(`{"account": {"owner": %s, "id": "", "provider": null}, "amount": %q, "instrumentId": {"admin": "admin", "id": "Token"}, "lock": null}`, owner, amount)
}

// tokenCreation is a contract with views, which the administrator signed.
func tokenCreation(nodeID int32, contractID string, views ...ledger.InterfaceView) ledger.CreatedEvent {
	c := storetest.Creation(nodeID, contractID)
	c.Signatories, c.InterfaceViews = []string{"alice", "admin"}, views
	return c
}

func amuletCreation(nodeID int32, contractID, entity, payload string) ledger.CreatedEvent {
	c := storetest.Creation(nodeID, contractID)
	c.TemplateID, c.PackageName, c.Signatories = "pkg-a:Splice.Amulet:"+entity, "splice-amulet", []string{"dso", "alice"}
	c.Argument = ledger.JSON(payload)
	return c
}

const amuletPayload = `{"dso": "dso", "owner": "alice", "amount": {"initialAmount": "7.5", "createdAt": {"number": "3"}, "ratePerRound": {"rate": "0.1"}}}`

// Where the payload is not served, or is no amulet's, the view is read. Of two versions the second counts, unless it
// says nothing.
func TestHoldingsOfViews(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	meta := `{"owner": "bob", "amount": "2", "instrumentId": {"admin": "dso", "id": "Amulet"}, "lock": null, "meta": {"values": {
		"amulet.splice.lfdecentralizedtrust.org/created-in-round": "12", "amulet.splice.lfdecentralizedtrust.org/rate-per-round": "0.5"}}}`
	unserved := amuletCreation(0, "amulet 1", "Amulet", "")
	unserved.Argument, unserved.InterfaceViews = nil, []ledger.InterfaceView{view(storetest.HoldingV1, meta)}
	foreign := amuletCreation(1, "amulet 2", "Amulet", `{"owner": 7}`)
	foreign.InterfaceViews = []ledger.InterfaceView{view(storetest.HoldingV1, meta)}
	mute := amuletCreation(2, "amulet 3", "LockedAmulet", "")
	mute.Argument = nil
	failed := view(holdingV2, valueV2(`"alice"`, "2"))
	failed.StatusCode = new(int32(9))
	unserved.Signatories = []string{"bob"}
	u := storetest.NewUpdate(1, "sync::1")
	u.Created = []ledger.CreatedEvent{
		unserved, foreign, mute,
		amuletCreation(3, "amulet 4", "AppRewardCoupon", amuletPayload),
		tokenCreation(4, "token 1", view(storetest.HoldingV1, valueV1("alice", "1", "null"))),
		tokenCreation(5, "token 2", view(holdingV2, valueV2(`"alice"`, "2"))),
		tokenCreation(6, "token 3", view(storetest.HoldingV1, valueV1("alice", "1", "null")), view(holdingV2, valueV2(`"bob"`, "2"))),
		tokenCreation(7, "token 4", view(storetest.HoldingV1, valueV1("alice", "1", "null")), view(holdingV2, `{}`)),
		tokenCreation(8, "token 5", view(storetest.HoldingV1, valueV1("alice", "1", "null")), failed),
		tokenCreation(9, "token 6", failed),
		tokenCreation(10, "token 7", ledger.InterfaceView{InterfaceID: storetest.HoldingV1, StatusCode: new(int32(0))}),
		tokenCreation(11, "token 8", view("pkg:Splice.Api.Token.AllocationV1:Allocation", valueV1("alice", "1", "null"))),
		tokenCreation(12, "token 9", view(holdingV2, valueV2("null", "2"))),
		tokenCreation(13, "token 10"),
	}
	d.append(l, 0, u)
	require.Equal(t, []string{
		"amulet 1|bob|2|false|" + storetest.HoldingV1 + "|false|12|0.5",
		"amulet 2|bob|2|false|" + storetest.HoldingV1 + "|true|12|0.5",
		"amulet 3|||||false||",
		"token 1|alice|1|false|" + storetest.HoldingV1 + "|true||",
		"token 2|alice|2|false|" + holdingV2 + "|true||",
		"token 3|bob|2|false|" + holdingV2 + "|true||",
		"token 4|alice|1|false|" + storetest.HoldingV1 + "|true||",
		"token 5|alice|1|false|" + storetest.HoldingV1 + "|true||",
		"token 9||2|false|" + holdingV2 + "|true||",
	}, d.Rows(`SELECT concat_ws('|', contract_id, coalesce(owner, ''), coalesce(amount::text, ''), coalesce(locked::text, ''),
		coalesce(source, ''), admin_signed::text, coalesce(created_round::text, ''), coalesce(holding_fee_rate::text, ''))
		FROM ledger.holdings ORDER BY contract_id`))
}

// A lock ends at the earlier of its time and its duration since the creation.
func TestHoldingsLocks(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	u := storetest.NewUpdate(1, "sync::1")
	var want []string
	for i, c := range []struct{ lock, want string }{
		{`null`, "|false"},
		{`{"holders": ["h", "i"], "expiresAt": "2025-02-01T00:00:00.000001Z", "expiresAfter": null, "context": null}`, "|true|2025-02-01 00:00:00.000001+00|{h,i}"},
		{`{"holders": [], "expiresAt": null, "expiresAfter": {"microseconds": "3600000001"}}`, "|true|2025-01-02 04:04:05.000001+00|{}"},
		{`{"holders": ["h"], "expiresAt": "2025-01-02T03:30:00Z", "expiresAfter": {"microseconds": "3600000000"}}`, "|true|2025-01-02 03:30:00+00|{h}"},
		{`{"holders": ["h"], "expiresAt": "2025-02-01T00:00:00Z", "expiresAfter": {"microseconds": "3600000000"}}`, "|true|2025-01-02 04:04:05+00|{h}"},
		{`{}`, "|true"},
		{`{"holders": "h", "expiresAt": 5, "expiresAfter": 5}`, "|true"},
		{`{"holders": ["h", 1, null, {}], "expiresAfter": {"microseconds": "9223372036854775807"}}`, "|true|{h,NULL,NULL,NULL}"},
		{`"locked"`, ""},
	} {
		id := fmt.Sprintf("%c", 'a'+i)
		u.Created = append(u.Created, tokenCreation(int32(i), id, view(storetest.HoldingV1, valueV1("alice", "1", c.lock))))
		want = append(want, id+c.want)
	}
	d.append(l, 0, u)
	d.Exec("SET timezone = 'UTC'")
	require.Equal(t, want, d.Rows("SELECT concat_ws('|', contract_id, locked::text, locked_until, lock_holders) FROM ledger.holdings ORDER BY contract_id"))
}
