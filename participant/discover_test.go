package participant

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// everything a 3.5 server has, answering the harmless requests as a fresh one does.
func everything() map[string]http.HandlerFunc {
	aboveEnd := cantonError(http.StatusBadRequest, codeAfterLedgerEnd, "End offset (1) is after ledger end (0)", "")
	return map[string]http.HandlerFunc{
		pathVersion:       answer(`{"version":"3.5.1","features":{}}`),
		pathParticipantID: answer(`{"participantId":"PAR::p::1220"}`),
		pathLedgerEnd:     answer(`{"offset":0}`),
		pathPrunedOffsets: answer(`{"participantPrunedUpToInclusive":3,"allDivulgedContractsPrunedUpToInclusive":0}`),
		pathUpdates:       aboveEnd,
		pathUpdatesFlats:  aboveEnd,
		pathUpdatesPage:   aboveEnd,
		pathSnapshot:      answer(`[]`),
		pathSnapshotPage:  answer(`{"activeContracts":[],"activeAtOffset":0,"nextPageToken":null}`),
	}
}

func without(handlers map[string]http.HandlerFunc, paths ...string) map[string]http.HandlerFunc {
	for _, p := range paths {
		delete(handlers, p)
	}
	return handlers
}

func TestDiscoverUsesTheBestPathsOfEachVersion(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handlers map[string]http.HandlerFunc
		want     Server
	}{
		"3.5": {everything(), Server{"3.5.1", "PAR::p::1220", pathUpdatesPage, pathUpdates, pathSnapshotPage, true}},
		"3.6": {without(everything(), pathUpdatesFlats),
			Server{"3.5.1", "PAR::p::1220", pathUpdatesPage, pathUpdates, pathSnapshotPage, true}},
		"3.4": {without(everything(), pathUpdatesPage, pathSnapshotPage),
			Server{"3.5.1", "PAR::p::1220", pathUpdatesFlats, pathUpdates, pathSnapshot, true}},
		"neither pages nor flats": {without(everything(), pathUpdatesPage, pathSnapshotPage, pathUpdatesFlats),
			Server{"3.5.1", "PAR::p::1220", pathUpdates, pathUpdates, pathSnapshot, true}},
		"interface.md alone": {
			without(everything(), pathVersion, pathParticipantID, pathLedgerEnd, pathPrunedOffsets, pathUpdates, pathUpdatesPage, pathSnapshotPage),
			Server{UpdatesPath: pathUpdatesFlats, TailPath: pathUpdatesFlats, SnapshotPath: pathSnapshot}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			c := newClient(t, newFake(t, test.handlers), Server{}, anyParty, func(cfg *Config) {
				cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			})
			for range 2 {
				got, err := c.Discover(t.Context())
				require.NoError(t, err)
				require.Equal(t, test.want, got)
			}
			require.Equal(t, 1, strings.Count(log.String(), "participant found"), log.String())
			require.Contains(t, log.String(), "updates_path="+test.want.UpdatesPath)
		})
	}
}

func TestDiscoverTellsAMissingPathFromAMissingThing(t *testing.T) {
	t.Parallel()
	handlers := everything()
	handlers[pathUpdatesPage] = cantonError(http.StatusNotFound, "PACKAGE_NAMES_NOT_FOUND", "unknown package", "")
	handlers[pathSnapshotPage] = plain(http.StatusMethodNotAllowed, "HTTP method not allowed, supported methods: GET")
	handlers[pathParticipantID] = cantonError(http.StatusForbidden, "NA", "A security-sensitive error has been received", "")
	got, err := newClient(t, newFake(t, handlers), Server{}, anyParty).Discover(t.Context())
	require.NoError(t, err)
	require.Equal(t, Server{"3.5.1", "", pathUpdatesPage, pathUpdates, pathSnapshot, true}, got)
}

func TestDiscoverAsksForNextToNothing(t *testing.T) {
	t.Parallel()
	f := newFake(t, everything())
	_, err := newClient(t, f, Server{}, anyParty).Discover(t.Context())
	require.NoError(t, err)
	for _, r := range f.requests() {
		switch r.path {
		case pathUpdates, pathUpdatesFlats:
			require.Equal(t, "limit=1", r.query)
			require.EqualValues(t, 1, r.body["endInclusive"])
		case pathUpdatesPage:
			require.EqualValues(t, 1, r.body["maxPageSize"])
			require.EqualValues(t, 1, r.body["endOffsetInclusive"])
		case pathSnapshot, pathSnapshotPage:
			require.EqualValues(t, 0, r.body["activeAtOffset"])
		default:
			require.Equal(t, http.MethodGet, r.method)
		}
	}
}

func TestDiscoverErrors(t *testing.T) {
	t.Parallel()
	forbidden := cantonError(http.StatusForbidden, "NA", "A security-sensitive error has been received", "")
	for name, test := range map[string]struct {
		path    string // "" for a server that has nothing
		handle  http.HandlerFunc
		scope   ledger.Scope
		problem bool
		want    string
	}{
		"not a participant": {scope: anyParty, problem: true, want: "there is no update stream at http://"},
		"may not read as any": {pathUpdatesPage, forbidden, anyParty, true,
			"does not let the token's user read as any party. grant the user CanReadAsAnyParty"},
		"wants a token": {pathLedgerEnd, cantonError(http.StatusUnauthorized, "NA", "", ""), anyParty, true, "--ledger-token-file"},
		"away":          {pathUpdatesPage, plain(http.StatusServiceUnavailable, "starting"), anyParty, false, "503"},
		"a web page": {pathVersion, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>hello")
		}, anyParty, false, "text/html"},
		"3.3 and ledger effects": {pathVersion, answer(`{"version":"3.3.2"}`), ledger.Scope{Shape: ledger.ShapeLedgerEffects}, true,
			"version 3.3.2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handlers := everything()
			if test.path == "" {
				clear(handlers)
			} else {
				handlers[test.path] = test.handle
			}
			_, err := newClient(t, newFake(t, handlers), Server{}, test.scope).Discover(t.Context())
			if test.problem {
				require.Contains(t, problem(t, err), test.want)
				return
			}
			require.Contains(t, retryable(t, err).Error(), test.want)
		})
	}
}

// A server that is upgraded while we run loses flats. The read that notices fails, the next one goes on.
func TestPathThatGoesAwayIsReplacedWithTheNextRead(t *testing.T) {
	t.Parallel()
	handlers := without(everything(), pathUpdatesFlats)
	handlers[pathUpdatesPage] = answer(`{"updates":[],"lowestPageOffsetExclusive":4,"highestPageOffsetInclusive":9,"nextPageToken":null}`)
	f := newFake(t, handlers)
	c := newClient(t, f, with34, anyParty)

	_, err := c.ReadUpdates(t.Context(), 4, 9)
	_ = retryable(t, err)
	require.ErrorContains(t, err, "found out again with the next read")

	page, err := c.ReadUpdates(t.Context(), 4, 9)
	require.NoError(t, err)
	require.Equal(t, ledger.Offset(9), page.To)
}

// A proxy says 404 to everything while the server behind it restarts: that must not end the daemon.
func TestServerThatWasThereMayBeAwayForAWhile(t *testing.T) {
	t.Parallel()
	handlers := everything()
	f := newFake(t, handlers)
	c := newClient(t, f, Server{}, anyParty)
	_, err := c.Discover(t.Context())
	require.NoError(t, err)

	f.away.Store(true)
	for range 3 {
		_, err = c.ReadUpdates(t.Context(), 0, 9)
		require.Error(t, err)
		var p *ledger.Problem
		require.NotErrorAs(t, err, &p)
	}
}

func TestLedgerEndAndPrunedOffset(t *testing.T) {
	t.Parallel()
	handlers := everything()
	handlers[pathLedgerEnd] = answer(`{"offset":42,"synchronizerTimes":[]}`)
	c := newClient(t, newFake(t, handlers), with35, anyParty)
	end, err := c.LedgerEnd(t.Context())
	require.NoError(t, err)
	require.Equal(t, ledger.Offset(42), end)
	pruned, err := c.PrunedOffset(t.Context())
	require.NoError(t, err)
	require.Equal(t, ledger.Offset(3), pruned)

	strict := newClient(t, newFake(t, nil), Server{UpdatesPath: pathUpdatesFlats, TailPath: pathUpdatesFlats}, anyParty)
	_, err = strict.LedgerEnd(t.Context())
	require.ErrorIs(t, err, ledger.ErrNotOffered)
	_, err = strict.PrunedOffset(t.Context())
	require.ErrorIs(t, err, ledger.ErrNotOffered)

	for _, body := range []string{`{}`, `{"offset":null}`, `{"offset":-1}`, `{"offset":"x"}`, `{"offset":1,"offset":2}`, `{"offset":`} {
		broken := newClient(t, newFake(t, map[string]http.HandlerFunc{pathLedgerEnd: answer(body)}), with35, anyParty)
		_, err := broken.LedgerEnd(t.Context())
		require.ErrorContains(t, err, "ledger-end", body)
	}
}
