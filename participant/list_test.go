package participant

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

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
		lasting bool
	}{
		"above the end":                 {up, transactions(4, 10), "offset 10 came, above what was asked for", false},
		"at the begin":                  {up, transactions(3), "offsets must grow from update to update: 3 comes after 3", true},
		"falling, and not asked to":     {up, transactions(8, 7), "offsets must grow from update to update: 7 comes after 8", true},
		"rising, and asked to fall":     {down, transactions(7, 8), "offsets must fall from update to update: 8 comes after 7", true},
		"falling from above the end":    {down, transactions(10, 8), "offsets must not lie above 9, and one is 10", true},
		"falling to the begin":          {down, transactions(8, 3), "offset 3 came, at or below where the list was to begin", false},
		"an object":                     {up, `{}`, "is an object where a list is expected", true},
		"cut off":                       {down, transactions(8)[:50], "the answer was cut off after 50 bytes", false},
		"an element of the wrong shape": {down, `[{"update":{"Transaction":{"value":{"offset":"8"}}}}]`, "is not a whole number", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]http.HandlerFunc{pathUpdates: answer(test.body)})
			list, err := newClient(t, f, with35, anyParty).Updates(t.Context(), test.request, ListOptions{Limit: 5})
			require.ErrorContains(t, err, test.want)
			require.Zero(t, list)
			var wrong *ledger.DecodeError
			if test.lasting {
				require.ErrorAs(t, err, &wrong)
			} else {
				_ = retryable(t, err)
			}
			require.Equal(t, "limit=5", f.requests()[0].query)
		})
	}
}

func TestListsOfSnapshotsThatAreOfNoUse(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"an object": `{}`, "an entry without contract": `[{"workflowId":""}]`, "two variants": `[{"contractEntry":{"JsEmpty":{},"JsActiveContract":{}}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]http.HandlerFunc{pathSnapshot: answer(body)})
			entries, err := newClient(t, f, with35, anyParty).ActiveContracts(t.Context(), SnapshotRequest{ActiveAtOffset: 5, EventFormat: anyEvent}, ListOptions{})
			var wrong *ledger.DecodeError
			require.ErrorAs(t, err, &wrong)
			require.Nil(t, entries)
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
			var refused *RequestError
			require.ErrorAs(t, err, &refused)
			require.ErrorContains(t, err, `limit must be given, and be no larger than the server's own, where more matches than the server allows (interface.md, "Limits"): `)
			var e *Error
			require.ErrorAs(t, err, &e, "with what the server says")
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
			_, err := c.Updates(t.Context(), UpdatesRequest{UpdateFormat: anyUpdate}, ListOptions{})
			test.check(t, err)
			_, err = c.Updates(t.Context(), UpdatesRequest{Filter: anyFilter, Trees: true}, ListOptions{})
			test.check(t, err)
			_, err = c.ActiveContracts(t.Context(), SnapshotRequest{ActiveAtOffset: 5, Filter: anyFilter}, ListOptions{})
			test.check(t, err)
		})
	}
}

// A path that is gone: the server was replaced, and what it has is found out again.
func TestListPathThatIsGone(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesFlats: answer(`[]`)})
	c := newClient(t, f, with35, anyParty)
	_, err := c.Updates(t.Context(), UpdatesRequest{UpdateFormat: anyUpdate}, ListOptions{})
	_ = retryable(t, err)
	_, err = c.Updates(t.Context(), UpdatesRequest{UpdateFormat: anyUpdate}, ListOptions{})
	require.NoError(t, err)

	_, err = c.ActiveContracts(t.Context(), SnapshotRequest{EventFormat: anyEvent}, ListOptions{})
	require.ErrorIs(t, err, ledger.ErrNotOffered)
	_, err = c.Updates(t.Context(), UpdatesRequest{Filter: anyFilter, Trees: true}, ListOptions{})
	require.ErrorIs(t, err, ledger.ErrNotOffered)
}
