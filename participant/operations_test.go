package participant

import (
	"bytes"
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

	"ledgerindexer/internal/tools/openapi"
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
		if err := api.CheckRequest(req.Method, req.URL.Path, req.URL.Query(), body); err != nil {
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
		for _, want := range allUpdates(t, c, l.End()) {
			shown[want.ID] = true
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
	})
}
