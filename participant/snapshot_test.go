package participant

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

func entry(id, token string) string {
	return fmt.Sprintf(`{"workflowId":"","contractEntry":{"JsActiveContract":{"createdEvent":{"offset":3,"nodeId":0,"contractId":%q,
		"templateId":"p:M:E","packageName":"n","createArgument":{},"witnessParties":[],"signatories":["a"],"observers":[],
		"createdAt":"2025-01-01T00:00:00Z","interfaceViews":[],"acsDelta":true},"synchronizerId":"s::1","reassignmentCounter":0}},
		"streamContinuationToken":%q}`, id, token)
}

// entriesFrom serves a snapshot of n entries as the list path does, the token of each entry being its number.
func entriesFrom(n, setting int, tokens bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ StreamContinuationToken string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			panic(err)
		}
		start := 0
		if asked.StreamContinuationToken != "" {
			start, _ = strconv.Atoi(asked.StreamContinuationToken)
		}
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil {
			limit = setting + 1
		}
		if limit > setting && n-start > setting {
			cantonError(http.StatusRequestEntityTooLarge, "JSON_API_MAXIMUM_LIST_ELEMENTS_NUMBER_REACHED", "too many", "")(w, r)
			return
		}
		var list []string
		for i := start; i < min(n, start+limit); i++ {
			token := ""
			if tokens {
				token = strconv.Itoa(i + 1)
			}
			list = append(list, entry(fmt.Sprint("c", i), token))
		}
		answer("["+strings.Join(list, ",")+"]")(w, r)
	}
}

func readSnapshot(t *testing.T, c *Client) (ids []string, reads int) {
	var token ledger.Token
	for {
		page, err := c.ReadSnapshot(t.Context(), 9, token)
		require.NoError(t, err)
		reads++
		for _, e := range page.Entries {
			ids = append(ids, e.Active.Created.ContractID)
		}
		if page.Last {
			require.Equal(t, ledger.Token{}, page.Next)
			return ids, reads
		}
		require.NotEqual(t, token, page.Next)
		token = page.Next
	}
}

// However short an answer is, only an empty one is the end of the list.
func TestSnapshotListIsCompleteAtAnEmptyAnswer(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathSnapshot: entriesFrom(5, 200, true)})
	c := limited(newClient(t, f, with34, anyParty), 2)
	ids, reads := readSnapshot(t, c)
	require.Equal(t, []string{"c0", "c1", "c2", "c3", "c4"}, ids)
	require.Equal(t, 4, reads)

	first := f.requests()[0]
	require.Equal(t, "limit=2", first.query)
	require.EqualValues(t, 9, first.body["activeAtOffset"])
	require.NotContains(t, first.body, "streamContinuationToken")
	require.Contains(t, first.body, "eventFormat")
	require.Equal(t, "2", f.requests()[1].body["streamContinuationToken"])
}

func TestSnapshotWithoutTokensThatIsTooLongNamesTheCures(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathSnapshot: entriesFrom(5, 4, false)})
	_, err := limited(newClient(t, f, with34, anyParty), 4).ReadSnapshot(t.Context(), 9, ledger.Token{})
	text := problem(t, err)
	for _, cure := range []string{"http-list-max-elements-limit", "--templates (it becomes the scope of the database)", "--start genesis"} {
		require.Contains(t, text, cure)
	}
	require.NotContains(t, text, "split", "one database has one scope")
	require.Len(t, f.requests(), 2, "trying again with less is of no use")
}

func TestServerWithoutSnapshotsNamesTheCures(t *testing.T) {
	t.Parallel()
	c := newClient(t, newFake(t, without(everything(), pathSnapshot, pathSnapshotPage)), Server{}, anyParty)
	_, readErr := c.ReadSnapshot(t.Context(), 9, ledger.Token{})
	_, offsetErr := c.SnapshotOffset(t.Context(), 9)
	for _, err := range []error{readErr, offsetErr} {
		require.ErrorIs(t, err, ledger.ErrNotOffered)
		text := problem(t, err)
		for _, part := range []string{"has no snapshots", "--ledger-url", "rights", "`indexer run --start genesis`"} {
			require.Contains(t, text, part)
		}
	}
}

func TestNothingIsActiveAtTheBeginning(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathSnapshot: answer(`[]`)})
	page, err := newClient(t, f, with34, anyParty).ReadSnapshot(t.Context(), 0, ledger.Token{})
	require.NoError(t, err)
	require.Equal(t, ledger.SnapshotPage{Last: true}, page)
	require.Empty(t, f.requests(), "at offset 0 there is nothing to ask for")
}

func TestTokenIsReadWithTheEndpointItIsOf(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathSnapshot: entriesFrom(5, 200, true)})
	page, err := newClient(t, f, with35, anyParty).ReadSnapshot(t.Context(), 9, ledger.Token{Kind: ledger.TokenList, Value: "3"})
	require.NoError(t, err)
	require.Len(t, page.Entries, 2)

	_, err = newClient(t, f, with34, anyParty).ReadSnapshot(t.Context(), 9, ledger.Token{Kind: ledger.TokenPage, Value: "x"})
	require.Contains(t, problem(t, err), "begun with /v2/state/active-contracts-page, which the server does not have. begin the snapshot again with --restart")
}

func TestSnapshotPathThatGoesAwayIsFoundOutAgain(t *testing.T) {
	t.Parallel()
	handlers := without(everything(), pathSnapshotPage)
	handlers[pathSnapshot] = entriesFrom(1, 200, true)
	c := newClient(t, newFake(t, handlers), with35, anyParty)
	_, err := c.ReadSnapshot(t.Context(), 9, ledger.Token{})
	_ = retryable(t, err)
	ids, _ := readSnapshot(t, c)
	require.Equal(t, []string{"c0"}, ids)
}

func TestSnapshotThatLeadsNowhereIsNotTaken(t *testing.T) {
	t.Parallel()
	same := func(body string) http.HandlerFunc { return answer(body) }
	for name, test := range map[string]struct {
		server Server
		token  ledger.Token
		body   string
		want   string
	}{
		"list leads back": {with34, ledger.Token{Kind: ledger.TokenList, Value: "x"}, `[` + entry("c", "x") + `]`, "leads back to itself"},
		"page leads back": {with35, ledger.Token{Kind: ledger.TokenPage, Value: "x"},
			`{"activeContracts":[],"activeAtOffset":9,"nextPageToken":"x"}`, "leads back to itself"},
		"another offset": {with35, ledger.Token{}, `{"activeContracts":[],"activeAtOffset":8,"nextPageToken":null}`, "snapshot at offset 8"},
		"tokens stop":    {with34, ledger.Token{Kind: ledger.TokenList, Value: "x"}, `[` + entry("c", "") + `]`, "gives none any more"},
		"no list":        {with35, ledger.Token{}, `{"activeAtOffset":9}`, "activeContracts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]http.HandlerFunc{pathSnapshot: same(test.body), pathSnapshotPage: same(test.body)})
			_, err := newClient(t, f, test.server, anyParty).ReadSnapshot(t.Context(), 9, test.token)
			require.ErrorContains(t, err, "read the snapshot at offset 9")
			require.ErrorContains(t, err, test.want)
		})
	}
}
