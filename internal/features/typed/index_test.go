package typed

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/features/damllf/build"
	_ "ledgerindexer/internal/tools/hermetic"
)

func TestFieldsThatCanBeIndexed(t *testing.T) {
	t.Parallel()
	p, s := recordOf(t, shelf{}, map[string][]build.Field{"1": {
		member("owner", build.Party), member("wallet", build.Local("M:R")), member("list", build.List(build.Text)), member("map", build.TextMap(build.Text)),
		member("v", build.Local("M:V")),
	}}, build.Record("R", member("holder", build.Text), member("amountHeld", build.Numeric(10))), build.Variant("V", member("A", build.Unit), member("B", build.Int64), member("C", build.Numeric(4))))
	shape, err := p.Shape(s)
	require.NoError(t, err)
	for path, want := range map[string]string{
		"owner": "text (payload ->> 'owner')", "payload_owner": "text (payload ->> 'owner')", "wallet.holder": "text (payload -> 'wallet' ->> 'holder')", "wallet_holder": "text (payload -> 'wallet' ->> 'holder')",
		"wallet.amountHeld": `numeric(38,10) "ledger".as_numeric(payload -> 'wallet' ->> 'amountHeld', 10)::numeric(38,10)`,
		"v":                 "text (payload -> 'v' ->> 'tag')", "v_tag": "text (payload -> 'v' ->> 'tag')",
		"v.C": `numeric(38,4) (CASE WHEN payload -> 'v' ->> 'tag' = 'C' THEN "ledger".as_numeric(payload -> 'v' ->> 'value', 4) END)::numeric(38,4)`,
		"v.B": `bigint CASE WHEN payload -> 'v' ->> 'tag' = 'B' THEN "ledger".as_bigint(payload -> 'v' ->> 'value') END`,
	} {
		c, err := shape.Field(s, path)
		require.NoError(t, err, path)
		require.Equal(t, want, c.Type+" "+c.Expression("ledger", "payload"), path)
		again, err := shape.Field(s, c.PathName())
		require.NoError(t, err, path)
		require.Equal(t, c, again)
	}
	for path, want := range map[string]string{
		"list": "no single value but List of Text", "map": "no single value but TextMap of Text", "wallet": "a record of several fields; there are wallet.holder, wallet.amountHeld",
		"hold": "no such field; there are wallet.holder", "nothing": "no such field; there are owner, wallet.holder, wallet.amountHeld, v, v.B", "": "no such field", `"; DROP`: "no such field",
		"contract_id": "no such field", strings.Repeat("x", 10_000): "no such field",
	} {
		_, err := shape.Field(s, path)
		var wrong *FieldError
		require.ErrorAs(t, err, &wrong, path)
		require.ErrorContains(t, err, want, path)
		require.LessOrEqual(t, len(wrong.Candidates), mostCandidates)
	}
	require.Equal(t, `(value -> 'it''s' ->> '"')`, Column{Type: "text", Path: []string{"it's", `"`}}.Expression("ledger", "value"))
	require.Equal(t, `(value #>> '{}')`, Column{Type: "text"}.Expression("ledger", "value"))
}
