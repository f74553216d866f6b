package participant

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// updatesOf and contractsOf are the elements that are listed.
func updatesOf(t *testing.T, c *Client, req UpdatesRequest, opts ListOptions) (shown []ledger.JSON, err error) {
	t.Helper()
	err = c.Updates(t.Context(), req, opts, func(element ledger.JSON) error { shown = append(shown, element); return nil })
	return shown, err
}

func contractsOf(t *testing.T, c *Client, req SnapshotRequest, opts ListOptions) (shown []ledger.JSON, err error) {
	t.Helper()
	err = c.ActiveContracts(t.Context(), req, opts, func(entry ledger.JSON) error { shown = append(shown, entry); return nil })
	return shown, err
}

func TestListsThatLie(t *testing.T) {
	t.Parallel()
	end := ledger.Offset(9)
	up := UpdatesRequest{BeginExclusive: 3, EndInclusive: &end, UpdateFormat: anyUpdate}
	down := up
	down.DescendingOrder = true
	for name, test := range map[string]struct {
		request UpdatesRequest
		body    string
		want    string
	}{
		"above the end":               {up, transactions(4, 10), "element 1: offset 10 is above the requested range"},
		"at the begin":                {up, transactions(3), "element 0: offset 3 is below the requested range"},
		"falling, and not asked to":   {up, transactions(8, 7), "element 1: offset 7 follows 8, which is not the requested order"},
		"twice":                       {up, transactions(8, 8), "element 1: offset 8 follows 8"},
		"an update at its checkpoint": {up, "[" + checkpoint(5) + "," + transaction(5) + "]", "element 1: offset 5 follows 5"},
		"rising, and asked to fall":   {down, transactions(7, 8), "element 1: offset 8 follows 7"},
		"twice, and asked to fall":    {down, transactions(7, 7), "element 1: offset 7 follows 7"},
		"falling from above the end":  {down, transactions(10, 8), "element 0: offset 10 is above the requested range"},
		"falling to the begin":        {down, transactions(8, 3), "element 1: offset 3 is below the requested range"},
		"cut off":                     {down, transactions(8)[:50], "the answer was cut off after 50 bytes"},
		"null":                        {up, `null`, "the answer is null where a list is expected"},
		"a text for an offset":        {down, `[{"update":{"Transaction":{"value":{"offset":"8"}}}}]`, "element 0: json: "},
		"no offset":                   {up, `[{"update":{"Transaction":{"value":{}}}}]`, "element 0: it has no offset"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]http.HandlerFunc{pathUpdates: answer(test.body)})
			list, err := updatesOf(t, newClient(t, f, with35, anyParty), test.request, ListOptions{Limit: 5})
			require.ErrorContains(t, retryable(t, err), test.want)
			require.Empty(t, list)
			require.Equal(t, "limit=5", f.requests()[0].query)
		})
	}
}

func TestListsOfSnapshotsThatAreOfNoUse(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"an object": `{}`, "an entry that is none": `["contractEntry"]`, "a number for a token": `[{"streamContinuationToken":7}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]http.HandlerFunc{pathSnapshot: answer(body)})
			entries, err := contractsOf(t, newClient(t, f, with35, anyParty), SnapshotRequest{ActiveAtOffset: 5, EventFormat: anyEvent}, ListOptions{})
			require.Error(t, err)
			require.Empty(t, entries)
		})
	}
}

func TestErrorsOfListCalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		check  func(t *testing.T, err error)
	}{
		"pruned": {cantonError(400, codePruned, "no", `"earliest_offset":"30"`), func(t *testing.T, err error) {
			require.Contains(t, problem(t, err), "pruned")
		}},
		"longer than the server allows": {cantonError(413, "JSON_API_MAXIMUM_LIST_ELEMENTS_NUMBER_REACHED", "no", ``), func(t *testing.T, err error) {
			require.Contains(t, problem(t, err), "raise http-list-max-elements-limit", "it says so at a limit of 1, too")
		}},
		"a request too large": {plain(413, "incoming entity size exceeded size limit (10485760 bytes)!"), func(t *testing.T, err error) {
			require.Contains(t, problem(t, err), "name fewer --parties")
		}},
		"no right": {cantonError(403, "NA", "no", ``), func(t *testing.T, err error) {
			require.Contains(t, problem(t, err), "CanReadAsAnyParty")
		}},
		"away": {plain(503, "away"), func(t *testing.T, err error) { require.Equal(t, 503, retryable(t, err).Status) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]http.HandlerFunc{pathUpdates: test.answer, pathUpdatesTrees: test.answer, pathSnapshot: test.answer})
			c := newClient(t, f, with35, anyParty)
			_, err := updatesOf(t, c, UpdatesRequest{UpdateFormat: anyUpdate}, ListOptions{})
			test.check(t, err)
			_, err = updatesOf(t, c, UpdatesRequest{Filter: anyFilter, Trees: true}, ListOptions{})
			test.check(t, err)
			_, err = contractsOf(t, c, SnapshotRequest{ActiveAtOffset: 5, Filter: anyFilter}, ListOptions{})
			test.check(t, err)
		})
	}
}

// A path that is gone: the server was replaced, and what it has is found out again.
func TestListPathThatIsGone(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesFlats: answer(`[]`)})
	c := newClient(t, f, with35, anyParty)
	_, err := updatesOf(t, c, UpdatesRequest{UpdateFormat: anyUpdate}, ListOptions{})
	_ = retryable(t, err)
	_, err = updatesOf(t, c, UpdatesRequest{UpdateFormat: anyUpdate}, ListOptions{})
	require.NoError(t, err)

	_, err = contractsOf(t, c, SnapshotRequest{EventFormat: anyEvent}, ListOptions{})
	require.ErrorIs(t, err, ledger.ErrNotOffered)
	_, err = updatesOf(t, c, UpdatesRequest{Filter: anyFilter, Trees: true}, ListOptions{})
	require.ErrorIs(t, err, ledger.ErrNotOffered)
}
