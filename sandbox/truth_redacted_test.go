package sandbox

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of what was redacted the content is missing, of contracts and of updates, and the rest is as it was; the truth that
// is given stays.
func TestRedact(t *testing.T) {
	t.Parallel()
	l := NewLedger(Options{Seed: 5, ActiveShare: 0.5})
	l.Grow(300)
	scope := Scope{Shape: LedgerEffects, Interfaces: InterfaceNames(), Blobs: true}
	truth := func() map[string][]Row {
		all := l.Truth(scope, l.End())
		for relation, rows := range l.Holdings(scope, l.End()) {
			all[relation] = rows
		}
		all["transfers"] = []Row{{"seq": json.Number("1"), "update_id": "u", "instruction_cid": nil, "description": "rent"}}
		all["unknown_transactions"] = []Row{{"seq": json.Number("2"), "raw": map[string]any{"event": "#u:1"}}, {"seq": json.Number("3"), "raw": map[string]any{}}}
		return all
	}
	whole := truth()
	require.Empty(t, Diff(whole, Redact(whole, nil, nil)))

	held, exercised := whole["holdings"][0]["contract_id"].(string), whole["exercised_events"][0]["update_id"].(string)
	redacted := Redact(whole, map[string]bool{held: true}, map[string]bool{exercised: true, "u": true})
	require.Empty(t, Diff(truth(), whole), "it is as it was")
	for relation, rows := range redacted {
		for i, row := range rows {
			of := row["contract_id"] == held || row["update_id"] == exercised || row["update_id"] == "u"
			switch {
			case relation == "holdings" || relation == "holding_totals" || relation == "unknown_transactions":
			case !of:
				require.Equal(t, whole[relation][i], row)
			default:
				for _, column := range content[relation] {
					require.Nil(t, row[column], relation)
				}
				require.Len(t, row, len(whole[relation][i]))
			}
		}
	}
	require.Nil(t, redacted["unknown_transactions"][0]["raw"])
	require.NotNil(t, redacted["unknown_transactions"][1]["raw"])
	total := func(of map[string][]Row) (n int) {
		for _, row := range of["holding_totals"] {
			count, err := row["contracts"].(json.Number).Int64()
			require.NoError(t, err)
			n += int(count)
		}
		return n
	}
	require.Equal(t, len(redacted["holdings"]), total(redacted))
	require.NotEqual(t, whole["holding_totals"], redacted["holding_totals"])
}
