package sandbox

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func serveScan(t *testing.T, l *Ledger, opts ScanOptions) (*client, *Scan) {
	t.Helper()
	s := NewScan(l, opts)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return &client{t: t, url: server.URL, get: server.Client()}, s
}

// records are the decoded records of a page.
func (a answer) records() []map[string]any {
	a.t.Helper()
	require.Equal(a.t, http.StatusOK, a.status, "%s", a.body)
	var page struct {
		Transactions []map[string]any `json:"transactions"`
	}
	require.NoError(a.t, json.Unmarshal(a.body, &page))
	require.NotNil(a.t, page.Transactions)
	return page.Transactions
}

func (a answer) scanError(status int, text string) {
	a.t.Helper()
	require.Equal(a.t, status, a.status, "%s", a.body)
	var e map[string]string
	require.NoError(a.t, json.Unmarshal(a.body, &e))
	require.Len(a.t, e, 1)
	require.Contains(a.t, e["error"], text)
}

// repeated are the event ids that stand on more than one record.
func repeated(ids []string) map[string]bool {
	seen, twice := map[string]bool{}, map[string]bool{}
	for _, id := range ids {
		twice[id] = twice[id] || seen[id]
		seen[id] = true
	}
	maps.DeleteFunc(twice, func(_ string, is bool) bool { return !is })
	return twice
}

// More requests of an operation than the limit are refused until the next second, in the form of the real service;
// those of another are not.
func TestScanLimitsRequests(t *testing.T) {
	t.Parallel()
	c, _ := serveScan(t, grown(t, Options{Seed: 23}, 20), ScanOptions{RequestLimit: 2})
	a := c.post(pathNetworkUpdates, `{"page_size":1}`)
	require.Equal(t, 200, a.status)
	for a.status == http.StatusOK {
		a = c.post(pathNetworkUpdates, `{"page_size":1}`)
	}
	require.Equal(t, http.StatusTooManyRequests, a.status)
	require.Equal(t, "Too many requests\n", string(a.body))
	require.Equal(t, 200, c.do(http.MethodGet, "/version", "").status)
}

func TestScanGrowthCutAnywhereGivesTheSameHistory(t *testing.T) {
	t.Parallel()
	whole, parts := grown(t, Options{Seed: 24}, 500), NewLedger(Options{Seed: 24})
	c, s := serveScan(t, whole, ScanOptions{BalanceChanges: true, ExtraKinds: true})
	live, grows := serveScan(t, parts, ScanOptions{BalanceChanges: true, ExtraKinds: true})
	require.Empty(t, live.post(pathTransactions, `{"page_size":5}`).records())
	for _, n := range []int{1, 4, 0, 195, 300} {
		parts.Grow(n)
		live.post(pathTransactions, `{"page_size":5}`).records()
	}
	require.Equal(t, s.EventIDs(), grows.EventIDs())
	body := `{"page_size":1000}`
	require.Equal(t, string(c.post(pathTransactions, "%s", body).body), string(live.post(pathTransactions, "%s", body).body))
	require.Equal(t, "", Diff(s.Truth(), grows.Truth()))
}

// Three hundred updates are enough to meet everything that a history can have.
func TestSmallHistoryHasEverything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		l := grown(t, Options{Seed: seed}, 300)
		c, s := serveScan(t, l, ScanOptions{ExtraKinds: true, BalanceChanges: true})
		all := string(c.post(pathTransactions, `{"page_size":1000}`).body)
		for _, part := range []string{
			`"transaction_type":"transfer"`, `"transaction_type":"mint"`, `"transaction_type":"devnet_tap"`, `"transaction_type":"abort_transfer_instruction"`,
			`"transaction_type":"expire"`, `"abort_kind":"withdraw"`, `"abort_kind":"reject"`, `"transfer_kind":"preapproval_send"`,
			`"transfer_kind":"create_transfer_instruction"`, `"transfer_kind":"transfer_instruction_accept"`, `"transferInstructionReceiver":"`,
			`"transferInstructionAmount":"`, `"transferInstructionCid":"00`, `},{"party":`, `"description":"`, `_reward_amount":"`,
			`"input_validator_faucet_amount":"`, `"change_to_holding_fees_rate":"-0.`, `"amulet_owner":"`, `"input_amulet_amount":"`, `"offset":"0000000000`,
			`"balance_changes":[{`,
		} {
			require.Contains(t, all, part, "seed %d", seed)
		}
		coin, _ := serveScan(t, l, ScanOptions{Word: "coin"})
		renamed := string(coin.post(pathTransactions, `{"page_size":1000}`).body)
		for _, part := range []string{`"coin_owner":"`, `"coin_amount":"`, `"input_coin_amount":"`} {
			require.Contains(t, renamed, part)
		}
		require.NotContains(t, renamed, "amulet_")
		require.NotContains(t, renamed, "change_to_holding")
		require.NotContains(t, renamed, `"expire"`)
		require.NotEmpty(t, repeated(s.EventIDs()))
		equal := 0
		seen := map[string]bool{}
		for _, r := range c.post(pathTransactions, `{"page_size":1000}`).records() {
			text := mustJSON(r)
			if seen[text] {
				equal++
			}
			seen[text] = true
		}
		require.Positive(t, equal, "no two records are equal")
		for relation, rows := range s.Truth() {
			require.NotEmpty(t, rows, "seed %d: %s", seed, relation)
		}
	}
}
