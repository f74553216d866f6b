package sandbox

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inFlightAtEnd returns a ledger with an incomplete reassignment of each kind at its
// end.
func inFlightAtEnd(t *testing.T) *Ledger {
	t.Helper()
	l := grown(t, Options{Seed: 45}, 160)
	for range 4000 {
		l.Grow(1)
		v := l.view()
		var unassigned, assigned bool
		for i := range v.reassignments {
			u, a := v.reassignments[i].halves(len(v.updates))
			unassigned, assigned = unassigned || u && !a, assigned || a && !u
		}
		if unassigned && assigned {
			return l
		}
	}
	t.Fatal("no moment with both kinds of incomplete reassignments")
	return nil
}

func TestSnapshotByTokens(t *testing.T) {
	t.Parallel()
	l := inFlightAtEnd(t)
	c := serve(t, l, ServerOptions{ExtraEntries: true})
	end := l.End()
	l.Grow(1) // resuming works although reassignments are in flight and the ledger went on
	require.True(t, l.InFlight(end))
	c.post("/v2/state/active-contracts", `{"activeAtOffset":%d,"eventFormat":%s}`, end, anyParty).refused(400, "PARTICIPANT_PRUNED_DATA_ACCESSED")

	l = inFlightAtEnd(t)
	c = serve(t, l, ServerOptions{ExtraEntries: true})
	end = l.End()
	read := func(limit int, token string) []map[string]any {
		return c.post(fmt.Sprintf("/v2/state/active-contracts?limit=%d", limit), `{"activeAtOffset":%d,"streamContinuationToken":%q,"eventFormat":%s}`, end, token, anyParty).list()
	}
	var kinds []string
	seen := map[string]bool{}
	token := ""
	for {
		list := read(37, token)
		for _, e := range list {
			kind, body := variant(t, e["contractEntry"])
			if len(kinds) == 0 || kinds[len(kinds)-1] != kind {
				kinds = append(kinds, kind)
			}
			if created, ok := body["createdEvent"].(map[string]any); ok && kind == "JsActiveContract" {
				k := fmt.Sprint(created["contractId"], body["synchronizerId"])
				require.False(t, seen[k])
				seen[k] = true
			}
			token = e["streamContinuationToken"].(string)
		}
		if len(list) == 0 {
			break
		}
		l.Grow(1)
	}
	require.Equal(t, "JsActiveContract", kinds[0])
	require.Equal(t, []string{"JsEmpty", "JsFromTheFuture"}, kinds[len(kinds)-2:])
	require.Contains(t, kinds, "JsIncompleteUnassigned")
	require.Contains(t, kinds, "JsIncompleteAssigned")
	for _, kind := range kinds[1 : len(kinds)-2] {
		require.True(t, strings.HasPrefix(kind, "JsIncomplete"), "actives come before everything else")
	}
	require.Len(t, seen, len(l.Truth(Scope{}, end)["active_contracts"]))
}

func TestContinuationTokensBelongToTheirRequest(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 100)
	end := l.End()
	read := func(c *client, at int64, format, token string) answer {
		return c.post("/v2/state/active-contracts?limit=1", `{"activeAtOffset":%d,"streamContinuationToken":%q,"eventFormat":%s}`, at, token, format)
	}
	c := serve(t, l, ServerOptions{})
	token := read(c, end, anyParty, "").list()[0]["streamContinuationToken"].(string)
	require.NotEqual(t, token, read(c, end, anyParty, token).list()[0]["streamContinuationToken"])
	blobs := Scope{Blobs: true}.EventFormat()
	read(c, end, blobs, token).refused(400, "INVALID_CONTINUATION_TOKEN")
	read(c, l.Offset(50), anyParty, token).refused(400, "INVALID_CONTINUATION_TOKEN")
	read(serve(t, l, ServerOptions{Version: "3.6"}), end, anyParty, token).refused(400, "INVALID_CONTINUATION_TOKEN")
	other := grown(t, Options{Seed: 2}, 200)
	read(serve(t, other, ServerOptions{}), end, anyParty, token).refused(400, "INVALID_CONTINUATION_TOKEN")
	junk := base64.StdEncoding.EncodeToString([]byte("junk"))
	a := read(c, end, anyParty, junk)
	a.refused(400, "INVALID_FIELD")
	require.Contains(t, string(a.body), "Invalid field stream_continuation_token: ")
	text := read(c, end, anyParty, "***")
	require.Equal(t, 400, text.status)
	require.Contains(t, text.kind, "text/plain")
	l.Grow(20)
	require.NoError(t, l.Prune(end+1))
	read(c, end, anyParty, token).refused(400, "PARTICIPANT_PRUNED_DATA_ACCESSED")
}

func TestSnapshotOffsets(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 300)
	require.NoError(t, l.Prune(l.Offset(100)))
	c := serve(t, l, ServerOptions{})
	read := func(at int64) answer {
		return c.post("/v2/state/active-contracts?limit=200", `{"activeAtOffset":%d,"eventFormat":%s}`, at, anyParty)
	}
	read(l.End()+1).refused(400, "OFFSET_AFTER_LEDGER_END")
	read(-1).refused(400, "NEGATIVE_OFFSET")
	require.Equal(t, fmt.Sprint(l.Offset(100)), read(l.Offset(99)).refused(400, "PARTICIPANT_PRUNED_DATA_ACCESSED")["earliest_offset"])
	require.NotEmpty(t, read(l.End()).list())
	calm, moving := int64(0), int64(0)
	for i := 150; i < 299; i++ {
		if at := l.Offset(i); l.InFlight(at) {
			moving = at
		} else {
			calm = at
		}
	}
	require.NotEmpty(t, read(calm).list())
	require.Equal(t, fmt.Sprint(l.Offset(100)), read(moving).refused(400, "PARTICIPANT_PRUNED_DATA_ACCESSED")["earliest_offset"],
		"the other cause: the earliest offset is not above what was asked")

	fresh := serve(t, NewLedger(Options{}), ServerOptions{})
	require.Empty(t, fresh.post("/v2/state/active-contracts", `{"activeAtOffset":0,"eventFormat":%s}`, anyParty).list())
}

func TestSnapshotFormats(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 40)
	c := serve(t, l, ServerOptions{})
	read := func(rest string) answer {
		return c.post("/v2/state/active-contracts?limit=5", `{"activeAtOffset":%d,%s}`, l.End(), rest)
	}
	require.Len(t, read(`"filter":`+anyParty+`,"verbose":true`).list(), 5)
	read(`"filter":`+anyParty+`,"eventFormat":`+anyParty).refused(400, "INVALID_ARGUMENT")
	read(`"verbose":true,"eventFormat":`+anyParty).refused(400, "INVALID_ARGUMENT")
	read(`"verbose":false`).refused(400, "INVALID_ARGUMENT")
	scope := Scope{Blobs: true, Parties: l.Parties()[:1]}
	for _, e := range read(`"eventFormat":` + scope.EventFormat()).list() {
		_, body := variant(t, e["contractEntry"])
		created := body["createdEvent"].(map[string]any)
		require.NotEmpty(t, created["createdEventBlob"])
		require.Equal(t, []any{l.Parties()[0]}, created["witnessParties"])
		require.Equal(t, true, created["acsDelta"])
	}
}

func TestSnapshotPages(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 80)
	c := serve(t, l, ServerOptions{})
	page := func(rest string) answer {
		return c.post("/v2/state/active-contracts-page", `{"eventFormat":%s%s}`, anyParty, rest)
	}
	end := l.End()
	first := page(`,"maxPageSize":5`).object()
	require.EqualValues(t, end, first["activeAtOffset"])
	require.Len(t, first["activeContracts"], 5)
	require.Equal(t, "", first["activeContracts"].([]any)[0].(map[string]any)["streamContinuationToken"])
	token := first["nextPageToken"].(string)
	l.Grow(3)
	second := page(`,"maxPageSize":5,"pageToken":"` + token + `"`).object()
	require.EqualValues(t, end, second["activeAtOffset"], "the snapshot stays at the offset of its first page")
	page(fmt.Sprintf(`,"activeAtOffset":%d,"pageToken":%q`, end-1, token)).refused(400, "INVALID_ACS_PAGE_TOKEN")
	page(`,"pageToken":"anVuaw=="`).refused(400, "INVALID_FIELD")
	page(`,"maxPageSize":10001`).refused(400, "INVALID_ARGUMENT")
	require.Nil(t, page(`,"maxPageSize":10000`).object()["nextPageToken"])
	c.post("/v2/state/active-contracts-page", `{}`).refused(400, "MISSING_FIELD")
}
