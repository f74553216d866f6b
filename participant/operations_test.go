package participant

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/brief"
	"ledgerindexer/internal/openapi"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// release is a server whose requests and answers are checked against the document of its release.
type release struct {
	name, document string
	opts           sandbox.ServerOptions
}

var releases = []release{
	{"3.4", "3.4", sandbox.ServerOptions{Version: "3.4"}},
	{"3.5", "3.5", sandbox.ServerOptions{Version: "3.5"}},
	{"3.6", "3.6", sandbox.ServerOptions{Version: "3.6"}},
	{"interface.md alone", "3.5", sandbox.ServerOptions{StrictInterface: true}},
}

func (r release) strict() bool { return r.opts.StrictInterface }

// eachRelease runs a test against a simulated participant of each kind.
func eachRelease(t *testing.T, history sandbox.History, scope ledger.Scope, test func(t *testing.T, r release, c *Client)) {
	t.Helper()
	for _, r := range releases {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.opts.ListLimit, r.opts.NoCheckpoints = 1000, true
			r.opts.IdleTimeout = time.Millisecond
			srv := httptest.NewServer(checked(t, openapi.Ledger(t, r.document), r, sandbox.NewServer(history, r.opts)))
			t.Cleanup(srv.Close)
			test(t, r, discovered(t, srv.URL, scope))
		})
	}
}

// checked stands before a server and checks what passes.
func checked(t *testing.T, api *openapi.Document, r release, server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var body []byte
		if req.Method == http.MethodPost {
			var err error
			if body, err = io.ReadAll(req.Body); err != nil {
				return // the client has gone
			}
			req.Body = io.NopCloser(bytes.NewReader(body))
		}
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, req)
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())

		if !api.Has(req.Method, req.URL.Path) {
			if answer.Code != http.StatusNotFound {
				t.Errorf("%s %s was answered with %d and is in no document", req.Method, req.URL.Path, answer.Code)
			}
			return
		}
		if err := api.CheckRequest(req.Method, req.URL.Path, req.URL.Query(), asDocumented(r.document, req.URL.Path, body)); err != nil {
			t.Errorf("the request breaks the document of %s: %v", r.document, err)
		}
		lookup := req.URL.Path == pathContractByID // of which interface.md leaves members out that the documents require
		unknown := answer.Code == http.StatusNotFound && strings.Contains(answer.Body.String(), `"errors"`)
		if r.strict() && (lookup || unknown) || !strings.Contains(answer.Header().Get("Content-Type"), "json") {
			return
		}
		if err := api.CheckResponse(req.Method, req.URL.Path, answer.Code, answer.Body.Bytes()); err != nil {
			t.Errorf("the answer breaks the document of %s: %v", r.document, err)
		}
	})
}

// asDocumented puts the new format into a request of the deprecated form: the document of 3.4 requires it, though it
// must be unset there.
func asDocumented(document, path string, body []byte) []byte {
	format, ok := map[string]string{pathUpdates: "updateFormat", pathUpdatesTrees: "updateFormat", pathSnapshot: "eventFormat"}[path]
	if !ok || document != "3.4" || !bytes.Contains(body, []byte(`"filter":`)) {
		return body
	}
	return append([]byte(`{"`+format+`":{},`), body[1:]...)
}

// allUpdates reads all updates of a client's scope, by offset.
func allUpdates(t *testing.T, c *Client, end int64) []ledger.Update {
	t.Helper()
	var updates []ledger.Update
	for after := ledger.Offset(0); after < ledger.Offset(end); {
		page, err := c.ReadUpdates(t.Context(), after, ledger.Offset(end))
		require.NoError(t, err)
		updates, after = append(updates, page.Updates...), page.To
	}
	require.NotEmpty(t, updates)
	return updates
}

func TestContractByIDOfEveryServer(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 21})
	l.Grow(120)
	eachRelease(t, l, anyParty, func(t *testing.T, r release, c *Client) {
		for _, u := range allUpdates(t, c, l.End()) {
			for _, created := range u.Created {
				got, raw, err := c.ContractByID(t.Context(), created.ContractID, nil)
				require.NoError(t, err)
				require.Contains(t, string(raw), created.ContractID)
				if !r.strict() {
					stakeholders := append(slices.Clone(created.Signatories), created.Observers...)
					require.ElementsMatch(t, stakeholders, got.WitnessParties)
				}
				got.WitnessParties = nil
				require.Equal(t, ledger.Contract{
					ContractID: created.ContractID, TemplateID: created.TemplateID, PackageName: created.PackageName,
					Argument: created.Argument, ContractKey: created.ContractKey, ContractKeyHash: created.ContractKeyHash,
					Signatories: created.Signatories, Observers: created.Observers, CreatedAt: created.CreatedAt,
				}, got)
			}
		}
	})
}

func TestContractByIDForQueryingParties(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 22})
	l.Grow(60)
	eachRelease(t, l, anyParty, func(t *testing.T, r release, c *Client) {
		if r.strict() {
			brief.Skip(t)
		}
		updates := allUpdates(t, c, l.End())
		at := slices.IndexFunc(updates, func(u ledger.Update) bool { return len(u.Created) > 0 })
		contract := updates[at].Created[0]
		many := make([]string, 9_999, 10_000)
		for i := range many {
			many[i] = fmt.Sprintf("party-%d::1220%064d", i, i)
		}
		_, _, err := c.ContractByID(t.Context(), contract.ContractID, many)
		require.ErrorIs(t, err, ledger.ErrNotFound, "none of them is a stakeholder")
		got, _, err := c.ContractByID(t.Context(), contract.ContractID, append(many, contract.Signatories[0]))
		require.NoError(t, err)
		if !r.strict() {
			require.Equal(t, contract.Signatories[:1], got.WitnessParties)
		}
	})
}

// Whatever an id is, it reaches the server as it is, and the answer says which of two things is true.
func TestUnknownAndStrangeIDs(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 23})
	l.Grow(20)
	eachRelease(t, l, anyParty, func(t *testing.T, r release, c *Client) {
		if !r.strict() {
			brief.Skip(t)
		}
		for _, id := range []string{
			"00" + strings.Repeat("ab", 40), "0", "quote\"s' and \\", "line\nend\x00nul\x7f\u2028", "{}", "null", "🦜",
		} {
			contract, raw, err := c.ContractByID(t.Context(), id, nil)
			requireNotThere(t, err)
			require.Zero(t, contract)
			require.Nil(t, raw)
			update, raw, err := c.UpdateOfScope(t.Context(), id)
			requireNotThere(t, err)
			require.Zero(t, update)
			require.Nil(t, raw)
		}
		huge := strings.Repeat("00", 1<<19)
		_, _, err := c.ContractByID(t.Context(), huge, nil)
		requireShort(t, err)
		_, _, err = c.UpdateOfScope(t.Context(), huge)
		requireShort(t, err)
	})
}

func requireShort(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.Less(t, len(err.Error()), 2000, "a long id is cut")
	require.NotContains(t, err.Error(), "\x00")
}

func requireNotThere(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ledger.ErrNotFound) {
		require.Contains(t, problem(t, err), "refuses the request as invalid")
	}
	requireShort(t, err)
}

func TestUpdateByIDOfEveryServer(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 24})
	l.Grow(150)
	scope := ledger.Scope{Shape: ledger.ShapeLedgerEffects, Parties: l.Parties()[:3], Reassignments: true, Topology: true, Blobs: true,
		Interfaces: sandbox.InterfaceNames()}
	eachRelease(t, l, scope, func(t *testing.T, _ release, c *Client) {
		shown := map[string]bool{}
		for i, want := range allUpdates(t, c, l.End()) {
			shown[want.ID] = true
			if brief.Run() && i%4 > 0 {
				continue
			}
			got, raw, err := c.UpdateOfScope(t.Context(), want.ID)
			require.NoError(t, err)
			want.Plain = got.Plain // says how it was decoded
			require.Equal(t, want, got, "as the stream shows it")
			require.True(t, strings.HasPrefix(string(raw), `{"update":{`))
		}
		hidden := 0
		for i := range l.Len() {
			if id := l.UpdateID(i); !shown[id] {
				hidden++
				_, _, err := c.UpdateOfScope(t.Context(), id)
				require.ErrorIs(t, err, ledger.ErrNotFound, "nothing of it is of these parties")
			}
		}
		require.Positive(t, hidden)

		topology := UpdateFormat{IncludeTopologyEvents: &TopologyFormat{
			IncludeParticipantAuthorizationEvents: &ParticipantAuthorizationFormat{}}}
		kinds := map[ledger.UpdateKind]int{}
		for i := range l.Len() {
			if got, _, err := c.UpdateByID(t.Context(), l.UpdateID(i), topology); err == nil {
				kinds[got.Kind]++
			} else {
				require.ErrorIs(t, err, ledger.ErrNotFound)
			}
		}
		require.Len(t, kinds, 1)
		require.Positive(t, kinds[ledger.KindTopology])
	})
}

// decodedList is a list of updates as it would have come in one answer.
func decodedList(t *testing.T, elements []ledger.JSON, after ledger.Offset) []ledger.Update {
	t.Helper()
	list, err := ledger.DecodeUpdateList(joined(elements), after)
	require.NoError(t, err)
	return list.Updates
}

func decodedEntries(t *testing.T, entries []ledger.JSON) []ledger.ContractEntry {
	t.Helper()
	list, err := ledger.DecodeContractEntries(joined(entries))
	require.NoError(t, err)
	return list
}

func joined(elements []ledger.JSON) []byte {
	list := []byte("[")
	for i, element := range elements {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, element...)
	}
	return append(list, ']')
}

func TestUpdatesOfEveryServer(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 25})
	l.Grow(90)
	begin, end := ledger.Offset(l.Offset(10)), ledger.Offset(l.Offset(80))
	eachRelease(t, l, anyParty, func(t *testing.T, r release, c *Client) {
		c.listLimit = 7 // a list takes several calls
		page, err := c.ReadUpdates(t.Context(), begin, end)
		require.NoError(t, err)
		for page.To < end {
			next, err := c.ReadUpdates(t.Context(), page.To, end)
			require.NoError(t, err)
			page.Updates, page.To = append(page.Updates, next.Updates...), next.To
		}
		format := &c.format.Update
		list := func(req UpdatesRequest, opts ListOptions) []ledger.Update {
			t.Helper()
			req.BeginExclusive = begin
			got, err := updatesOf(t, c, req, opts)
			require.NoError(t, err)
			return decodedList(t, got, begin)
		}
		require.Equal(t, page.Updates, list(UpdatesRequest{EndInclusive: &end, UpdateFormat: format}, ListOptions{}))
		require.Equal(t, page.Updates[:10], list(UpdatesRequest{EndInclusive: &end, UpdateFormat: format}, ListOptions{Limit: 10, StreamIdleTimeout: time.Second}))

		open := list(UpdatesRequest{UpdateFormat: format}, ListOptions{StreamIdleTimeout: time.Millisecond})
		require.Equal(t, page.Updates, open[:len(page.Updates)])
		require.Greater(t, open[len(open)-1].Offset, end)

		tail, full, err := c.TailUpdates(t.Context(), begin, 5, time.Millisecond)
		require.NoError(t, err)
		require.True(t, full)
		require.Equal(t, page.Updates[:5], tail.Updates)

		down := UpdatesRequest{BeginExclusive: begin, EndInclusive: &end, UpdateFormat: format, DescendingOrder: true}
		falling, err := updatesOf(t, c, down, ListOptions{})
		if r.name == "3.4" {
			require.ErrorIs(t, err, ledger.ErrNotOffered, "it would answer in ascending order")
		} else {
			require.NoError(t, err)
			slices.Reverse(falling)
			require.Equal(t, page.Updates, decodedList(t, falling, begin))
		}

		// The deprecated form is the format with the topology events of the filter's parties, which are all where it names
		// none (interface.md, endpoint 2). Servers of releases 3.4 and 3.5 differ from the interface here: they send no
		// topology events for it, whatever it names.
		old := list(UpdatesRequest{EndInclusive: &end, Filter: &TransactionFilter{FiltersForAnyParty: &Filters{}}, Verbose: new(false)}, ListOptions{})
		require.Equal(t, page.Updates, old)
		require.True(t, slices.ContainsFunc(old, func(u ledger.Update) bool { return u.Kind == ledger.KindTopology }))

		require.Empty(t, list(UpdatesRequest{EndInclusive: &begin, UpdateFormat: format}, ListOptions{}))
		none, err := updatesOf(t, c, UpdatesRequest{EndInclusive: new(ledger.Offset), UpdateFormat: format}, ListOptions{})
		require.NoError(t, err)
		require.Empty(t, none)

		above := ledger.Offset(l.End() + 100)
		_, err = updatesOf(t, c, UpdatesRequest{EndInclusive: &above, UpdateFormat: format}, ListOptions{})
		require.Contains(t, problem(t, err), "above the ledger end")
	})
}

func TestUpdateTreesOfEveryServer(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 26})
	l.Grow(90)
	end := ledger.Offset(l.End())
	eachRelease(t, l, anyParty, func(t *testing.T, r release, c *Client) {
		req := UpdatesRequest{EndInclusive: &end, Trees: true, Filter: &TransactionFilter{FiltersForAnyParty: &Filters{
			Cumulative: []CumulativeFilter{{}, {Interface: &InterfaceFilter{InterfaceID: sandbox.InterfaceNames()[0], IncludeInterfaceView: true}}}}}}
		listed, err := updatesOf(t, c, req, ListOptions{})
		if r.strict() || r.name == "3.6" {
			require.ErrorIs(t, err, ledger.ErrNotOffered)
			return
		}
		require.NoError(t, err)
		kinds := map[ledger.UpdateKind]int{}
		got := decodedList(t, listed, 0)
		for i, u := range got {
			kinds[u.Kind]++
			if u.Kind == ledger.KindUnknown {
				require.Equal(t, "TransactionTree", u.Unknown[0].Kind)
				require.NotEmpty(t, u.ID)
			}
			require.True(t, i == 0 || u.Offset > got[i-1].Offset)
		}
		require.Positive(t, kinds[ledger.KindUnknown])
		require.Positive(t, kinds[ledger.KindReassignment])
		require.Len(t, kinds, 2)
	})
}

func TestActiveContractsOfEveryServer(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 27})
	l.Grow(120)
	end := ledger.Offset(l.End())
	eachRelease(t, l, anyParty, func(t *testing.T, r release, c *Client) {
		page, err := c.ReadSnapshot(t.Context(), end, ledger.Token{})
		require.NoError(t, err)
		want := withoutTokens(page.Entries)
		require.Greater(t, len(want), 10)

		list := func(req SnapshotRequest, opts ListOptions) []ledger.ContractEntry {
			t.Helper()
			got, err := contractsOf(t, c, req, opts)
			require.NoError(t, err)
			return decodedEntries(t, got)
		}
		c.listLimit = 4 // a list takes several calls
		got := list(SnapshotRequest{ActiveAtOffset: end, EventFormat: &c.format.Event}, ListOptions{})
		tokens := make([]string, len(got))
		for i, e := range got {
			tokens[i] = e.Token
		}
		require.Equal(t, want, withoutTokens(got))
		old := list(SnapshotRequest{ActiveAtOffset: end, Filter: anyFilter, Verbose: new(true)}, ListOptions{Limit: 5})
		require.Equal(t, want[:5], withoutTokens(old))
		require.Empty(t, list(SnapshotRequest{EventFormat: &c.format.Event}, ListOptions{}), "nothing is active at the beginning")

		rest := SnapshotRequest{ActiveAtOffset: end, EventFormat: &c.format.Event, StreamContinuationToken: "anVuaw=="}
		if r.name == "3.4" {
			_, err = contractsOf(t, c, rest, ListOptions{})
			require.ErrorIs(t, err, ledger.ErrNotOffered, "it would begin anew")
			return
		}
		_, err = contractsOf(t, c, rest, ListOptions{})
		require.Contains(t, problem(t, err), "refuses the token")
		rest.StreamContinuationToken = tokens[6]
		require.Equal(t, want[7:], withoutTokens(list(rest, ListOptions{})))
	})
}

// withoutTokens is the entries as any path shows them.
func withoutTokens(entries []ledger.ContractEntry) []ledger.ContractEntry {
	for i := range entries {
		entries[i].Token = ""
	}
	return entries
}

// A server refuses or cuts a list that is longer than its own limit: what is listed is whole all the same, but for a
// snapshot of a server without tokens.
func TestListsBeyondTheServersLimit(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 28})
	l.Grow(60)
	end := ledger.Offset(l.End())
	for _, version := range []string{"3.4", "3.5", "3.6"} {
		for _, cuts := range []bool{false, true} {
			c := discovered(t, simulated(t, l, sandbox.ServerOptions{Version: version, ListLimit: 7, IgnoreLargeLimit: cuts, NoCheckpoints: true}).URL, anyParty)
			whole := allUpdates(t, c, l.End())
			require.True(t, len(whole) > 20)
			for _, opts := range []ListOptions{{}, {Limit: 20}} {
				updates, err := updatesOf(t, c, UpdatesRequest{EndInclusive: &end, UpdateFormat: &c.format.Update}, opts)
				require.NoError(t, err)
				require.Equal(t, whole[:cmp.Or(opts.Limit, len(whole))], decodedList(t, updates, 0))
				entries, err := contractsOf(t, c, SnapshotRequest{ActiveAtOffset: end, EventFormat: &c.format.Event}, opts)
				switch {
				case version != "3.4":
					require.NoError(t, err)
					require.True(t, len(entries) == opts.Limit || opts.Limit == 0 && len(entries) > 20)
				case cuts:
					require.NoError(t, err)
					require.True(t, len(entries) == 7)
				default:
					require.Contains(t, problem(t, err), "give --limit")
				}
			}
		}
	}
}
