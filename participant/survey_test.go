package participant

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// probed is a client of a server that has been asked nothing.
func probed(t *testing.T, url string, scope ledger.Scope, change ...func(*Config)) *Client {
	t.Helper()
	cfg := Config{URL: url}
	for _, fn := range change {
		fn(&cfg)
	}
	c, err := New(cfg, scope)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func answering(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestSurvey(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 1})
	l.Grow(20)
	for name, c := range map[string]struct {
		opts   sandbox.ServerOptions
		absent []string
	}{
		"3.4": {sandbox.ServerOptions{Version: "3.4"}, []string{pathUpdatesPage, pathSnapshotPage}},
		"3.5": {sandbox.ServerOptions{Version: "3.5"}, nil},
		"3.6": {sandbox.ServerOptions{Version: "3.6"}, []string{pathUpdatesFlats}},
		"interface.md alone": {sandbox.ServerOptions{StrictInterface: true},
			[]string{pathUpdatesPage, pathUpdates, pathSnapshotPage, pathLedgerEnd, pathPrunedOffsets, pathVettingList}},
	} {
		for _, scope := range []ledger.Scope{anyParty, {Shape: ledger.ShapeLedgerEffects, Parties: []string{"alice"}, Blobs: true}} {
			var absent []string
			for _, o := range offers(probed(t, simulated(t, l, c.opts).URL, scope).Survey(t.Context())) {
				switch o.Presence {
				case Absent:
					absent = append(absent, o.Path)
				default:
					require.Equal(t, Present, o.Presence, "%s %s: %v", name, o.Path, o.Err)
					require.True(t, o.There())
				}
				require.NoError(t, o.Err)
			}
			require.Equal(t, c.absent, absent, name)
		}
	}
}

func offers(s Survey) []Offer {
	return []Offer{s.UpdatesPage, s.Updates, s.UpdatesFlats, s.SnapshotPage, s.Snapshot, s.LedgerEnd, s.PrunedOffsets, s.ContractByID, s.VettedPackages}
}

func TestSurveyTellsRefusalsFromTrouble(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]Presence{
		http.StatusForbidden: Refused, http.StatusUnauthorized: Unknown, http.StatusServiceUnavailable: Unknown, http.StatusTooManyRequests: Unknown,
		http.StatusNotFound: Absent, http.StatusNotImplemented: Absent, http.StatusBadRequest: Present, http.StatusRequestEntityTooLarge: Present,
	} {
		url := answering(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", status) })
		for _, o := range offers(probed(t, url, anyParty).Survey(t.Context())) {
			require.Equal(t, want, o.Presence, "%d for %s", status, o.Path)
			require.Equal(t, want == Unknown || want == Refused, o.Err != nil)
			require.Equal(t, want == Present, o.There(), "a refusal without a participant's code is a proxy's")
		}
	}
	for _, o := range offers(probed(t, "http://127.0.0.1:1", anyParty).Survey(t.Context())) {
		require.Equal(t, Unknown, o.Presence)
		require.ErrorContains(t, o.Err, "connection refused")
	}
}

// Each request waits until all have come: one after the other they would wait for ever.
func TestSurveyAsksSideBySide(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	all.Add(len(offers(Survey{})))
	url := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		all.Done()
		all.Wait()
		http.Error(w, "no", http.StatusBadRequest)
	})
	for _, o := range offers(probed(t, url, anyParty).Survey(t.Context())) {
		require.Equal(t, Present, o.Presence, o.Path)
	}
}

// A participant's refusal has a code; others come of what is in between.
func TestSurveyTellsWhoRefuses(t *testing.T) {
	t.Parallel()
	for body, proxy := range map[string]bool{`{"code": "NA", "cause": "no"}`: false, "<html>no": true} {
		url := answering(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, http.StatusForbidden) })
		for _, o := range offers(probed(t, url, anyParty).Survey(t.Context())) {
			var problem *ledger.Problem
			require.Equal(t, proxy, errors.As(o.Err, &problem), body)
			require.Equal(t, !proxy, o.There(), body)
			require.ErrorAs(t, o.Err, new(*Error))
		}
	}
}

func TestVersionAndSynchronizers(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 1})
	for name, opts := range map[string]sandbox.ServerOptions{"3.4.0": {Version: "3.4"}, "3.5.10": {Version: "3.5"}, "3.6.0": {Version: "3.6"}, "": {StrictInterface: true}} {
		c := probed(t, simulated(t, l, opts).URL, anyParty)
		version, err := c.Version(t.Context())
		require.NoError(t, err)
		require.Equal(t, name, version)
		ids, err := c.Synchronizers(t.Context())
		if opts.StrictInterface {
			require.ErrorIs(t, err, ledger.ErrNotOffered)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, l.Synchronizers(), ids)
	}
	for body, says := range map[string]string{
		`[]`:                             `the answer is not the one of this operation; it begins "[]"`,
		`{"connectedSynchronizers": {}}`: `the answer is not the one of this operation; it begins "{\"connectedSynchronizers\": {}}"`,
		`{"connectedSynchronizers": [{"synchronizerId": 7}]}`: "the answer is not the one of this operation",
		`{`: "the JSON has no end",
	} {
		url := answering(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
		_, err := probed(t, url, anyParty).Synchronizers(t.Context())
		require.ErrorContains(t, err, says, body)
		require.NotContains(t, err.Error(), "Go struct")
	}
}

func TestHosted(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	known := map[string]bool{"alice::1220": true, "a/../b?c#d&parties=e %41 ü": false}
	var many []string
	for i := range 200 {
		party := fmt.Sprintf("party-%03d::1220%s", i, strings.Repeat("ab", 32))
		many, known[party] = append(many, party), i%2 == 0
	}
	url := answering(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if len(r.RequestURI) > 2048 {
			http.Error(w, "URI too long", http.StatusRequestURITooLong)
			return
		}
		first, ok := strings.CutPrefix(r.URL.Path, "/v2/parties/")
		require.True(t, ok, r.URL.Path)
		var details []map[string]any
		for _, party := range append([]string{first}, r.URL.Query()["parties"]...) {
			if local, ok := known[party]; ok {
				details = append(details, map[string]any{"party": party, "isLocal": local})
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"partyDetails": details})
	})
	c := probed(t, url, anyParty)
	for party, local := range known {
		hosted, err := c.Hosted(t.Context(), []string{party, "nobody"})
		require.NoError(t, err)
		require.Equal(t, map[string]bool{party: local}, hosted)
	}
	requests.Store(0)
	hosted, err := c.Hosted(t.Context(), append(many, many...))
	require.NoError(t, err)
	require.Len(t, hosted, len(many))
	require.LessOrEqual(t, requests.Load(), int64(20))

	requests.Store(0)
	hosted, err = c.Hosted(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, hosted)
	require.Zero(t, requests.Load())

	_, err = c.Hosted(t.Context(), []string{strings.Repeat("x", 5000)})
	require.ErrorContains(t, err, "414 Request URI Too Long")
	l := sandbox.NewLedger(sandbox.Options{Seed: 1})
	_, err = probed(t, simulated(t, l, sandbox.ServerOptions{}).URL, anyParty).Hosted(t.Context(), []string{"alice"})
	require.ErrorIs(t, err, ledger.ErrNotOffered)
}
