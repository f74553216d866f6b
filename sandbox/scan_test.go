package sandbox

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/openapi"
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

func idOf(record map[string]any) string { return record["event_id"].(string) }

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

// walk reads the whole history page by page. After a page it continues from the last event id that is on one record
// only, and drops what it has read behind that one.
func (c *client) walk(order string, size int, twice map[string]bool) (all []map[string]any, pages [][]byte) {
	c.t.Helper()
	all = []map[string]any{}
	cursor, behind := "", 0
	for {
		a := c.post(pathTransactions, `{"page_size":%d,"page_end_event_id":%q,"sort_order":%q}`, size, cursor, order)
		page := a.records()
		require.LessOrEqual(c.t, len(page), size)
		if len(page) == behind {
			return all, pages
		}
		pages = append(pages, a.body)
		require.Equal(c.t, all[len(all)-behind:], page[:behind])
		all = append(all, page[behind:]...)
		behind = 0
		for i := len(all) - 1; i >= 0 && twice[idOf(all[i])]; i-- {
			behind++
		}
		cursor = idOf(all[len(all)-1-behind])
	}
}

func TestScanPagesWalkTheHistoryOnce(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 21}, 700)
	c, s := serveScan(t, l, ScanOptions{})
	ids := s.EventIDs()
	require.Greater(t, len(ids), 60)
	twice := repeated(ids)
	require.NotEmpty(t, twice)
	api := openapi.Scan(t, "0.6")
	var first []map[string]any
	for _, size := range []int{4, 17, 1000} {
		for _, order := range []string{"asc", "desc"} {
			all, pages := c.walk(order, size, twice)
			if order == "desc" {
				slices.Reverse(all)
			}
			got := make([]string, len(all))
			for i, r := range all {
				got[i] = idOf(r)
			}
			require.Equal(t, ids, got, "%s by %d", order, size)
			if first == nil {
				first = all
			}
			require.Equal(t, first, all)
			for _, page := range pages {
				require.NoError(t, api.CheckResponse("POST", pathTransactions, 200, page))
			}
		}
	}
	// Ascending is the default, and the empty cursor is none.
	require.Equal(t, first[:3], c.post(pathTransactions, `{"page_size":3}`).records())
	require.Equal(t, first[:3], c.post(pathTransactions, `{"page_size":3,"page_end_event_id":null,"sort_order":null}`).records())
	require.Equal(t, first[len(first)-1:], c.post(pathTransactions, `{"page_size":1,"page_end_event_id":"","sort_order":"desc"}`).records())
}

func TestScanCursors(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 22}, 400)
	c, s := serveScan(t, l, ScanOptions{})
	ids := s.EventIDs()
	twice := repeated(ids)
	require.NotEmpty(t, twice)
	for id := range twice {
		for _, order := range []string{"asc", "desc"} {
			c.post(pathTransactions, `{"page_size":5,"page_end_event_id":%q,"sort_order":%q}`, id, order).scanError(500, "more than one row")
		}
	}
	stranger := NewLedger(Options{Seed: 99})
	for _, unknown := range []string{
		"nonsense", "#" + stranger.UpdateID(3) + ":0", "#" + l.UpdateID(3) + ":999", strings.TrimPrefix(ids[0], "#"), ids[0] + "0", "#" + l.UpdateID(100_000) + ":0", "\"\\\u0000",
	} {
		require.Empty(t, c.post(pathTransactions, `{"page_size":5,"page_end_event_id":%s}`, mustJSON(unknown)).records(), unknown)
	}
	last := ids[len(ids)-1]
	require.False(t, twice[last] || twice[ids[0]], "choose another seed")
	require.Empty(t, c.post(pathTransactions, `{"page_size":5,"page_end_event_id":%q}`, last).records())
	require.Empty(t, c.post(pathTransactions, `{"page_size":5,"page_end_event_id":%q,"sort_order":"desc"}`, ids[0]).records())
}

func TestScanRefusesWhatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	c, _ := serveScan(t, grown(t, Options{Seed: 23}, 50), ScanOptions{})
	for body, says := range map[string]string{
		`{"page_size":1001}`:                     "Exceeded limit maximum (1001 > 1000).",
		`{"page_size":0}`:                        "Limit must be at least 1.",
		`{"page_size":-5}`:                       "Limit must be at least 1.",
		`{}`:                                     "page_size",
		`{"page_size":null}`:                     "page_size",
		`{"PAGE_SIZE":5}`:                        "page_size",
		`{"page_size":"5"}`:                      "malformed",
		`{"page_size":1.5}`:                      "malformed",
		`{"page_size":5,"sort_order":"up"}`:      "sort_order",
		`{"page_size":5,"sort_order":""}`:        "sort_order",
		`{"page_size":5,"page_end_event_id":7}`:  "page_end_event_id",
		`{"page_size":5`:                         "malformed",
		`[]`:                                     "malformed",
		`null`:                                   "malformed",
		``:                                       "malformed",
		`{"page_size":100000000000000000000000}`: "malformed",
	} {
		c.do(http.MethodPost, pathTransactions, body).scanError(400, says)
	}
	c.do(http.MethodGet, pathTransactions, "").scanError(404, "could not be found")
	c.do(http.MethodPost, "/v0/nonsense", "{}").scanError(404, "could not be found")
	small, _ := serveScan(t, grown(t, Options{Seed: 23}, 50), ScanOptions{PageLimit: 2})
	small.post(pathTransactions, `{"page_size":3}`).scanError(400, "Exceeded limit maximum (3 > 2).")
	require.Len(t, small.post(pathTransactions, `{"page_size":2}`).records(), 2)
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

func TestScanPaths(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 23}, 100)
	get := map[string]string{
		"/version": `{"version":"RELEASE","commit_ts":"2026-01-01T00:00:00Z"}`, "/v0/dso-party-id": `{"dso_party_id":"` + l.DSO() + `"}`,
		"/v0/backfilling/status": `{"complete":true}`, "/livez": "", "/readyz": "",
	}
	for _, release := range []string{"0.6.4", "0.10.2"} {
		c, _ := serveScan(t, l, ScanOptions{Release: release})
		for path, want := range get {
			a := c.do(http.MethodGet, path, "")
			require.Equal(t, 200, a.status)
			if want == "" {
				require.Empty(t, a.body)
				continue
			}
			require.JSONEq(t, strings.Replace(want, "RELEASE", release, 1), string(a.body))
		}
	}
	strict, _ := serveScan(t, l, ScanOptions{StrictInterface: true})
	for path := range get {
		strict.do(http.MethodGet, path, "").scanError(404, "could not be found")
	}
	for _, r := range strict.post(pathTransactions, `{"page_size":1000}`).records() {
		require.NotContains(t, r, "transaction_type")
		if transfer, ok := r["transfer"].(map[string]any); ok {
			require.NotContains(t, transfer, "transfer_kind")
		}
		if abort, ok := r["abort_transfer_instruction"].(map[string]any); ok {
			require.NotContains(t, abort, "abort_kind")
		}
	}
	require.Panics(t, func() { NewScan(l, ScanOptions{Release: "latest"}) })
	require.Panics(t, func() { NewScan(l, ScanOptions{Word: "token"}) })
	private, _ := serveScan(t, l, ScanOptions{Token: "secret"})
	private.post(pathTransactions, `{"page_size":5}`).scanError(401, "token")
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

func TestScanLagsForgetsAndReingests(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 25}, 300)
	c, s := serveScan(t, l, ScanOptions{})
	ids := s.EventIDs()
	twice := repeated(ids)
	after := func(id string) []map[string]any {
		return c.post(pathTransactions, `{"page_size":1000,"page_end_event_id":%q}`, id).records()
	}
	last := ids[len(ids)-1]
	require.False(t, twice[last], "choose another seed")

	s.SetLag(1)
	require.Equal(t, ids[:len(ids)-1], s.EventIDs())
	require.Empty(t, after(last))
	require.Len(t, s.Truth()["transactions"], len(ids)-1)
	s.SetLag(10_000)
	require.Empty(t, c.post(pathTransactions, `{"page_size":1,"sort_order":"desc"}`).records())
	s.SetLag(0)

	var gone string
	for id := range twice {
		gone = id
	}
	s.Forget(gone, last)
	want := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == gone || id == last })
	require.Equal(t, want, s.EventIDs())
	require.Empty(t, after(gone), "no longer two that share it")
	require.Empty(t, after(last))
	require.Len(t, after(want[0]), len(want)-1)

	s.Reingest(7)
	other := s.EventIDs()
	require.NotEqual(t, ids, other)
	require.ElementsMatch(t, ids, other)
	s.Reingest(0)
	require.Equal(t, ids, s.EventIDs())
}

// Another service has the same records in another order, with other offsets.
func TestScanOfAnotherOrder(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 26}, 200)
	_, one := serveScan(t, l, ScanOptions{})
	c, other := serveScan(t, l, ScanOptions{Order: 5})
	before := other.EventIDs()
	l.Grow(200)
	ids := other.EventIDs()
	require.Equal(t, before, ids[:len(before)], "what was served keeps its place")
	require.NotEqual(t, one.EventIDs(), ids)
	require.NotEqual(t, "", Diff(one.Truth(), other.Truth()))
	require.Equal(t, "", Diff(withoutOrder(one.Truth()), withoutOrder(other.Truth())))
	offsets := map[string]bool{}
	for _, r := range one.Truth()["transactions"] {
		offsets[r["offset_text"].(string)] = true
	}
	for _, r := range other.Truth()["transactions"] {
		require.False(t, offsets[r["offset_text"].(string)])
	}
	all, _ := c.walk("asc", 9, repeated(ids))
	for i, r := range all {
		require.Equal(t, ids[i], idOf(r))
	}
	require.Len(t, all, len(ids))
}

func TestScanThatIsBackfilling(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 27}, 300)
	ids := NewScan(l, ScanOptions{}).EventIDs()
	c, s := serveScan(t, l, ScanOptions{Backfilling: true})
	half := len(ids) / 2
	complete := func() any { return c.do(http.MethodGet, "/v0/backfilling/status", "").object()["complete"] }
	require.Equal(t, false, complete())
	require.Equal(t, ids[half:], s.EventIDs())
	l.Grow(100)
	fresh := NewScan(l, ScanOptions{}).EventIDs()[len(ids):]
	require.NotEmpty(t, fresh)
	s.SetBackfilling(false)
	require.Equal(t, true, complete())
	require.Equal(t, slices.Concat(ids[half:], fresh, ids[:half]), s.EventIDs())
	require.Equal(t, s.EventIDs()[3], s.Truth()["transactions"][3]["event_id"])
	s.SetBackfilling(true)
	require.Equal(t, false, complete())
	require.Len(t, s.EventIDs(), len(ids)+len(fresh))
}

func TestScanHooks(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 28}, 100)
	var fault atomic.Pointer[Fault] // set between requests; the server reads it in its own goroutine
	ids := NewScan(l, ScanOptions{}).EventIDs()
	c, _ := serveScan(t, l, ScanOptions{
		Fault: func(*http.Request) *Fault { return fault.Load() },
		Rewrite: func(e Element) []byte {
			if e.Path != pathTransactions {
				t.Error("an element of", e.Path)
			}
			switch e.EventID {
			case ids[0]:
				return []byte(`{"broken":`)
			case ids[len(ids)-1]:
				return nil
			}
			return e.Raw
		},
	})
	body := string(c.post(pathTransactions, `{"page_size":1000}`).body)
	require.True(t, strings.HasPrefix(body, `{"transactions":[{"broken":,`), "%.100s", body)
	require.NotContains(t, body, ids[len(ids)-1])
	fault.Store(&Fault{Status: 503, ContentType: "application/json", Body: `{"error":"down"}`})
	c.post(pathTransactions, `{"page_size":1}`).scanError(503, "down")
}

func TestScanReadersBesideGrowth(t *testing.T) {
	t.Parallel()
	l := NewLedger(Options{Seed: 29})
	c, s := serveScan(t, l, ScanOptions{BalanceChanges: true})
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				c.post(pathTransactions, `{"page_size":50,"sort_order":"desc"}`).records()
				s.SetLag(len(s.EventIDs()) % 3)
				s.Forget("#nothing:0")
				s.Truth()
			}
		})
	}
	for range 30 {
		l.Grow(10)
	}
	close(done)
	readers.Wait()
	s.SetLag(0)
	require.Equal(t, NewScan(l, ScanOptions{}).EventIDs(), s.EventIDs())
}

// withoutOrder returns rows of the transaction history without seq and offset_text, and raw records without the offset:
// the rest does not depend on the service. It does not change the rows.
func withoutOrder(rows map[string][]Row) map[string][]Row {
	out := map[string][]Row{}
	for relation, list := range rows {
		out[relation] = make([]Row, len(list))
		for i, row := range list {
			kept := Row{}
			for column, v := range row {
				if column != "seq" && column != "offset_text" {
					kept[column] = v
				}
			}
			if raw, ok := kept["raw"].(map[string]any); ok {
				bare := map[string]any{}
				for name, v := range raw {
					if name != "offset" {
						bare[name] = v
					}
				}
				kept["raw"] = bare
			}
			out[relation][i] = kept
		}
	}
	return out
}
