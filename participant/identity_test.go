package participant

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// swapped is one address behind which one participant makes room for another.
type swapped struct {
	*fake
	first  atomic.Pointer[map[string]http.HandlerFunc] // replaced and never changed: requests under way may read it
	second atomic.Bool
}

// newSwapped serves the paths of before, afterwards those of after.
func newSwapped(t *testing.T, before, after map[string]http.HandlerFunc) *swapped {
	s := &swapped{}
	s.first.Store(&before)
	handlers := map[string]http.HandlerFunc{}
	for path := range everything() {
		handlers[path] = func(w http.ResponseWriter, r *http.Request) {
			now := *s.first.Load()
			if s.second.Load() {
				now = after
			}
			if handle := now[r.URL.Path]; handle != nil {
				handle(w, r)
				return
			}
			unknownPath(w, r)
		}
	}
	s.fake = newFake(t, handlers)
	return s
}

// turn has the first participant answer a path in another way from now on; nil takes it away.
func (s *swapped) turn(path string, handle http.HandlerFunc) {
	handlers := maps.Clone(*s.first.Load())
	handlers[path] = handle
	s.first.Store(&handlers)
}

// restart puts the second participant in the place of the first between two requests.
func (s *swapped) restart(c *Client) {
	s.second.Store(true)
	s.CloseClientConnections()
	c.Close() // the client knows of the closed connections, so the next request does not meet one of them
}

func (s *swapped) asked(path string) (n int) {
	for _, r := range s.requests() {
		if r.path == path {
			n++
		}
	}
	return n
}

// called is a participant of that id that gives the same small answers to every read.
func called(id string) map[string]http.HandlerFunc {
	handlers := everything()
	handlers[pathParticipantID] = answer(fmt.Sprintf(`{"participantId":%q}`, id))
	handlers[pathUpdatesPage] = answer(`{"updates":` + transactions(5) + `,"lowestPageOffsetExclusive":4,"highestPageOffsetInclusive":9,"nextPageToken":null}`)
	handlers[pathUpdates] = answer(transactions(5))
	handlers[pathSnapshotPage] = answer(`{"activeContracts":[],"activeAtOffset":9,"nextPageToken":null}`)
	return handlers
}

// reads are the three ways to read, each of which can be repeated.
var reads = map[string]func(context.Context, *Client) (any, error){
	"updates": func(ctx context.Context, c *Client) (any, error) { return c.ReadUpdates(ctx, 4, 9) },
	"tail": func(ctx context.Context, c *Client) (any, error) {
		page, _, err := c.TailUpdates(ctx, 4, 50, time.Second)
		return page, err
	},
	"snapshot": func(ctx context.Context, c *Client) (any, error) { return c.ReadSnapshot(ctx, 9, ledger.Token{}) },
}

func requireChanged(t *testing.T, s *swapped, err error) {
	t.Helper()
	require.Contains(t, problem(t, err), "the participant behind "+s.URL+" changed from PAR::one::12 to PAR::two::12. check --ledger-url")
}

func find(t *testing.T, f *fake) *Client {
	t.Helper()
	c := newClient(t, f, Server{}, anyParty)
	_, err := c.Discover(t.Context())
	require.NoError(t, err)
	return c
}

func TestAnotherParticipantBetweenTwoReadsIsNotRead(t *testing.T) {
	t.Parallel()
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwapped(t, called("PAR::one::12"), called("PAR::two::12"))
			c := find(t, s.fake)
			for range 3 {
				_, err := read(t.Context(), c)
				require.NoError(t, err)
			}
			s.restart(c)
			for range 2 { // for good, not once only
				page, err := read(t.Context(), c)
				requireChanged(t, s, err)
				require.Zero(t, page)
			}
			_, err := c.Discover(t.Context())
			requireChanged(t, s, err)
		})
	}
}

// What another participant has pruned, or where its ledger ends, is no reason to seed again.
func TestAnotherParticipantThatIsPrunedIsToldFromTheFirst(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]http.HandlerFunc{
		"pruned": cantonError(400, codePruned, "pruned", ""),
		"ends":   cantonError(400, "OFFSET_AFTER_LEDGER_END", "no", ""),
		"begins": answer(`{"updates":` + transactions(7) + `,"lowestPageOffsetExclusive":6,"highestPageOffsetInclusive":9,"nextPageToken":null}`),
	} {
		for _, read := range []string{"updates", "tail"} {
			other := called("PAR::two::12")
			other[pathUpdatesPage], other[pathUpdates] = refusal, refusal
			s := newSwapped(t, called("PAR::one::12"), other)
			c := find(t, s.fake)
			s.restart(c)
			if _, err := reads[read](t.Context(), c); name != "begins" || read == "updates" {
				requireChanged(t, s, err)
			}
		}
	}
}

func TestIdentityIsCheckedOnNewTLSConnections(t *testing.T) {
	t.Parallel()
	s := newSwapped(t, called("PAR::one::12"), called("PAR::two::12"))
	server, caFile := tlsFake(t, s.Config.Handler)
	s.Server = server
	c := newClient(t, s.fake, Server{}, anyParty, func(cfg *Config) { cfg.Access.CAFile = caFile })
	_, err := c.Discover(t.Context())
	require.NoError(t, err)
	_, err = c.ReadUpdates(t.Context(), 4, 9)
	require.NoError(t, err)
	s.restart(c)
	_, err = c.ReadUpdates(t.Context(), 4, 9)
	requireChanged(t, s, err)
}

// The first participant stops while it makes the caller wait, and the repetition within the call meets the second.
func TestAnotherParticipantDuringATailIsNotRead(t *testing.T) {
	t.Parallel()
	s := newSwapped(t, called("PAR::one::12"), called("PAR::two::12"))
	c := find(t, s.fake)
	s.turn(pathUpdates, func(w http.ResponseWriter, r *http.Request) {
		s.second.Store(true)
		w.Header().Set("Connection", "close")
		plain(http.StatusServiceUnavailable, "The server was not able to produce a timely response to your request.")(w, r)
	})
	page, full, err := c.TailUpdates(t.Context(), 4, 50, time.Second)
	requireChanged(t, s, err)
	require.Zero(t, page)
	require.False(t, full)
}

// As before, but the answer is cut off: the caller tries again.
func TestAnotherParticipantAfterATailThatBrokeOffIsNotRead(t *testing.T) {
	t.Parallel()
	s := newSwapped(t, called("PAR::one::12"), called("PAR::two::12"))
	c := find(t, s.fake)
	s.turn(pathUpdates, func(w http.ResponseWriter, r *http.Request) {
		s.second.Store(true)
		raw("HTTP/1.1 ")(w, r) // of nothing at all the request would be sent again
	})
	_, _, err := c.TailUpdates(t.Context(), 4, 50, time.Second)
	_ = retryable(t, err)
	_, _, err = c.TailUpdates(t.Context(), 4, 50, time.Second)
	requireChanged(t, s, err)
}

// A proxy keeps its connections while it has nothing behind it. Somebody else may be the one who is told.
func TestAnotherParticipantBehindAProxyIsNotRead(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]http.HandlerFunc{
		"500":                     plain(http.StatusInternalServerError, "nobody there"),
		"502":                     plain(http.StatusBadGateway, "nobody there"),
		"503":                     cantonError(http.StatusServiceUnavailable, "ABORTED", "shutting down", ""),
		"one connection is ended": raw("HTTP/1.1 "), // of nothing at all the request would be sent again
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwapped(t, called("PAR::one::12"), called("PAR::two::12"))
			c := find(t, s.fake)
			twoConnections(t, s, c)
			s.turn(pathLedgerEnd, away)
			_, err := c.LedgerEnd(t.Context())
			_ = retryable(t, err)
			s.second.Store(true)
			opened := s.opened.Load()
			_, err = c.ReadUpdates(t.Context(), 4, 9)
			requireChanged(t, s, err)
			require.Equal(t, opened, s.opened.Load(), "there is another reason to ask who it is")
		})
	}
}

// twoConnections has a client keep two connections, over which it is known who answers.
func twoConnections(t *testing.T, s *swapped, c *Client) {
	t.Helper()
	var both sync.WaitGroup
	both.Add(2)
	end := answer(`{"offset":9}`)
	s.turn(pathLedgerEnd, func(w http.ResponseWriter, r *http.Request) {
		both.Done()
		both.Wait()
		end(w, r)
	})
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if _, err := c.LedgerEnd(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	s.turn(pathLedgerEnd, end)
	_, err := c.ReadUpdates(t.Context(), 4, 9)
	require.NoError(t, err)
	asked := s.asked(pathParticipantID)
	_, err = c.ReadUpdates(t.Context(), 4, 9)
	require.NoError(t, err)
	require.Equal(t, asked, s.asked(pathParticipantID))
}

// What is answered with a refusal was answered by the server that was there.
func TestARefusalIsNoReasonToAskWhoItIs(t *testing.T) {
	t.Parallel()
	s := newSwapped(t, called("PAR::one::12"), nil)
	c := find(t, s.fake)
	twoConnections(t, s, c)
	changes := c.Changes()
	for status, code := range map[int]string{
		http.StatusBadRequest: "OFFSET_AFTER_LEDGER_END", http.StatusNotFound: "UPDATE_NOT_FOUND", http.StatusTooManyRequests: "PARTICIPANT_BACKPRESSURE",
	} {
		s.turn(pathUpdatesPage, cantonError(status, code, "no", ""))
		_, err := c.ReadUpdates(t.Context(), 4, 9)
		require.Error(t, err)
	}
	require.Equal(t, changes, c.Changes())
}

func TestRediscoveryMeetsAnotherParticipant(t *testing.T) {
	t.Parallel()
	s := newSwapped(t, called("PAR::one::12"), called("PAR::two::12"))
	c := find(t, s.fake)
	s.turn(pathUpdatesPage, nil)
	_, err := c.ReadUpdates(t.Context(), 4, 9)
	require.ErrorContains(t, retryable(t, err), "404 Not Found")
	s.second.Store(true) // no new connection
	_, err = c.ReadUpdates(t.Context(), 4, 9)
	requireChanged(t, s, err)
	_, _, err = c.TailUpdates(t.Context(), 4, 50, time.Second)
	requireChanged(t, s, err)
}

// An explicit Discover that finds another participant over the old connection keeps the paths, but no page passes.
func TestReadsAfterADiscoverThatMetAnotherParticipantFail(t *testing.T) {
	t.Parallel()
	s := newSwapped(t, called("PAR::one::12"), called("PAR::two::12"))
	c := find(t, s.fake)
	s.second.Store(true)
	_, err := c.Discover(t.Context())
	requireChanged(t, s, err)
	_, err = c.ReadUpdates(t.Context(), 4, 9)
	requireChanged(t, s, err)

	s.second.Store(false)
	_, err = c.ReadUpdates(t.Context(), 4, 9)
	require.NoError(t, err, "the first one is back")
}

func TestTheSameParticipantIsAskedOncePerConnection(t *testing.T) {
	t.Parallel()
	s := newSwapped(t, called("PAR::one::12"), called("PAR::one::12"))
	c := find(t, s.fake)
	all := func() {
		for range 3 {
			for name, read := range reads {
				_, err := read(t.Context(), c)
				require.NoError(t, err, name)
			}
		}
	}
	all() // what it offers was asked over connections that were made since it said who it is
	opened, asked := s.opened.Load(), s.asked(pathParticipantID)
	all()
	require.Equal(t, asked, s.asked(pathParticipantID), "nothing changed since it was found")
	s.restart(c)
	all()
	require.Equal(t, opened+1, s.opened.Load())
	require.Equal(t, asked+1, s.asked(pathParticipantID))
}

func TestManyReadersAskAtMostOncePerConnection(t *testing.T) {
	t.Parallel()
	s := newSwapped(t, called("PAR::one::12"), called("PAR::one::12"))
	c := find(t, s.fake)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				if _, err := c.ReadUpdates(t.Context(), 4, 9); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	require.LessOrEqual(t, int64(s.asked(pathParticipantID)), s.opened.Load())
}

func TestParticipantThatCannotBeKnownPasses(t *testing.T) {
	t.Parallel()
	forbidden := cantonError(http.StatusForbidden, "NA", "A security-sensitive error has been received", "")
	unknown := cantonError(http.StatusNotFound, "NOT_FOUND", "no such thing", "")
	with := func(handle http.HandlerFunc) map[string]http.HandlerFunc {
		handlers := called("")
		handlers[pathParticipantID] = handle
		return handlers
	}
	for name, test := range map[string]struct {
		before, after map[string]http.HandlerFunc
	}{
		"not before":             {with(forbidden), called("PAR::two::12")},
		"not afterwards":         {called("PAR::one::12"), with(forbidden)},
		"the path is gone":       {called("PAR::one::12"), with(unknownPath)},
		"not found":              {called("PAR::one::12"), with(unknown)},
		"never":                  {with(unknownPath), with(unknownPath)},
		"an answer without name": {called("PAR::one::12"), with(answer(`{}`))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwapped(t, test.before, test.after)
			c := find(t, s.fake)
			s.restart(c)
			for range 3 {
				_, err := c.ReadUpdates(t.Context(), 4, 9)
				require.NoError(t, err)
			}
			require.LessOrEqual(t, s.asked(pathParticipantID), 2)
		})
	}
}

func TestParticipantThatDoesNotAnswerWhoItIsIsAskedAgain(t *testing.T) {
	t.Parallel()
	busy := maps.Clone(called("PAR::one::12"))
	busy[pathParticipantID] = plain(http.StatusServiceUnavailable, "starting")
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwapped(t, called("PAR::one::12"), busy)
			c := find(t, s.fake)
			s.restart(c)
			for range 2 {
				page, err := read(t.Context(), c)
				require.Equal(t, http.StatusServiceUnavailable, retryable(t, err).Status)
				require.ErrorContains(t, err, "check the participant's identity: ")
				require.ErrorContains(t, err, "participant-id: HTTP status 503")
				require.Zero(t, page)
			}
			s.second.Store(false)
			_, err := read(t.Context(), c)
			require.NoError(t, err)
		})
	}
}

// A server that accepts and never answers keeps a Discover busy; others have their own deadlines.
func TestWaitingForADiscoveryEndsWithTheContext(t *testing.T) {
	t.Parallel()
	arrived, ended := make(chan struct{}), make(chan struct{})
	f := newFake(t, map[string]http.HandlerFunc{pathVersion: func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}})
	c := newClient(t, f, Server{}, anyParty)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		_, err := c.Discover(ctx)
		if err == nil {
			t.Error("discovered where nobody answers")
		}
	}()
	<-arrived

	over, stop := context.WithCancel(t.Context())
	stop()
	short, done := context.WithTimeout(t.Context(), time.Millisecond)
	defer done()
	_, err := c.LedgerEnd(over)
	require.ErrorIs(t, err, context.Canceled)
	_, err = c.LedgerEnd(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = c.Discover(over)
	require.ErrorIs(t, err, context.Canceled)
	select {
	case <-ended:
		t.Error("the discovery ended: nobody waited for it")
	default:
	}
	cancel()
	<-ended
}

// A user who may read some parties only may not ask for updates as any party.
func TestPeekAsksForNothingElse(t *testing.T) {
	t.Parallel()
	handlers := map[string]http.HandlerFunc{
		pathParticipantID: answer(`{"participantId":"PAR::one::12"}`),
		pathLedgerEnd:     answer(`{"offset":42}`),
	}
	for path := range everything() {
		if handlers[path] == nil {
			handlers[path] = cantonError(http.StatusForbidden, "NA", "A security-sensitive error has been received", "")
		}
	}
	f := newFake(t, handlers)
	id, end, err := newClient(t, f, Server{}, anyParty).Peek(t.Context())
	require.NoError(t, err)
	require.Equal(t, "PAR::one::12", id)
	require.Equal(t, ledger.Offset(42), end)
	require.Len(t, f.requests(), 2)
}

func TestPeekOfAServerThatDoesNotTell(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handlers map[string]http.HandlerFunc
		id       string
		end      ledger.Offset
		want     error
	}{
		"nothing": {nil, "", 0, ledger.ErrNotOffered},
		"no end":  {without(everything(), pathLedgerEnd), "PAR::p::1220", 0, ledger.ErrNotOffered},
		"no id": {map[string]http.HandlerFunc{
			pathParticipantID: cantonError(http.StatusForbidden, "NA", "", ""), pathLedgerEnd: answer(`{"offset":7}`)}, "", 7, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, end, err := newClient(t, newFake(t, test.handlers), Server{}, anyParty).Peek(t.Context())
			require.ErrorIs(t, err, test.want)
			require.Equal(t, test.id, id)
			require.Equal(t, test.end, end)
		})
	}
	away := everything()
	away[pathLedgerEnd] = plain(http.StatusBadGateway, "away")
	id, _, err := newClient(t, newFake(t, away), Server{}, anyParty).Peek(t.Context())
	require.Equal(t, http.StatusBadGateway, retryable(t, err).Status)
	require.Equal(t, "PAR::p::1220", id)
}

// Changes grow with what another server answers, and not as long as all goes well.
func TestChangesGrowWithWhatAnotherServerAnswers(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 3})
	l.Grow(20)
	server := simulated(t, l, sandbox.ServerOptions{})
	c := discovered(t, server.URL, ledger.Scope{Shape: ledger.ShapeACSDelta})
	read := func() int64 {
		_, err := c.ReadUpdates(t.Context(), 0, 5)
		require.NoError(t, err)
		return c.Changes()
	}
	before := read()
	require.Equal(t, before, read())
	server.CloseClientConnections()
	c.Close() // the client knows of the closed connections, so the next request does not meet one of them
	require.Greater(t, read(), before)
}
