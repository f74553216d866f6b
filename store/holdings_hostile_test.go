package store

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// Whatever a contract says, the relations can be read, and show what is readable of it.
func TestHoldingsHostile(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	u := storetest.NewUpdate(1, "sync::1")
	values := []string{
		`null`, `true`, `7`, `"text"`, `[]`, `{}`, `[{"owner": "alice"}]`, `"\u0000"`, `{"$exact": "x"}`,
		`{"owner": 7, "amount": 7, "instrumentId": 7, "lock": 7, "meta": 7, "account": 7, "amulet": 7, "dso": 7}`,
		`{"owner": [], "amount": [], "instrumentId": [], "lock": [], "meta": [], "account": [], "amulet": [], "dso": []}`,
		`{"owner": {}, "amount": {}, "instrumentId": {}, "lock": {}, "meta": {}, "account": {}, "amulet": {}, "dso": {}}`,
		`{"owner": null, "amount": null, "instrumentId": null, "lock": null, "meta": null, "account": null, "amulet": null, "dso": null}`,
		`{"owner": "", "amount": "", "instrumentId": {"admin": 7, "id": 7}, "lock": {"holders": {}, "expiresAt": {}, "expiresAfter": {}}}`,
		`{"account": {"owner": {}}, "lock": {"holders": [[]], "expiresAt": "", "expiresAfter": {"microseconds": ""}}, "meta": {"values": []}}`,
	}
	for _, amount := range []string{
		"abc", "NaN", "Infinity", "1e", "1E999999999", "+1", "1..", ".5", "0x10", "1_000", " 1", "1 ", "1\\n", "--1", "١", strings.Repeat("9", 301), strings.Repeat("9", 200_000),
	} {
		values = append(values, fmt.Sprintf(`{"owner": "alice", "amount": %[1]q, "account": {"owner": "alice"}, "instrumentId": {"admin": "admin", "id": "Token"}}`, amount))
	}
	for _, time := range []string{
		"now", "infinity", "tomorrow", "2025-02-29T00:00:00Z", "2025-04-31T00:00:00Z", "1900-02-29T00:00:00Z", "0000-01-01T00:00:00Z", "2025-13-01T00:00:00Z",
		"2025-00-01T00:00:00Z", "2025-01-00T00:00:00Z", "2025-01-32T00:00:00Z", "2025-01-01T24:00:00Z", "2025-01-01T00:60:00Z", "2025-01-01T00:00:60Z",
		"2025-01-01T00:00:00", "2025-01-01", "20250101T000000Z", "2025-01-01T00:00:00Z\\n", "10000-01-01T00:00:00Z", "2025-01-01T00:00:00.0000001Z", "2025-01-01T00:00:00+99:99",
	} {
		lock := fmt.Sprintf(`{"holders": [], "expiresAt": "%s", "expiresAfter": {"microseconds": "-9223372036854775809"}}`, time)
		values = append(values, fmt.Sprintf(`{"owner": "alice", "amount": "1", "lock": %[1]s, "amulet": {"owner": "alice", "amount": {"initialAmount": "1"}}}`, lock))
	}
	for _, number := range []string{`"9223372036854775808"`, `"1.5"`, `{}`, `"x"`, `1e400`} {
		values = append(values, fmt.Sprintf(`{"owner": "alice", "dso": [], "amount": {"initialAmount": "1", "createdAt": {"number": %[1]s}, "ratePerRound": {"rate": {}}}}`, number))
	}
	for _, value := range values {
		if !strings.HasPrefix(value, `"\u0000`) { // the rest is JSON that jsonb takes
			d.Exec("SELECT $1::jsonb", value)
		}
		id := fmt.Sprintf("%03d", len(u.Created))
		next := func() int32 { return int32(len(u.Created)) }
		u.Created = append(u.Created, tokenCreation(next(), id+" v1", view(storetest.HoldingV1, value)))
		u.Created = append(u.Created, tokenCreation(next(), id+" v2", view(holdingV2, value)))
		u.Created = append(u.Created, amuletCreation(next(), id+" amulet", "Amulet", value))
		u.Created = append(u.Created, amuletCreation(next(), id+" locked", "LockedAmulet", value))
	}
	d.append(l, 0, u)
	require.Len(t, d.holdings("ledger.holdings"), len(u.Created), "each is shown")
	require.Equal(t, d.holdings("ledger.holdings"), d.holdings("ledger.holdings_at(1)"))
	require.NotEmpty(t, d.Rows("SELECT h::text FROM ledger.holding_totals h"))
	require.Empty(t, d.Rows("SELECT contract_id FROM ledger.holdings WHERE locked_until IS NOT NULL OR created_round IS NOT NULL OR holding_fee_rate IS NOT NULL"))
	require.Equal(t, []string{"1", "7"}, d.Rows("SELECT DISTINCT amount::text FROM ledger.holdings WHERE amount IS NOT NULL ORDER BY 1"))
	require.Equal(t, []string{"alice"}, d.Rows("SELECT DISTINCT owner FROM ledger.holdings WHERE owner <> ''"))
}

// What a ledger does write is read, at its bounds too.
func TestHoldingsCasts(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	for query, want := range map[string]string{
		"SELECT indexer.decimal_of('-0012.3400')::text":                                             "-12.3400",
		"SELECT indexer.decimal_of(repeat('9', 300))::text":                                         strings.Repeat("9", 300),
		"SELECT indexer.decimal_of('5.000E-7')::text":                                               "0.0000005000",
		"SELECT indexer.integer_of('9223372036854775807')":                                          "9223372036854775807",
		"SELECT indexer.integer_of('-9223372036854775808')":                                         "-9223372036854775808",
		"SELECT extract(epoch FROM indexer.duration_of('9000000000000000'))::text":                  "9000000000.000000",
		"SELECT indexer.duration_of('9000000000000001') IS NULL":                                    "true",
		"SELECT indexer.text_of('\"a\"') || coalesce(indexer.text_of('null'), '')":                  "a",
		"SELECT indexer.holding_version('p:Splice.Api.Token.HoldingV1:Holding')":                    "1",
		"SELECT indexer.holding_version('p:Splice.Api.Token.HoldingV2:Holding')":                    "2",
		"SELECT indexer.holding_version('p:Splice.Api.Token.HoldingV3:Holding') IS NULL":            "true",
		"SELECT indexer.holding_version('p:XSplice.Api.Token.HoldingV1:Holding') IS NULL":           "true",
		"SELECT indexer.holding_version('p:Splice.Api.Token.HoldingV1:Holdings') IS NULL":           "true",
		"SELECT timestamptz '9999-12-31' + indexer.duration_of('9000000000000000') > '10285-01-01'": "true",
	} {
		require.Equal(t, want, d.Row(query), query)
	}
}

// There is one reader of decimals in SQL and one in Go, and both read the same: each form that java.math.BigDecimal
// has, and no more.
func TestDecimalsAreReadInSQLAsInGo(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	d.Exec("SET standard_conforming_strings = off") // with which PL/pgSQL reads the text of functions
	java := rapid.Custom(func(r *rapid.T) string {
		digits := strings.TrimLeft(rapid.StringMatching(`[0-9]{0,37}[1-9]|0`).Draw(r, "digits"), "0")
		return javaDecimal(cmp.Or(digits, "0"), rapid.IntRange(-40, 40).Draw(r, "scale"), rapid.Bool().Draw(r, "negative"))
	})
	texts := rapid.OneOf(java, hostileText(), rapid.StringMatching(`-?[0-9]{0,40}\.?[0-9]{0,5}[eE.][-+]?[0-9]{0,10}`),
		rapid.StringMatching(`-?(0{1,320}|[1-9][0-9]{290,310})(\.(0{1,310})[0-9]?)?(E[-+]?0{0,3}([1-9][0-9]{0,2})?)?`))
	exact := 0
	rapid.Check(t, func(r *rapid.T) {
		list := rapid.SliceOfN(texts, 1, 60).Draw(r, "texts")
		got := d.Rows("SELECT coalesce(indexer.decimal_of(x)::text, '-') FROM unnest($1::text[]) WITH ORDINALITY l (x, n) ORDER BY n", list)
		for i, text := range list {
			want := "-"
			if number, err := ledger.ParseDecimal(text); err == nil && len(text) <= 700 {
				want, exact = string(number.Plain()), exact+1
			}
			if got[i] != want {
				r.Fatalf("SQL reads %q as %s, and Go as %s", text, got[i], want)
			}
		}
	})
	require.NotZero(t, exact)
}

// javaDecimal returns what java.math.BigDecimal's toString says of an unscaled number and a scale.
func javaDecimal(digits string, scale int, negative bool) string {
	sign, exponent := "", len(digits)-1-scale
	if negative && digits != "0" {
		sign = "-"
	}
	switch {
	case scale == 0:
		return sign + digits
	case scale > 0 && exponent >= -6:
		digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
		return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if len(digits) > 1 {
		digits = digits[:1] + "." + digits[1:]
	}
	return fmt.Sprintf("%s%sE%+d", sign, digits, exponent)
}

// A contract can name any instrument and administrator. What the administrator did not sign adds to nothing that it
// did.
func TestHoldingsForged(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	forged := tokenCreation(2, "forged token", view("pkg-fake:Splice.Api.Token.HoldingV1:Holding", valueV1("mallory", "1000", "null")))
	forged.Signatories = []string{"mallory"}
	fake := amuletCreation(3, "forged amulet", "Amulet", strings.ReplaceAll(amuletPayload, "alice", "mallory"))
	fake.TemplateID, fake.Signatories = "pkg-fake:Splice.Amulet:Amulet", []string{"mallory"}
	named := amuletCreation(4, "named alike", "Amulet", amuletPayload)
	named.PackageName = "not-splice-amulet"
	unsigned := tokenCreation(5, "nobody's", view(storetest.HoldingV1, `{"owner": "mallory", "amount": "1"}`))
	u := storetest.NewUpdate(1, "sync::1")
	u.Created = []ledger.CreatedEvent{
		amuletCreation(0, "amulet", "Amulet", strings.ReplaceAll(amuletPayload, "alice", "mallory")),
		tokenCreation(1, "token", view(storetest.HoldingV1, valueV1("mallory", "1", "null"))),
		forged, fake, named, unsigned,
	}
	d.append(l, 0, u)
	require.Equal(t, []string{
		"mallory|Amulet|dso|false|7.5|1", "mallory|Amulet|dso|true|7.5|1",
		"mallory|Token|admin|false|1000|1", "mallory|Token|admin|true|1|1",
		"mallory|||false|1|1",
	}, d.Rows(`SELECT concat_ws('|', owner, coalesce(instrument, ''), coalesce(instrument_admin, ''), admin_signed::text, amount, contracts)
		FROM ledger.holding_totals ORDER BY instrument, admin_signed`))
	require.Equal(t, []string{"pkg-fake:Splice.Api.Token.HoldingV1:Holding"}, d.Rows("SELECT source FROM ledger.holdings WHERE contract_id = 'forged token'"))
}
