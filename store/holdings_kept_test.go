package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// What is written in Go is what the definition says in SQL, whatever the values are.
func TestHoldingsAreToldAsInSQL(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	at := ledger.Offset(0)
	rapid.Check(t, func(rt *rapid.T) {
		u := storetest.NewUpdate(at+1, "sync::1")
		for node := range rapid.Int32Range(1, 60).Draw(rt, "creations") {
			id := fmt.Sprint(u.Offset, " ", node)
			c := tokenCreation(node, id)
			if rapid.Bool().Draw(rt, "amulet") {
				entity := rapid.SampledFrom([]string{"Amulet", "LockedAmulet", "Other"}).Draw(rt, "entity")
				c = amuletCreation(node, id, entity, drawHolding(rt))
				if rapid.IntRange(0, 9).Draw(rt, "unserved") == 0 {
					c.Argument = nil
				}
			}
			c.Signatories = rapid.SampledFrom([][]string{nil, {}, {"alice"}, {"alice", "dso"}, {"ünï\tcode"}}).Draw(rt, "signatories")
			for range rapid.IntRange(0, 3).Draw(rt, "views") {
				interfaceID := rapid.SampledFrom([]string{storetest.HoldingV1, holdingV2, "pkg-w:Splice.Api.Token.HoldingV2:Holding", "p:M:Other"}).Draw(rt, "interface")
				v := view(interfaceID, drawHolding(rt))
				switch rapid.IntRange(0, 9).Draw(rt, "odd") {
				case 0:
					v.StatusCode = new(int32(9))
				case 1:
					v.StatusCode = nil
				case 2:
					v.Value = nil
				}
				c.InterfaceViews = append(c.InterfaceViews, v)
			}
			u.Created = append(u.Created, c)
		}
		if err := l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: at, To: u.Offset, Updates: []ledger.Update{u}}}); err != nil {
			rt.Fatal(err)
		}
		at = u.Offset
	})
	require.NotEqual(t, "0", d.Row("SELECT least(count(amount), count(locked_until)) FROM indexer.active_contracts"))
	list, err := Audit.Stored(l.store).CompareDerived(t.Context())
	require.NoError(t, err)
	for _, difference := range list {
		t.Log(difference, d.Rows("SELECT c.payload::text, v.interface_id, v.view_value::text FROM indexer.created c LEFT JOIN indexer.interface_views v USING (ledger_offset, node_id) WHERE ledger_offset = $1 AND $2 LIKE '%' || c.contract_id || '%'",
			difference.Offset, difference.Row))
	}
	require.Empty(t, list)
}

// drawHolding draws JSON that says something of a holding, or seems to.
func drawHolding(rt *rapid.T) string {
	value := func() string {
		return rapid.SampledFrom([]string{
			`"alice"`, `"dso"`, `""`, `"1.50"`, `"-0012.3400"`, `"-0.00"`, `"1e2"`, `"5.000E-7"`, `"0E-10"`, `"-1.5E+3"`, `"9999."`, `"0E99999"`, `"1E300"`, `"1e"`, `" 1"`, `"\u0061li\u0063e"`, `"ünï\tcode"`, `"\ud83d\ude00"`, `"a\"b\\"`, `"\u0000"`,
			`null`, `true`, `false`, `{}`, `[]`, `{"id": "Token", "admin": "dso"}`, `{"id": "x", "admin": "ünï\tcode"}`, `{ "owner" : "bob" , "id":1 }`,
			`7`, `-7.50`, `-0`, `-0.0`, `0.00`, `1e2`, `1.50e1`, `1.5E+3`, `15e-4`, `-1.25e-1`, `0e5`, `0e1000`, `1e-0003`, `1e299`, `1e300`, `1e-300`, `1e-301`, `1e400`, `1e200000`,
			`{"initialAmount": "1.5"}`, `{"initialAmount": 2.50}`, `{"initialAmount": "x"}`, `[{"initialAmount": "1"}]`, `{"initialAmount": "1", "\u0069nitialAmount": "3"}`,
			`"` + strings.Repeat("9", 300) + `"`, `"` + strings.Repeat("9", 301) + `"`, strings.Repeat("9", 301), `"0` + strings.Repeat("9", 300) + `"`,
			`"` + strings.Repeat("0", 699) + `1"`, `"` + strings.Repeat("0", 700) + `1"`, `0.` + strings.Repeat("0", 800) + `e700`,
		}).Draw(rt, "value")
	}
	object := func(names ...string) string {
		var members []string
		for range rapid.IntRange(0, 6).Draw(rt, "members") {
			members = append(members, fmt.Sprintf("%s:%s", rapid.SampledFrom(names).Draw(rt, "name"), value()))
		}
		separator := rapid.SampledFrom([]string{",", " ,\n\t"}).Draw(rt, "separator")
		return "{" + strings.Join(members, separator) + "}"
	}
	lock := func() string {
		if rapid.Bool().Draw(rt, "no lock") {
			return value()
		}
		end := rapid.SampledFrom([]string{
			`"2025-06-18T00:00:00Z"`, `"2024-02-29T23:59:59.999999Z"`, `"2025-02-29T00:00:00Z"`, `"2025-01-01T24:00:00Z"`, `"2025-01-01T00:00:60Z"`, `"0000-01-01T00:00:00Z"`,
			`"0001-01-01T00:00:00.5Z"`, `"9999-12-31T23:59:59.999999Z"`, `"2025-01-01T00:00:00,5Z"`, `"2025-01-01T0:00:00.00Z"`, `"2025-01-01T00:00:00.Z"`, `"2025-01-01T00:00:00.0000001Z"`,
			`"2025-01-01T00:00:00+00:00"`, `"2025-01-01 00:00:00Z"`, `"2025-06-18T00:00:00\u005a"`, `"infinity"`, `20250618`, `null`,
		}).Draw(rt, "end")
		after := rapid.SampledFrom([]string{
			`"0"`, `"86400000000"`, `"-86400000000"`, `3600000000`, `"+1"`, `"1.0"`, `1.0`, `-1e6`, `"9000000000000000"`, `"9000000000000001"`, `"-9000000000000001"`,
			`"00000000000000000007"`, `"0000000000000000007"`, `"9223372036854775808"`, `""`, `{}`, `null`,
		}).Draw(rt, "after")
		return fmt.Sprintf(`{"expiresAt": %s, "holders": [], "expiresAfter": {"microseconds": %s}}`, end, after)
	}
	names := []string{`"owner"`, `"own\u0065r"`, `"amount" `, `"amount"`, `"dso"`, `"lock"`, `"instrumentId"`, `"x{\"owner\":"`}
	switch rapid.IntRange(0, 9).Draw(rt, "shape") {
	case 0:
		return value()
	case 1, 2:
		return fmt.Sprintf(`{"amulet": %s, "owner": %s, "lock": %s}`, object(names...), value(), lock())
	case 3, 4:
		return fmt.Sprintf(` {"account": %s, "amount": %s, "lock": %s, "instrumentId": %s}`, object(names...), value(), lock(), value())
	default:
		return object(names...)
	}
}

// The holdings of one party, and all totals, are read from the indexes, and what nobody names is not looked up.
func TestHoldingsAreReadByIndex(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "writes very many rows")
	d := newDatabase(t)
	d.started()
	d.fillHoldings(6_000, 20)
	d.becomeAnalyst()
	owner := d.Row("SELECT owner FROM ledger.holdings LIMIT 1")
	for query, index := range map[string]string{
		"SELECT contract_id, amount, locked FROM ledger.holdings WHERE owner = '" + owner + "'": "active_contracts_position",
		"SELECT * FROM ledger.holding_totals WHERE owner = '" + owner + "'":                     "active_contracts_position",
		"SELECT * FROM ledger.holding_totals":                                                   "",
		"SELECT owner, sum(amount) FROM ledger.holdings GROUP BY 1":                             "",
		"SELECT owner, sum(amount) FROM ledger.holdings_at(8000) GROUP BY 1":                    "lifetimes",
	} {
		plan := d.plan(query)
		require.Contains(t, plan, index, query)
		for _, other := range []string{"created", "interface_views", "Function Scan"} {
			require.NotContains(t, plan, other, query)
		}
	}
	plan := d.plan("SELECT * FROM ledger.holding_totals_at(8000)")
	require.Contains(t, plan, "Index Only Scan using active_contracts_position", "contract ids are not read")
	require.Contains(t, plan, "Index Scan using created_all_contract_id_idx", "but of what has moved")
	for _, other := range []string{"Seq Scan on created", "interface_views", "Function Scan"} {
		require.NotContains(t, plan, other)
	}
	owner = d.Row("SELECT owner FROM ledger.holding_lifetimes WHERE activated_offset = 24080")
	past := "SELECT count(*), sum(amount)::text FROM ledger.holdings_at(24080) WHERE owner = '" + owner + "'"
	totals := "SELECT sum(contracts)::bigint, sum(amount)::text FROM ledger.holding_totals_at(24080) WHERE owner = '" + owner + "'"
	for _, query := range []string{past, totals} {
		require.Contains(t, d.plan(query), "lifetimes_all_position_id_", query)
	}
}

// What a batch brings is not looked for again once it is committed, and not taken for stored before.
func TestPositionsAreAddedOnce(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	u := storetest.NewUpdate(1, "sync::1")
	u.Created = []ledger.CreatedEvent{amuletCreation(0, "a", "Amulet", amuletPayload), amuletCreation(1, "b", "Amulet", amuletPayload)}
	d.Exec("ALTER TABLE indexer.positions ADD CONSTRAINT refuses CHECK (false)")
	page := []ledger.Page{{To: 1, Updates: []ledger.Update{u}}}
	require.ErrorContains(t, l.Append(t.Context(), storetest.Scope, page), "add 1 positions")
	d.Exec("ALTER TABLE indexer.positions DROP CONSTRAINT refuses")
	require.NoError(t, l.Append(t.Context(), storetest.Scope, page))
	require.Equal(t, "1 15.0", d.Row("SELECT (SELECT count(*) FROM indexer.positions), amount::text FROM ledger.holding_totals"))
	d.Exec("ALTER TABLE indexer.positions ADD CONSTRAINT refuses CHECK (false) NOT VALID")
	again := storetest.NewUpdate(2, "sync::1")
	again.Created = []ledger.CreatedEvent{amuletCreation(0, "c", "Amulet", amuletPayload)}
	d.append(l, 1, again)
	require.Equal(t, "22.5", d.Row("SELECT amount::text FROM ledger.holding_totals"))
}
