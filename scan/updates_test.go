package scan

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/openapi"
	"ledgerindexer/ledger"
)

// network is a service with updates at certain positions, in order.
type network struct {
	mu     sync.Mutex
	party  string
	limit  int // the largest page_size
	behind int // the newest updates that it does not have yet
	at     []ledger.Offset

	status  int           // what it answers to everything but who it is; 0: as it should
	hangs   bool          // it answers nothing for a while
	lie     ledger.Offset // of an update whose content it changes
	strange bool          // its updates are none
	hash    string        // the external transaction hash of its updates; empty: it does not know them
	moves   time.Duration // that all its updates, which are looked up by their ids, are later
}

func networkOffset(t *testing.T, migrationID int64, text string) ledger.Offset {
	t.Helper()
	at, err := ledger.ParseTime(text)
	require.NoError(t, err)
	offset, err := ledger.NetworkOffset(migrationID, at)
	require.NoError(t, err)
	return offset
}

// every returns n positions that are so far apart.
func every(from ledger.Offset, n int, apart time.Duration) (all []ledger.Offset) {
	for i := range n {
		all = append(all, from+ledger.Offset(i)*ledger.Offset(apart.Microseconds()))
	}
	return all
}

// item is an update as the service sends it.
func (n *network) item(offset ledger.Offset) string {
	switch {
	case offset == n.lie:
		return strings.Replace(item(offset), `"workflow_id":""`, `"workflow_id":"forged"`, 1)
	case n.strange:
		return `{"update_id":7}`
	case n.hash != "":
		return strings.Replace(item(offset), `"workflow_id":""`, `"workflow_id":"","external_transaction_hash":"`+n.hash+`"`, 1)
	case n.moves != 0:
		id := fmt.Sprintf(`"u%d"`, offset)
		moved := offset + ledger.Offset(n.moves.Microseconds())
		return strings.Replace(item(moved), fmt.Sprintf(`"u%d"`, moved), id, 1)
	}
	return item(offset)
}

func item(offset ledger.Offset) string {
	migrationID, at := offset.NetworkPosition()
	return fmt.Sprintf(`{"update_id":"u%d","migration_id":%d,"workflow_id":"","record_time":%q,"synchronizer_id":"s","effective_at":%[3]q,
		"root_event_ids":[],"events_by_id":{}}`, offset, migrationID, at.Format("2006-01-02T15:04:05.000000Z"))
}

func (n *network) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	hangs := n.hangs
	n.mu.Unlock()
	if hangs && r.URL.Path != pathNetwork {
		<-r.Context().Done()
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	served := n.at[:len(n.at)-n.behind]
	id, single := strings.CutPrefix(r.URL.Path, pathUpdates+"/u")
	switch {
	case r.URL.Path == pathNetwork:
		answer(200, fmt.Sprintf(`{"dso_party_id":%q}`, n.party))(w, r)
	case n.status != 0:
		answer(n.status, `{"error":"not now"}`)(w, r)
	case single:
		i := slices.IndexFunc(served, func(o ledger.Offset) bool { return fmt.Sprint(int64(o)) == id })
		if i < 0 {
			answer(404, fmt.Sprintf(`{"error":"Transaction with id u%s not found"}`, id))(w, r)
			return
		}
		answer(200, n.item(served[i]))(w, r)
	default:
		n.page(w, r, served)
	}
}

func (n *network) page(w http.ResponseWriter, r *http.Request, served []ledger.Offset) {
	var asked struct {
		After *updatesAfter `json:"after"`
		Size  int           `json:"page_size"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		panic(err)
	}
	if n.limit > 0 && asked.Size > n.limit {
		answer(400, fmt.Sprintf(`{"error":"Exceeded limit maximum (%d > %d)."}`, asked.Size, n.limit))(w, r)
		return
	}
	var items []string
	for _, offset := range served {
		migrationID, at := offset.NetworkPosition()
		if a := asked.After; a != nil {
			after, err := time.Parse(time.RFC3339Nano, a.RecordTime)
			if err != nil {
				panic(err)
			}
			if migrationID < a.MigrationID || migrationID == a.MigrationID && !at.After(after) {
				continue
			}
		}
		if items = append(items, n.item(offset)); len(items) == asked.Size {
			break
		}
	}
	answer(200, `{"transactions":[`+strings.Join(items, ",")+`]}`)(w, r)
}

// networkOf starts a service, and returns a reader of it.
func networkOf(t *testing.T, at ...ledger.Offset) (*Updates, *network, *service) {
	t.Helper()
	n := &network{party: "dso::1", at: at}
	s := serve(t, n.ServeHTTP)
	u := NewUpdates(client(t, Config{URL: s.URL}))
	return u, n, s
}

// pages are the requests for updates since the last time.
func (s *service) pages() (pages []string) {
	for _, asked := range s.requests() {
		if rest, ok := strings.CutPrefix(asked, "POST "+pathUpdates+" "); ok {
			pages = append(pages, rest)
		}
	}
	return pages
}

// A page is complete up to its last update, or up to the bound where the service shows that it has come that far.
func TestWhatAPageOfUpdatesCovers(t *testing.T) {
	t.Parallel()
	first := networkOffset(t, 1, "2026-01-01T00:00:00Z")
	u, n, s := networkOf(t, every(first, 10, time.Second)...)
	asked := func() (pages []string) {
		pages = s.pages()
		for _, release := range []string{"0.6", "0.7"} {
			for _, body := range pages {
				require.NoError(t, openapi.Scan(t, release).CheckRequest("POST", pathUpdates, nil, []byte(body)))
			}
		}
		return pages
	}
	second := ledger.Offset(time.Second.Microseconds())

	page, err := u.ReadUpdates(t.Context(), 0, first+5*second/2)
	require.NoError(t, err)
	require.Equal(t, first+5*second/2, page.To)
	require.Len(t, page.Updates, 3)
	require.Equal(t, []string{`{"page_size":1000}`}, asked())

	page, err = u.ReadUpdates(t.Context(), first, first+9*second)
	require.NoError(t, err)
	require.Equal(t, first+9*second, page.To, "there is an update at the bound")
	require.Len(t, page.Updates, 9)
	require.Equal(t, []string{`{"after":{"after_migration_id":1,"after_record_time":"2026-01-01T00:00:00.000000Z"},"page_size":1000}`}, asked())

	n.set(func() { n.limit = 4 })
	page, err = u.ReadUpdates(t.Context(), first, first+9*second)
	require.NoError(t, err)
	require.Equal(t, first+3*second, page.To, "the service sends fewer")
	require.Len(t, page.Updates, 3)
	require.Len(t, s.pages(), 9, "the size is halved until the service takes it: 500, 250, 125, 62, 31, 15, 7, 3")

	n.set(func() { n.behind = 5 })
	page, err = u.ReadUpdates(t.Context(), first+2*second, first+9*second)
	require.NoError(t, err)
	require.Equal(t, first+4*second, page.To, "what lies behind may be missing")
	_, err = u.ReadUpdates(t.Context(), first+4*second, first+9*second)
	require.ErrorContains(t, err, "the service sends no update up to migration 1, 2026-01-01T00:00:09Z, where one was known: it lags behind")
	_ = retryable(t, err)
	_, err = u.ReadUpdates(t.Context(), 5, 5)
	require.ErrorContains(t, err, "there is nothing between")
}

// What lies between two migrations is read over without requests, once it is known.
func TestAGapIsAskedForOnce(t *testing.T) {
	t.Parallel()
	last, next := networkOffset(t, 1, "2026-01-01T00:00:00Z"), networkOffset(t, 2, "2025-12-31T00:00:00Z")
	u, n, s := networkOf(t, last, next)
	_, err := u.LedgerEnd(t.Context()) // opens the connection
	require.NoError(t, err)
	s.requests()
	for after := last; after < next-1; {
		page, err := u.ReadUpdates(t.Context(), after, min(next-1, after+1e12))
		require.NoError(t, err)
		require.Empty(t, page.Updates)
		after = page.To
	}
	require.Len(t, s.pages(), 1)
	page, err := u.ReadUpdates(t.Context(), next-1, next)
	require.NoError(t, err)
	require.Len(t, page.Updates, 1)

	// With another server, what was known does not count any more.
	require.Len(t, s.pages(), 1)
	n.set(func() { n.at = []ledger.Offset{last, last + 10, next} })
	u.client.otherMayAnswer()
	page, err = u.ReadUpdates(t.Context(), last, last+20)
	require.NoError(t, err)
	require.Len(t, page.Updates, 1)
}

// The newest update is found wherever it is, in few requests; as long as nothing comes, in one.
func TestTheNewestUpdateIsSearchedFor(t *testing.T) {
	t.Parallel()
	long := every(networkOffset(t, 3, "2024-06-24T21:08:34Z"), 1000, 12*time.Hour)
	always := func(at ...ledger.Offset) func(time.Time) []ledger.Offset {
		return func(time.Time) []ledger.Offset { return at }
	}
	recently := func(ago time.Duration, n int, step time.Duration) func(time.Time) []ledger.Offset {
		return func(now time.Time) []ledger.Offset {
			return slices.Concat(long[:500], every(networkOffset(t, 3, now.Add(-ago).Format(time.RFC3339)), n, step))
		}
	}
	for name, shown := range map[string]func(now time.Time) []ledger.Offset{
		"none":         always(),
		"one":          always(networkOffset(t, 0, "2024-06-24T21:08:34Z")),
		"long ago":     always(long...),
		"now":          recently(2*time.Second, 3, time.Second),
		"busy":         recently(200*time.Second, 2000, 100*time.Millisecond),
		"very busy":    recently(100*time.Second, 5000, 20*time.Millisecond),
		"clock behind": recently(-1000*time.Hour, 1000, time.Hour),
		"migrations": always(slices.Concat(every(networkOffset(t, 0, "2024-07-01T00:00:00Z"), 500, time.Hour),
			every(networkOffset(t, 2, "2024-06-30T00:00:00Z"), 700, time.Hour), long)...),
		"new migration": func(now time.Time) []ledger.Offset {
			return slices.Concat(long, every(networkOffset(t, 4, now.Add(-time.Hour).Format(time.RFC3339)), 1, time.Hour))
		},
		"short of lasts": always(networkOffset(t, 2047, "2112-09-17T23:53:47.370494Z"), networkOffset(t, 2047, "2112-09-17T23:53:47.370495Z")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now().UTC()
			at := shown(now)
			u, n, s := networkOf(t, at...)
			want := ledger.Offset(0)
			if len(at) > 0 {
				want = at[len(at)-1]
			}
			end, err := u.LedgerEnd(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, end)
			most := 50
			if strings.Contains(name, "busy") && time.Since(now) < 3*time.Second { // later a full page may end with the newest, which takes more
				most = 15
			}
			require.Less(t, len(s.pages()), most)
			end, err = u.LedgerEnd(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, end)
			require.Len(t, s.pages(), 1)
			if len(at) == 0 || name == "short of lasts" {
				return
			}
			n.set(func() { n.at = append(slices.Clone(n.at), want+7) })
			end, err = u.LedgerEnd(t.Context())
			require.NoError(t, err)
			require.Equal(t, want+7, end)
			require.Len(t, s.pages(), 1)
		})
	}
}

// A node that has not come as far as another one does not make the ledger shorter.
func TestANodeThatLagsBehindIsWaitedFor(t *testing.T) {
	t.Parallel()
	first := networkOffset(t, 1, "2026-01-01T00:00:00Z")
	u, n, _ := networkOf(t, every(first, 3, time.Second)...)
	n.set(func() { n.behind = 1 })
	u.SetMinimum(first + 2_000_000)
	_, err := u.LedgerEnd(t.Context())
	require.ErrorContains(t, err, "look for the newest update: updates-end: the service sends no update up to migration 1, 2026-01-01T00:00:02Z, where one was known: it lags behind")
	_ = retryable(t, err)
	page, full, err := u.TailUpdates(t.Context(), first+1_000_000, 1, time.Millisecond)
	require.NoError(t, err)
	require.False(t, full)
	require.Equal(t, page.From, page.To)
	n.set(func() { n.behind = 0 })
	end, err := u.LedgerEnd(t.Context())
	require.NoError(t, err)
	require.Equal(t, first+2_000_000, end)
}

// A quiet service is asked at most 60 times a minute, whoever waits for how long. One that has news is asked several
// times a second, so that the next are seen within a quarter of one, and less and less when none come.
func TestAQuietNetworkIsAskedSeldom(t *testing.T) {
	t.Parallel()
	first := networkOffset(t, 1, "2026-01-01T00:00:00Z")
	n := &network{party: "dso::1", at: []ledger.Offset{first}}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // time goes on only while no connection is open
		n.ServeHTTP(w, r)
	})
	synctest.Test(t, func(t *testing.T) {
		u := NewUpdates(client(t, Config{URL: s.URL}))
		quiet := func(forTime time.Duration) (perMinute float64) {
			s.pages()
			began := time.Now()
			for time.Since(began) < forTime {
				for _, idle := range []time.Duration{10 * time.Second, 10 * time.Millisecond, time.Minute} {
					page, full, err := u.TailUpdates(t.Context(), first, 1, idle)
					require.NoError(t, err)
					require.False(t, full)
					require.Equal(t, ledger.Page{From: first, To: first}, page)
				}
			}
			return float64(len(s.pages())) / time.Since(began).Minutes()
		}
		require.LessOrEqual(t, quiet(3*time.Minute), 56.0)
		for i := range 100 { // an update after some time is seen soon
			gap := rand.N(2 * time.Second)
			next := first + ledger.Offset(time.Second.Microseconds())
			served := time.Now().Add(gap)
			time.AfterFunc(gap, func() { n.set(func() { n.at = append(n.at, next) }) })
			page, _, err := u.TailUpdates(t.Context(), first, 1, 10*time.Second)
			require.NoError(t, err)
			require.Equal(t, next, page.To)
			if i > 0 { // the first comes after a long quiet
				require.LessOrEqual(t, time.Since(served), busyEvery)
			}
			first = next
		}
		require.Less(t, len(s.pages()), 100*15, "fewer than seven a second")
		require.Less(t, quiet(time.Minute), 250.0)
		require.LessOrEqual(t, quiet(3*time.Minute), 56.0)
		n.set(func() { n.at = append(n.at, every(first+1, 300, time.Second)...) })
		page, full, err := u.TailUpdates(t.Context(), first, 1, 10*time.Second)
		require.NoError(t, err)
		require.True(t, full)
		require.Len(t, page.Updates, newsPage)
		require.Equal(t, page.Updates[newsPage-1].Offset, page.To)
	})
}

func TestAnUpdateOfTheNetworkIsLookedUp(t *testing.T) {
	t.Parallel()
	first := networkOffset(t, 1, "2026-01-01T00:00:00Z")
	u, _, s := networkOf(t, first)
	id := fmt.Sprintf("u%d", first)
	update, raw, err := u.UpdateOfScope(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, first, update.Offset)
	require.JSONEq(t, item(first), string(raw))
	require.Contains(t, s.requests(), "GET /v2/updates/"+id)
	_, _, err = u.UpdateOfScope(t.Context(), "u1")
	require.ErrorIs(t, err, ledger.ErrNotFound)
	_, err = u.PrunedOffset(t.Context())
	require.ErrorIs(t, err, ledger.ErrNotOffered)
	elsewhere := NewUpdates(client(t, Config{URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == pathNetwork {
			answer(200, `{"dso_party_id":"d"}`)(w, r)
			return
		}
		answer(200, item(first))(w, r)
	}).URL}))
	_, _, err = elsewhere.UpdateOfScope(t.Context(), "u1")
	require.ErrorContains(t, err, "the answer is of another update")
	_ = retryable(t, err)
}

// A service of another network is refused, also where it comes in the middle.
func TestAnotherNetworkIsRefused(t *testing.T) {
	t.Parallel()
	first := networkOffset(t, 1, "2026-01-01T00:00:00Z")
	u, n, _ := networkOf(t, first)
	_, err := u.ReadUpdates(t.Context(), 0, first) // opens the connection
	require.NoError(t, err)
	party, err := u.Party(t.Context())
	require.NoError(t, err)
	require.Equal(t, "dso::1", party)
	n.set(func() { n.party = "dso::2" })
	_, err = u.ReadUpdates(t.Context(), 0, first)
	require.NoError(t, err, "nothing says that another server answers")
	u.client.otherMayAnswer()
	for range 2 {
		_, err = u.ReadUpdates(t.Context(), 0, first)
		var refused *ledger.Problem
		require.ErrorAs(t, err, &refused)
		require.Contains(t, refused.What, "changed from the one that dso::1 operates to the one that dso::2 operates")
	}
}

// A proxy that finds no service behind it for a while is no other network.
func TestAServiceThatIsAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	first := networkOffset(t, 1, "2026-01-01T00:00:00Z")
	n := &network{party: "dso::1", at: []ledger.Offset{first}}
	var away atomic.Bool
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			http.NotFound(w, r)
			return
		}
		n.ServeHTTP(w, r)
	})
	u := NewUpdates(client(t, Config{URL: s.URL}))
	_, err := u.LedgerEnd(t.Context())
	require.NoError(t, err)
	away.Store(true)
	for range 2 { // the first is refused the page, the next the party
		_, err = u.LedgerEnd(t.Context())
		_ = retryable(t, err)
	}
	away.Store(false)
	end, err := u.LedgerEnd(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, end)
}

// What each answer to a request for updates means.
func TestWhatAnswersToUpdatesMean(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		check  func(t *testing.T, err error)
	}{
		"backfilling": {answer(503, `{"error":"This scan instance has not yet replicated all data. This process can take an extended period of time to complete."}`),
			func(t *testing.T, err error) {
				require.ErrorContains(t, err, "has not yet replicated")
				_ = retryable(t, err)
			}},
		"too many": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			http.Error(w, "Rate limit exceeded", http.StatusTooManyRequests)
		}, func(t *testing.T, err error) { require.Equal(t, 7*time.Second, retryable(t, err).Wait()) }},
		"failure":  {answer(500, `{"error":"oops"}`), func(t *testing.T, err error) { _ = retryable(t, err) }},
		"cut off":  {raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"transac"), func(t *testing.T, err error) { _ = retryable(t, err) }},
		"invalid":  {answer(400, `{"error":"Invalid timestamp: x"}`), func(t *testing.T, err error) { require.Contains(t, problem(t, err), "as invalid. report what it says") }},
		"no path":  {answer(404, `{"error":"The requested resource could not be found."}`), func(t *testing.T, err error) { require.ErrorIs(t, err, ledger.ErrNotOffered) }},
		"nonsense": {answer(200, `{"transactions":[{}]}`), func(t *testing.T, err error) { require.ErrorContains(t, err, "element 0, update_id: is required") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == pathNetwork {
					answer(200, `{"dso_party_id":"d"}`)(w, r)
					return
				}
				c.answer(w, r)
			})
			u := NewUpdates(client(t, Config{URL: s.URL}))
			_, err := u.ReadUpdates(t.Context(), 0, 5)
			c.check(t, err)
			_, _, err = u.TailUpdates(t.Context(), 0, 1, time.Second)
			c.check(t, err)
			_, err = u.LedgerEnd(t.Context())
			c.check(t, err)
		})
	}
	silent := NewUpdates(client(t, Config{URL: serve(t, answer(404, `{"error":"no"}`)).URL}))
	_, err := silent.Party(t.Context())
	require.Contains(t, problem(t, err), "the Scan service does not say of which network it is")
}

// An answer is kept below the caller's limit by asking for fewer updates.
func TestPagesOfUpdatesFitALimit(t *testing.T) {
	t.Parallel()
	first := networkOffset(t, 1, "2026-01-01T00:00:00Z")
	u, _, s := networkOf(t, every(first, 1000, time.Second)...)
	end := first + 999_000_000
	page, err := u.ReadUpdatesWithin(t.Context(), 0, end, 10_000)
	require.NoError(t, err)
	require.LessOrEqual(t, page.Bytes, int64(10_000))
	require.Less(t, page.To, end)
	require.Greater(t, len(s.pages()), 1)
	page, err = u.ReadUpdatesWithin(t.Context(), page.To, end, 10_000)
	require.NoError(t, err)
	require.LessOrEqual(t, page.Bytes, int64(10_000))
	require.Len(t, s.pages(), 1, "how large updates are is known")
	_, err = u.ReadUpdatesWithin(t.Context(), page.To, end, 100)
	require.ErrorIs(t, err, ledger.ErrByteLimit)
}

// Between migrations there is nothing to look for.
func TestStretchesLeaveOutGaps(t *testing.T) {
	t.Parallel()
	first := networkOffset(t, 1, "2026-01-01T00:00:00Z")
	third := networkOffset(t, 3, "2026-02-01T00:00:00Z")
	u, _, s := networkOf(t, slices.Concat(every(first, 10, 24*time.Hour), every(third, 3, time.Hour))...)
	hour := ledger.Offset(time.Hour.Microseconds())
	end := third + 2*hour
	for name, c := range map[string]struct {
		of   ledger.Range
		want []ledger.Range
	}{
		"all":                  {ledger.Range{To: end}, []ledger.Range{{From: first - 1, To: networkOffset(t, 1, "2026-02-01T00:00:00Z")}, {From: third - 1, To: end}}},
		"part of a migration":  {ledger.Range{From: first + hour, To: first + 100*hour}, []ledger.Range{{From: first + 24*hour - 1, To: first + 100*hour}}},
		"from one to another":  {ledger.Range{From: first + 200*hour, To: third}, []ledger.Range{{From: first + 216*hour - 1, To: networkOffset(t, 1, "2026-02-01T00:00:00Z")}, {From: third - 1, To: third}}},
		"within a gap":         {ledger.Range{From: first + 217*hour, To: first + 300*hour}, nil},
		"behind everything":    {ledger.Range{From: end, To: end + hour}, nil},
		"up to a gap":          {ledger.Range{From: first, To: first + 300*hour}, []ledger.Range{{From: first + 24*hour - 1, To: first + 300*hour}}},
		"a migration's newest": {ledger.Range{From: end - 1, To: end}, []ledger.Range{{From: end - 1, To: end}}},
	} {
		list, err := u.Stretches(t.Context(), c.of)
		require.NoError(t, err, name)
		require.Equal(t, c.want, list, name)
	}
	s.requests()
	_, err := u.ReadUpdates(t.Context(), end-1, end)
	require.NoError(t, err)
	require.Contains(t, s.pages()[0], `"page_size":1}`, "there is one update at most")
}
