package participant

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// The kinds of server that there are, with lists so short that every limit is met.
var servers = map[string]sandbox.ServerOptions{
	"3.4":                           {Version: "3.4", ListLimit: 7},
	"3.5.5":                         {Version: "3.5.5", ListLimit: 7},
	"3.5":                           {Version: "3.5", ListLimit: 7},
	"3.6":                           {Version: "3.6", ListLimit: 7},
	"3.4, cuts without a word":      {Version: "3.4", ListLimit: 7, IgnoreLargeLimit: true},
	"interface.md alone":            {StrictInterface: true, ListLimit: 7},
	"interface.md alone, and cuts":  {StrictInterface: true, ListLimit: 7, IgnoreLargeLimit: true},
	"interface.md alone, long list": {StrictInterface: true},
}

func simulated(t *testing.T, history sandbox.History, opts sandbox.ServerOptions) *httptest.Server {
	opts.NoCheckpoints = true
	srv := httptest.NewServer(sandbox.NewServer(history, opts))
	t.Cleanup(srv.Close)
	return srv
}

func discovered(t *testing.T, url string, scope ledger.Scope) *Client {
	t.Helper()
	c, err := New(Config{URL: url}, scope)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	_, err = c.Discover(t.Context())
	require.NoError(t, err)
	return c
}

// wanted names the rows that a scope has up to an offset, by their places in the ledger.
func wanted(l *sandbox.Ledger, scope sandbox.Scope, upTo int64) (list []string) {
	for relation, rows := range l.Truth(scope, upTo) {
		for _, r := range rows {
			switch relation {
			case "updates":
				list = append(list, fmt.Sprint(relation, " ", r["ledger_offset"], " ", r["update_id"]))
			case "archived_events":
				if scope.Shape == sandbox.LedgerEffects {
					continue // they are made of the exercises
				}
				fallthrough
			case "created_events", "exercised_events":
				list = append(list, fmt.Sprint(relation, " ", r["ledger_offset"], " ", r["node_id"], " ", r["contract_id"]))
			}
		}
	}
	slices.Sort(list)
	return list
}

// came names the same rows of what was read.
func came(updates []ledger.Update) (list []string) {
	for _, u := range updates {
		list = append(list, fmt.Sprint("updates ", u.Offset, " ", u.ID))
		for _, e := range u.Created {
			list = append(list, fmt.Sprint("created_events ", u.Offset, " ", e.NodeID, " ", e.ContractID))
		}
		for _, e := range u.Archived {
			list = append(list, fmt.Sprint("archived_events ", u.Offset, " ", e.NodeID, " ", e.ContractID))
		}
		for _, e := range u.Exercised {
			list = append(list, fmt.Sprint("exercised_events ", u.Offset, " ", e.NodeID, " ", e.ContractID))
		}
	}
	slices.Sort(list)
	return list
}

// requireSame compares sorted lists and shows where they part.
func requireSame(t *testing.T, want, got []string) {
	t.Helper()
	require.NotEmpty(t, want)
	for i := range min(len(want), len(got)) {
		require.Equal(t, want[i], got[i], "row %d of %d wanted and %d got", i, len(want), len(got))
	}
	require.Len(t, got, len(want))
}

func TestEveryUpdateOfEveryServerIsRead(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 1})
	l.Grow(300)
	end := ledger.Offset(l.End())
	want := wanted(l, sandbox.Scope{}, l.End())
	for name, opts := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := discovered(t, simulated(t, l, opts).URL, anyParty)
			var updates []ledger.Update
			reads := 0
			for _, window := range [][2]ledger.Offset{{0, end / 3}, {end / 3, end/3 + 1}, {end/3 + 1, end - 5}, {end - 5, end}} {
				for after := window[0]; after < window[1]; {
					page, err := c.ReadUpdates(t.Context(), after, window[1])
					require.NoError(t, err)
					require.Equal(t, after, page.From)
					require.Greater(t, page.To, after)
					require.LessOrEqual(t, page.To, window[1])
					updates = append(updates, page.Updates...)
					after = page.To
					reads++
				}
			}
			require.True(t, slices.IsSortedFunc(updates, func(a, b ledger.Update) int { return int(a.Offset - b.Offset) }))
			requireSame(t, want, came(updates))
			require.Less(t, reads, 300/7*4, "no more reads than the lists are short")
		})
	}
}

func TestTailOfEveryServerMissesNothing(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 2})
	l.Grow(60)
	want := wanted(l, sandbox.Scope{}, l.End())
	for name, opts := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := discovered(t, simulated(t, l, opts).URL, anyParty)
			var updates []ledger.Update
			var after ledger.Offset
			for full := true; full; {
				page, more, err := c.TailUpdates(t.Context(), after, 20, 5*time.Millisecond)
				require.NoError(t, err)
				require.Equal(t, after, page.From)
				updates = append(updates, page.Updates...)
				after, full = page.To, more
			}
			requireSame(t, want, came(updates))
		})
	}
}

func TestScopeIsWhatTheServerShows(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 3})
	l.Grow(200)
	srv := simulated(t, l, sandbox.ServerOptions{})
	parties, templates, interfaces := l.Parties()[:2], sandbox.TemplateNames()[:2], sandbox.InterfaceNames()[:1]
	for name, test := range map[string]struct {
		ours   ledger.Scope
		theirs sandbox.Scope
	}{
		"effects": {
			ledger.Scope{Shape: ledger.ShapeLedgerEffects, Reassignments: true, Topology: true},
			sandbox.Scope{Shape: sandbox.LedgerEffects},
		},
		"parties": {
			ledger.Scope{Shape: ledger.ShapeACSDelta, Parties: parties, Reassignments: true},
			sandbox.Scope{Parties: parties, NoTopology: true},
		},
		"templates and interfaces": {
			ledger.Scope{Shape: ledger.ShapeACSDelta, Templates: templates, Interfaces: interfaces, Topology: true},
			sandbox.Scope{Templates: templates, Interfaces: interfaces, NoReassignments: true},
		},
		"interfaces": {
			ledger.Scope{Shape: ledger.ShapeACSDelta, Interfaces: interfaces, Reassignments: true, Topology: true},
			sandbox.Scope{Interfaces: interfaces},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.JSONEq(t, test.theirs.UpdateFormat(), string(mustFormats(t, test.ours).Update))
			c := discovered(t, srv.URL, test.ours)
			page, err := c.ReadUpdates(t.Context(), 0, ledger.Offset(l.End()))
			require.NoError(t, err)
			require.Equal(t, ledger.Offset(l.End()), page.To)
			requireSame(t, wanted(l, test.theirs, l.End()), came(page.Updates))
		})
	}
}

func mustFormats(t *testing.T, scope ledger.Scope) *formats {
	f, err := formatsOf(scope)
	require.NoError(t, err)
	return f
}

func TestSnapshotOfEveryServer(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 4})
	l.Grow(300)
	var want []string
	for _, r := range l.Truth(sandbox.Scope{}, l.End())["active_contracts"] {
		want = append(want, fmt.Sprint(r["contract_id"], " ", r["synchronizer_id"]))
	}
	slices.Sort(want)
	require.Greater(t, len(want), 20)
	for name, opts := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.HasPrefix(opts.Version, "3.4") {
				opts.ListLimit = 1000 // without tokens it must fit, and more updates must too
			}
			opts.ExtraEntries = true
			c := discovered(t, simulated(t, l, opts).URL, anyParty)
			var got []string
			var token ledger.Token
			for last := false; !last; {
				page, err := c.ReadSnapshot(t.Context(), ledger.Offset(l.End()), token)
				require.NoError(t, err)
				for _, e := range page.Entries {
					if e.Active != nil {
						got = append(got, fmt.Sprint(e.Active.Created.ContractID, " ", e.Active.SynchronizerID))
					}
				}
				token, last = page.Next, page.Last
			}
			slices.Sort(got)
			require.Equal(t, want, got)
		})
	}
}

func TestSnapshotRefusalsOfTheSimulatedParticipant(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 5})
	l.Grow(300)
	var inFlight, quiet int64
	for i := 50; i < 250; i++ {
		if l.InFlight(l.Offset(i)) {
			inFlight = l.Offset(i)
		} else {
			quiet = l.Offset(i)
		}
	}
	require.NotZero(t, inFlight)
	for _, version := range []string{"3.4", "3.5"} {
		c := discovered(t, simulated(t, l, sandbox.ServerOptions{Version: version, ListLimit: 1000}).URL, anyParty)
		_, err := c.ReadSnapshot(t.Context(), ledger.Offset(inFlight), ledger.Token{})
		require.Contains(t, problem(t, err), fmt.Sprintf("reassignments are in flight at offset %d", inFlight))
		_, err = c.ReadSnapshot(t.Context(), ledger.Offset(l.End()+10), ledger.Token{})
		require.Contains(t, problem(t, err), "is above the ledger end")
	}

	small := discovered(t, simulated(t, l, sandbox.ServerOptions{Version: "3.4", ListLimit: 7}).URL, anyParty)
	_, err := small.ReadSnapshot(t.Context(), ledger.Offset(l.End()), ledger.Token{})
	require.Contains(t, problem(t, err), "http-list-max-elements-limit")

	// A token is good for one offset and one scope.
	for _, opts := range []sandbox.ServerOptions{{}, {StrictInterface: true}} {
		srv := simulated(t, l, opts)
		c := discovered(t, srv.URL, anyParty)
		c.snapshotPage, c.snapshotList = jsonhttp.NewSize(2), jsonhttp.NewSize(2)
		page, err := c.ReadSnapshot(t.Context(), ledger.Offset(quiet), ledger.Token{})
		require.NoError(t, err)
		_, err = c.ReadSnapshot(t.Context(), ledger.Offset(l.End()), page.Next)
		require.Contains(t, problem(t, err), "the server refuses the token")
		narrow := discovered(t, srv.URL, ledger.Scope{Shape: ledger.ShapeACSDelta, Parties: l.Parties()[:1]})
		_, err = narrow.ReadSnapshot(t.Context(), ledger.Offset(quiet), page.Next)
		require.Contains(t, problem(t, err), "--restart")
		for _, junk := range []string{"anVuaw==", "not Base64!"} {
			_, err = c.ReadSnapshot(t.Context(), ledger.Offset(quiet), ledger.Token{Kind: page.Next.Kind, Value: junk})
			require.Contains(t, problem(t, err), "--restart")
		}
	}
}

func TestPrunedSimulatedParticipant(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 6})
	l.Grow(100)
	pruned := l.Offset(50)
	require.NoError(t, l.Prune(pruned))
	for _, opts := range servers {
		c := discovered(t, simulated(t, l, opts).URL, anyParty)
		for _, after := range []ledger.Offset{0, 3} {
			_, err := c.ReadUpdates(t.Context(), after, ledger.Offset(l.End()))
			require.Contains(t, problem(t, err), fmt.Sprintf("pruned up to offset %d, and updates after offset %d are needed", pruned, after))
			_, _, err = c.TailUpdates(t.Context(), after, 1, time.Second)
			require.Contains(t, problem(t, err), fmt.Sprintf("pruned up to offset %d", pruned))
		}
		_, err := c.ReadSnapshot(t.Context(), 3, ledger.Token{})
		require.Contains(t, problem(t, err), fmt.Sprintf("pruned up to offset %d, above the snapshot's offset 3", pruned))
		_, err = c.ReadUpdates(t.Context(), ledger.Offset(l.End()+100), ledger.Offset(l.End()+200))
		require.Contains(t, problem(t, err), "ledger ends below an offset that it had before")
	}
	c := discovered(t, simulated(t, l, sandbox.ServerOptions{}).URL, anyParty)
	got, err := c.PrunedOffset(t.Context())
	require.NoError(t, err)
	require.Equal(t, ledger.Offset(pruned), got)
}
