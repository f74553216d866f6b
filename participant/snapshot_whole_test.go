package participant

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// cutting serves a snapshot of n entries as a server without tokens does that ignores a limit above its own.
func cutting(n, setting int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil {
			limit = setting
		}
		var list []string
		for i := range min(n, limit, setting) {
			list = append(list, entry(fmt.Sprint("c", i), ""))
		}
		answer("["+strings.Join(list, ",")+"]")(w, r)
	}
}

// updatesUpTo are that many offsets of updates, from 1 on.
func updatesUpTo(n int) []int64 {
	offsets := make([]int64, n)
	for i := range offsets {
		offsets[i] = int64(i + 1)
	}
	return offsets
}

// withoutTokens34 is a server without continuation tokens that has so many entries and updates, of which it was pruned
// of some.
func withoutTokens34(entries http.HandlerFunc, updates, pruned, setting int, ignores bool) map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		pathSnapshot:      entries,
		pathUpdates:       listed(updatesUpTo(updates), func() int { return setting }, ignores),
		pathLedgerEnd:     answer(fmt.Sprintf(`{"offset":%d}`, updates)),
		pathPrunedOffsets: answer(fmt.Sprintf(`{"participantPrunedUpToInclusive":%d}`, pruned)),
	}
}

// A snapshot comes whole from a server without tokens, or not at all: whatever the server's setting is, and whatever it
// does with what is longer. It is not refused where it is short enough, and there are more updates than entries.
func TestNoServerSettingLosesContracts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		entries := rapid.IntRange(0, 12).Draw(rt, "entries")
		updates := rapid.IntRange(1, 20).Draw(rt, "updates")
		pruned := rapid.IntRange(0, updates).Draw(rt, "pruned")
		setting := rapid.IntRange(1, 20).Draw(rt, "setting")
		ignores := rapid.Bool().Draw(rt, "ignores")
		serve := entriesFrom(entries, setting, false)
		if ignores {
			serve = cutting(entries, setting)
		}
		f := newFake(t, withoutTokens34(serve, updates, pruned, setting, ignores))
		defer f.Close()
		c, err := New(Config{URL: f.URL}, anyParty)
		require.NoError(rt, err)
		limited(c, rapid.IntRange(1, 20).Draw(rt, "limit"))
		defer c.Close()
		found := with34
		c.found.Store(&found)

		page, err := c.ReadSnapshot(t.Context(), 9, ledger.Token{})
		if err == nil {
			require.Len(rt, page.Entries, entries)
			require.True(rt, page.Last)
			return
		}
		var p *ledger.Problem
		require.ErrorAs(rt, err, &p)
		require.False(rt, entries == 0 || entries < setting && entries < updates-pruned, "it is proven that it was not cut: %v", err)
	})
}

// What proves a snapshot is one list of more updates than it has entries, of whatever the parties see.
func TestASnapshotIsProvenByALongerList(t *testing.T) {
	t.Parallel()
	f := newFake(t, withoutTokens34(cutting(5, 8), 20, 3, 8, true))
	scope := ledger.Scope{Shape: ledger.ShapeLedgerEffects, Parties: []string{"alice::1"}, Templates: []string{"#p:M:T"}, Blobs: true}
	c := newClient(t, f, with34, scope)
	ids, reads := readSnapshot(t, c)
	require.Len(t, ids, 5)
	require.Equal(t, 1, reads)
	requests := f.requests()
	last := requests[len(requests)-1]
	require.Equal(t, pathUpdates, last.path)
	require.Equal(t, "limit=6", last.query)
	require.EqualValues(t, 3, last.body["beginExclusive"], "what was pruned can't be asked for")
	require.EqualValues(t, 20, last.body["endInclusive"], "up to the ledger's end")
	format, err := json.Marshal(last.body["updateFormat"])
	require.NoError(t, err)
	require.Contains(t, string(format), "alice::1")
	require.Contains(t, string(format), "WildcardFilter")
	require.Contains(t, string(format), "TRANSACTION_SHAPE_ACS_DELTA")
	require.NotContains(t, string(format), "#p:M:T")

	ids, _ = readSnapshot(t, c)
	require.Len(t, ids, 5)
	require.Len(t, f.requests(), len(requests)+2, "what is proven stays so, and takes no further list of updates")
}

func TestASnapshotThatMayBeCutNamesTheCures(t *testing.T) {
	t.Parallel()
	for name, handlers := range map[string]map[string]http.HandlerFunc{
		"the server cuts":              withoutTokens34(cutting(12, 8), 20, 0, 8, true),
		"there are too few updates":    withoutTokens34(cutting(8, 200), 8, 0, 200, true),
		"too many were pruned":         withoutTokens34(cutting(8, 200), 20, 15, 200, true),
		"all were pruned":              withoutTokens34(cutting(8, 200), 20, 20, 200, true),
		"as long as what it refuses":   withoutTokens34(entriesFrom(8, 8, false), 20, 0, 8, false),
		"the list is too much for it":  replaced(withoutTokens34(cutting(8, 200), 20, 0, 200, true), plain(503, "not able to produce a timely response")),
		"pruned, and it does not tell": replaced(withoutTokens34(cutting(8, 200), 20, 0, 200, true), cantonError(400, codePruned, "gone", "")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newClient(t, newFake(t, handlers), with34, anyParty).ReadSnapshot(t.Context(), 9, ledger.Token{})
			text := problem(t, err)
			for _, part := range []string{
				"sent 8 entries of the snapshot at offset 9 and may have cut it there", "http-list-max-elements-limit", "there are more than 8", "3.5 or later",
				"--templates (it becomes the scope of the database)", "--start genesis",
			} {
				require.Contains(t, text, part)
			}
		})
	}
}

// replaced answers requests for updates otherwise.
func replaced(handlers map[string]http.HandlerFunc, updates http.HandlerFunc) map[string]http.HandlerFunc {
	handlers[pathUpdates] = updates
	return handlers
}

// A server that is away while it is asked for what proves a snapshot is asked again.
func TestTheProofOfASnapshotMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	for _, path := range []string{pathUpdates, pathLedgerEnd, pathPrunedOffsets} {
		handlers := withoutTokens34(cutting(5, 8), 20, 0, 8, true)
		handlers[path] = plain(503, "away")
		_, err := newClient(t, newFake(t, handlers), with34, anyParty).ReadSnapshot(t.Context(), 9, ledger.Token{})
		require.Equal(t, 503, retryable(t, err).Status)
		require.ErrorContains(t, err, "check that the server serves lists of more than 5 entries")
	}
}

// Where connections are made anew another server, with another limit, may answer over each: nothing is proven then.
func TestASnapshotIsProvenOverTheConnectionsItCameOver(t *testing.T) {
	t.Parallel()
	var requests, closing atomic.Int64
	handlers := withoutTokens34(cutting(5, 8), 20, 0, 8, true)
	for path, handle := range handlers {
		handlers[path] = func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) <= closing.Load() {
				w.Header().Set("Connection", "close")
			}
			handle(w, r)
		}
	}
	f := newFake(t, handlers)
	const once, again = 1 + 4, 4 // whether there are tokens; the snapshot, the ledger's end, what is pruned and the updates
	closing.Store(once)
	ids, _ := readSnapshot(t, newClient(t, f, with34, anyParty))
	require.Len(t, ids, 5)
	require.EqualValues(t, once+again+1, requests.Load(), "the second time over a new connection, and then over the one that brought the updates")

	requests.Store(0)
	closing.Store(1 << 30)
	_, err := newClient(t, f, with34, anyParty).ReadSnapshot(t.Context(), 9, ledger.Token{})
	require.Contains(t, problem(t, err), "may have cut it")
	require.ErrorContains(t, err, "connections are replaced all the time")
	require.EqualValues(t, once+2*again, requests.Load(), "it ends")
}

// A simulated server without tokens that cuts a snapshot says nothing, and one that does not cut it is believed.
func TestSnapshotOfASimulatedServerThatCuts(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 4})
	l.Grow(300)
	want := len(l.Truth(sandbox.Scope{}, l.End())["active_contracts"])
	require.Less(t, want, 300)
	for limit, whole := range map[int]bool{7: false, want - 1: false, want: false, want + 1: true, 1000: true} {
		c := discovered(t, simulated(t, l, sandbox.ServerOptions{Version: "3.4", ListLimit: limit, IgnoreLargeLimit: true}).URL, anyParty)
		page, err := c.ReadSnapshot(t.Context(), ledger.Offset(l.End()), ledger.Token{})
		if whole {
			require.NoError(t, err)
			require.Len(t, page.Entries, want)
			continue
		}
		require.Contains(t, problem(t, err), "may have cut it")
	}
}
