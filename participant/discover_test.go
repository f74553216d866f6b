package participant

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// discoverable are servers, by what they have, and what is used of them.
var discoverable = map[string]struct {
	lacks []string
	want  Server
}{
	"3.5": {nil, Server{"3.5.1", "PAR::p::1220", pathUpdatesPage, pathUpdates, pathSnapshotPage, true}},
	"3.6": {[]string{pathUpdatesFlats}, Server{"3.5.1", "PAR::p::1220", pathUpdatesPage, pathUpdates, pathSnapshotPage, true}},
	"3.4": {[]string{pathUpdatesPage, pathSnapshotPage}, Server{"3.5.1", "PAR::p::1220", pathUpdatesFlats, pathUpdates, pathSnapshot, true}},
	"neither pages nor flats": {[]string{pathUpdatesPage, pathSnapshotPage, pathUpdatesFlats},
		Server{"3.5.1", "PAR::p::1220", pathUpdates, pathUpdates, pathSnapshot, true}},
	"interface.md alone": {[]string{pathVersion, pathParticipantID, pathLedgerEnd, pathPrunedOffsets, pathUpdates, pathUpdatesPage, pathSnapshotPage},
		Server{UpdatesPath: pathUpdatesFlats, TailPath: pathUpdatesFlats, SnapshotPath: pathSnapshot}},
	"no snapshots": {[]string{pathSnapshot, pathSnapshotPage}, Server{"3.5.1", "PAR::p::1220", pathUpdatesPage, pathUpdates, "", true}},
}

func TestDiscoverUsesTheBestPathsOfEachVersion(t *testing.T) {
	t.Parallel()
	for name, test := range discoverable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			c := newClient(t, newFake(t, without(everything(), test.lacks...)), Server{}, anyParty, func(cfg *Config) {
				cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			})
			for range 2 {
				got, err := c.Discover(t.Context())
				require.NoError(t, err)
				require.Equal(t, test.want, got)
			}
			require.Equal(t, 1, strings.Count(log.String(), "participant discovered"), log.String())
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
		}, anyParty, true, "is not JSON, and none came before that is"},
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

// A server that is upgraded while we run loses flats. The read that notices fails, the next one continues.
func TestPathThatGoesAwayIsReplacedWithTheNextRead(t *testing.T) {
	t.Parallel()
	handlers := without(everything(), pathUpdatesFlats)
	handlers[pathUpdatesPage] = answer(`{"updates":[],"lowestPageOffsetExclusive":4,"highestPageOffsetInclusive":9,"nextPageToken":null}`)
	f := newFake(t, handlers)
	c := newClient(t, f, with34, anyParty)

	_, err := c.ReadUpdates(t.Context(), 4, 9)
	_ = retryable(t, err)
	require.ErrorContains(t, err, "discovers its paths again")

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

// refusing answers 403 to the paths that the server does not have, as some gateways do, and to more paths while these
// are refused too.
func refusing(handlers map[string]http.HandlerFunc, body string, more func(path string) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		handle, ok := handlers[r.URL.Path]
		if !ok || more(r.URL.Path) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, body)
			return
		}
		handle(w, r)
	}
}

// What a gateway refuses that was never there is absent: each server is read as without the gateway.
func TestAGatewayThatRefusesUnknownPaths(t *testing.T) {
	t.Parallel()
	for name, test := range discoverable {
		handlers := without(everything(), test.lacks...)
		for _, body := range []string{`{"message":"Missing Authentication Token"}`, "<html>Forbidden</html>", ""} {
			t.Run(name+" "+body, func(t *testing.T) {
				t.Parallel()
				c := probed(t, answering(t, refusing(handlers, body, func(string) bool { return false })), anyParty)
				for range 2 {
					got, err := c.Discover(t.Context())
					require.NoError(t, err)
					require.Equal(t, test.want, got)
				}
				_, told := handlers[pathPrunedOffsets]
				_, err := c.PrunedOffset(t.Context())
				require.Equal(t, !told, errors.Is(err, ledger.ErrNotOffered), "%v", err)
				_, err = c.ListVettedPackages(t.Context(), VettingFilter{})
				require.ErrorIs(t, err, ledger.ErrNotOffered)
				_, _, err = c.ContractByID(t.Context(), "00", nil)
				require.ErrorIs(t, err, ledger.ErrNotOffered)
				for _, o := range offers(c.Survey(t.Context())) {
					_, has := handlers[o.Path]
					require.Equal(t, has, o.There(), o.Path)
				}
			})
		}
	}
}

// Where all paths of updates are refused, the refusal is what is wrong.
func TestAProxyThatRefusesAllUpdates(t *testing.T) {
	t.Parallel()
	refused := func(path string) bool { return strings.HasPrefix(path, pathUpdates) }
	c := probed(t, answering(t, refusing(everything(), "<html>Forbidden</html>", refused)), anyParty)
	_, err := c.Discover(t.Context())
	require.Contains(t, problem(t, err), "the server refuses access, and not as a participant does: a proxy before it may be what refuses. "+
		"see what stands between here and --ledger-url")
}

// Once the participant was found, what a proxy refuses passes, and nothing that was there counts as absent for it.
func TestARefusalOnTheWayPasses(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		pathPrunedOffsets, pathParticipantID, pathLedgerEnd, pathUpdatesPage, pathUpdates, pathSnapshotPage,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			var refused atomic.Bool
			c := probed(t, answering(t, refusing(everything(), "<html>too many requests from your address</html>", func(asked string) bool {
				return refused.Load() && asked == path
			})), anyParty)
			before, err := c.Discover(t.Context())
			require.NoError(t, err)
			_, err = c.PrunedOffset(t.Context())
			require.NoError(t, err)
			refused.Store(true)
			calls := map[string]func() error{
				pathParticipantID: func() error { _, err := c.Discover(t.Context()); return err },
				pathPrunedOffsets: func() error { _, err := c.PrunedOffset(t.Context()); return err },
				pathLedgerEnd:     func() error { _, err := c.LedgerEnd(t.Context()); return err },
				pathUpdatesPage:   func() error { _, err := c.ReadUpdates(t.Context(), 0, 1); return err },
				pathUpdates:       func() error { _, _, err := c.TailUpdates(t.Context(), 0, 1, time.Second); return err },
				pathSnapshotPage:  func() error { _, err := c.ReadSnapshot(t.Context(), 1, ledger.Token{}); return err },
			}
			for _, call := range []string{path, pathParticipantID, path} {
				if path == pathPrunedOffsets {
					call = path // discovery can do without
				}
				err := calls[call]()
				require.Equal(t, http.StatusForbidden, retryable(t, err).Status)
				require.NotErrorIs(t, err, ledger.ErrNotOffered)
				require.ErrorContains(t, err, "a proxy before it may be what refuses; it let requests through before, so it is asked again")
				require.ErrorContains(t, err, "too many requests from your address")
			}
			refused.Store(false)
			after, err := c.Discover(t.Context())
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}
