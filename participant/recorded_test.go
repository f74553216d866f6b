package participant

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/internal/tools/recorded"
	"ledgerindexer/ledger"
)

// recordedScope is the scope in which most of the recorded reads were made.
var recordedScope = ledger.Scope{
	Interfaces: []string{"#splice-api-token-holding-v1:Splice.Api.Token.HoldingV1:Holding"},
	Shape:      ledger.ShapeLedgerEffects, Blobs: true, Reassignments: true, Topology: true,
}

// recordedServer gives the recorded answer to each request that was recorded. A request that was not has the test fail.
func recordedServer(t *testing.T) *fake {
	t.Helper()
	exchanges := recorded.Exchanges(t)
	decoded := func(body []byte) (value any) {
		if len(body) > 0 {
			require.NoError(t, json.Unmarshal(body, &value))
		}
		return value
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		for _, e := range exchanges {
			if e.Method != r.Method || e.Path != r.URL.RequestURI() ||
				len(e.Request) > 0 && !json.Valid([]byte(e.Request)) ||
				!reflect.DeepEqual(decoded([]byte(e.Request)), decoded(bytes.TrimSpace(body))) {
				continue
			}
			w.Header().Set("Content-Type", e.Type)
			w.WriteHeader(e.Status)
			_, _ = io.WriteString(w, e.Answer)
			return
		}
		if r.Method == http.MethodGet && len(body) > 0 {
			// Snapshots were recorded by lists, as behind a proxy that drops such a body.
			plain(http.StatusBadRequest, "Invalid value for: body (exhausted input)")(w, r)
			return
		}
		t.Errorf("%s %s was not recorded with the body %s", r.Method, r.URL.RequestURI(), body)
	}))
	t.Cleanup(server.Close)
	return &fake{Server: server}
}

// A client asks a real participant what was recorded, and understands each answer.
func TestRecordedServer(t *testing.T) {
	t.Parallel()
	f, ctx := recordedServer(t), t.Context()
	c := newClient(t, f, Server{}, recordedScope)
	const (
		end         = ledger.Offset(519)
		participant = "sandbox::12202e589de49e7e684dc5337aa0db2c9b0ac5992262484ca8536fb5ba3dd1b8aa57"
	)
	s, err := c.Discover(ctx)
	require.NoError(t, err)
	require.Equal(t, Server{Version: recorded.Release, ParticipantID: participant, UpdatesPath: pathUpdatesPage,
		TailPath: pathUpdates, SnapshotPath: pathSnapshot, LedgerEnd: true}, s)
	got, err := c.LedgerEnd(ctx)
	require.NoError(t, err)
	require.Equal(t, end, got)
	pruned, err := c.PrunedOffset(ctx)
	require.NoError(t, err)
	require.Zero(t, pruned)
	synchronizers, err := c.Synchronizers(ctx)
	require.NoError(t, err)
	require.Len(t, synchronizers, 2)

	page, err := c.ReadUpdates(ctx, 0, end)
	require.NoError(t, err)
	require.Equal(t, []any{ledger.Offset(0), end, 112}, []any{page.From, page.To, len(page.Updates)})
	tail, _, err := c.TailUpdates(ctx, end, 1, 10*time.Second)
	require.NoError(t, err)
	require.Len(t, tail.Checkpoints, 1)
	require.Len(t, tail.Checkpoints[0].Times, 2)
	last := page.Updates[len(page.Updates)-1]
	u, _, err := c.UpdateOfScope(ctx, last.ID)
	require.NoError(t, err)
	require.Equal(t, last, u)

	entries := 0
	for token, last := (ledger.Token{}), false; !last; {
		page, err := c.ReadSnapshot(ctx, end, token)
		require.NoError(t, err)
		entries, token, last = entries+len(page.Entries), page.Next, page.Last
	}
	require.Equal(t, 320, entries)

	vetted, err := c.ListVettedPackages(ctx, VettingFilter{ParticipantIDs: []string{participant}})
	require.NoError(t, err)
	require.Len(t, vetted, 2)
	for _, v := range vetted {
		require.Contains(t, synchronizers, v.SynchronizerID)
		for id := range recorded.Packages(t) {
			require.True(t, slices.ContainsFunc(v.Packages, func(p ledger.VettedPackage) bool { return p.PackageID == id }), id)
		}
	}
	contract, _, err := c.ContractByID(ctx, "00e7dd3c56474fdb19608c8788de404faeacb4dadcb8b9952199e75b3d1186829e"+
		"ca121220e0d3101d8a9a35deeb8fba3be0f19ee0f0c84e4617430ef6f67e6870d9045493", nil)
	require.NoError(t, err)
	require.Equal(t, "allvals", contract.PackageName)
	_, _, err = c.ContractByID(ctx, "00"+strings.Repeat("a", 100), nil)
	require.ErrorIs(t, err, ledger.ErrNotFound)
	_, _, err = c.UpdateOfScope(ctx, "1220"+strings.Repeat("ab", 32))
	require.ErrorIs(t, err, ledger.ErrNotFound)
}

// Of each refusal of a real participant everything is read that its answer says.
func TestRecordedRefusals(t *testing.T) {
	t.Parallel()
	objects, texts, missing := 0, 0, map[string]bool{}
	for _, e := range recorded.Exchanges(t) {
		if e.Status == 200 {
			continue
		}
		a := jsonhttp.Answer{Status: e.Status, ContentType: e.Type, Body: []byte(e.Answer)}
		got := newError("recorded", a, nil, func(s string) string { return s })
		if got.pathMissing() {
			missing[e.Method+" "+e.Path] = true
		}
		if e.Type != "application/json" {
			texts++
			require.Equal(t, e.Answer, got.Body)
			continue
		}
		objects++
		var sent struct {
			Code, Cause, CorrelationID, TraceID, RetryInfo string
			Context                                        map[string]string
			ErrorCategory, GRPCCodeValue                   int
			Errors                                         []string
		}
		require.NoError(t, json.Unmarshal([]byte(e.Answer), &sent))
		want := Error{Code: sent.Code, Cause: sent.Cause, CorrelationID: sent.CorrelationID, TraceID: sent.TraceID,
			Category: sent.ErrorCategory, GRPCCode: sent.GRPCCodeValue, Failure: got.Failure}
		if sent.Code == "" {
			want.Cause = strings.Join(sent.Errors, "; ")
		}
		if len(sent.Context) > 0 {
			want.Context = sent.Context
		}
		if sent.RetryInfo != "" {
			seconds, unit, _ := strings.Cut(sent.RetryInfo, " ")
			n, err := strconv.Atoi(seconds)
			require.NoError(t, err)
			require.Contains(t, unit, "second")
			want.RetryInfo = time.Duration(n) * time.Second
		}
		require.Equal(t, &want, got, "%s %s", e.Path, e.Request)
		require.NotEmpty(t, want.Cause)
	}
	require.Equal(t, []int{25, 5}, []int{objects, texts})
	require.Equal(t, map[string]bool{
		"POST /v2/state/active-contracts-page": true, "POST /v2/no/such/path": true, "GET /v2/updates": true,
	}, missing)
}
