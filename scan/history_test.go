package scan

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/internal/tools/openapi"
	"ledgerindexer/ledger"
)

// wanted is what a service is asked for.
type wanted struct {
	Size  int    `json:"page_size"`
	After string `json:"page_end_event_id"`
	Order string `json:"sort_order"`
}

func wantedOf(r *http.Request) (w wanted) {
	if err := json.NewDecoder(r.Body).Decode(&w); err != nil {
		panic(err)
	}
	return w
}

// sized serves pages of as many records as are asked for, each with so many bytes of text, without end.
func sized(bytes func() int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		want := wantedOf(r)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"transactions":[`)
		text := strings.Repeat("x", bytes())
		for i := range want.Size {
			separator := ","
			if i == 0 {
				separator = ""
			}
			if _, err := fmt.Fprintf(w, `%s{"event_id":"%s.%d","date":"2026-07-01T10:00:00Z","tap":{"coin_owner":"a","coin_amount":"1"},"text":"%s"}`,
				separator, want.After, i, text); err != nil {
				return // the client has read enough
			}
		}
		_, _ = io.WriteString(w, `]}`)
	}
}

// sizes are what was asked for since the last time.
func (s *service) sizes(t *testing.T) []int {
	t.Helper()
	var sizes []int
	for _, asked := range s.requests() {
		var w wanted
		require.NoError(t, json.Unmarshal([]byte(asked[strings.Index(asked, "{"):]), &w))
		sizes = append(sizes, w.Size)
	}
	return sizes
}

func TestPagesAreAskedForInBothOrders(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for name, want := range map[string]string{"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "ledgerindexer", "Authorization": ""} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: %s", name, got)
			}
		}
		answer(200, page("#1220b:3", "#1220a:0", "#1220a:0"))(w, r)
	})
	c := client(t, Config{URL: s.URL + "/api/scan"})
	all := []string{"#1220b:3", "#1220a:0", "#1220a:0"}

	records, err := c.TransactionsAfter(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, all, ids(records), "in the order of the service, and none is left out")
	require.Equal(t, ledger.RecordTap, records[0].Kind)
	require.Equal(t, []string{`POST /api/scan/v0/transactions {"page_size":1000,"sort_order":"asc"}`}, s.requests())

	_, err = c.TransactionsAfter(t.Context(), `#1220"é:0`)
	require.NoError(t, err)
	require.Equal(t, []string{`POST /api/scan/v0/transactions {"page_size":1000,"page_end_event_id":"#1220\"é:0","sort_order":"asc"}`}, s.requests())

	records, err = c.NewestTransactions(t.Context(), 25)
	require.NoError(t, err)
	require.Equal(t, all, ids(records))
	require.Equal(t, []string{`POST /api/scan/v0/transactions {"page_size":25,"sort_order":"desc"}`}, s.requests())

	records, err = c.NewestTransactions(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, all[:2], ids(records), "a service may ignore what was asked for")

	for _, n := range []int{-1, 0, MaxPage + 1} {
		_, err := c.NewestTransactions(t.Context(), n)
		require.ErrorContains(t, err, "1 to 1000 records")
	}
}

// An empty page says that nothing follows, or that the id is not known: which of the two is not for the client to
// guess.
func TestAnEmptyPageIsNoError(t *testing.T) {
	t.Parallel()
	c := client(t, Config{URL: serve(t, answer(200, `{"transactions":[]}`)).URL})
	records, err := c.TransactionsAfter(t.Context(), "#no such id:0")
	require.NoError(t, err)
	require.Empty(t, records)
	records, err = c.NewestTransactions(t.Context(), 5)
	require.NoError(t, err)
	require.Empty(t, records)
}

func TestRequestsAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	api := openapi.Scan(t, "0.6")
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body := []byte(nil)
		if r.Method == http.MethodPost {
			body, _ = io.ReadAll(r.Body)
		}
		// What is asked at /version stands in another document.
		if err := api.CheckRequest(r.Method, r.URL.Path, r.URL.Query(), body); err != nil && r.URL.Path != pathVersion {
			t.Error(err)
		}
		text := map[string]string{
			pathVersion: `{"version":"0.6.12"}`, pathNetwork: `{"dso_party_id":"DSO::1220"}`, pathBackfilling: `{"complete":true}`,
			pathTransactions: page("#1220a:0"),
		}[r.URL.Path]
		if err := api.CheckResponse(r.Method, r.URL.Path, 200, []byte(text)); err != nil && r.URL.Path != pathVersion {
			t.Errorf("the test's own answer: %v", err)
		}
		answer(200, text)(w, r)
	})
	c := client(t, Config{URL: s.URL})
	_, err := c.Describe(t.Context())
	require.NoError(t, err)
	for _, after := range []string{"", "#1220a:0"} {
		_, err = c.TransactionsAfter(t.Context(), after)
		require.NoError(t, err)
	}
	_, err = c.NewestTransactions(t.Context(), 1)
	require.NoError(t, err)
}

// What a service sends that can't be understood stops the stream, and is told with what was asked.
func TestWhatCannotBeUnderstoodStops(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, says string }{
		"an amount that is none": {strings.Replace(page("#1:0", "#2:0"), `"1.0000000000"`, `"1e"`, 1), "#1:0"},
		"no list":                {`{}`, "transactions"},
		"another answer":         {`"oops"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, answer(200, c.body))
			records, err := client(t, Config{URL: s.URL}).TransactionsAfter(t.Context(), "#1220a:0")
			var bad *ledger.DecodeError
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, `read transactions after event id "#1220a:0": transactions: `)
			require.ErrorContains(t, err, c.says)
			require.Empty(t, records, "nothing of a bad page")
			require.Len(t, s.requests(), 1)
			_, err = client(t, Config{URL: s.URL}).NewestTransactions(t.Context(), 3)
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, "read the newest transactions: transactions-newest: ")
		})
	}
}

// What is no JSON no service said, so it is asked again, if it has said anything.
func TestWhatIsNoJSONMayPass(t *testing.T) {
	t.Parallel()
	for body, says := range map[string]string{
		"<html>please log in":           `the answer is not JSON, though its content type is "application/json", at byte 0: invalid character '<' at start of value`,
		page("#1:0") + page("#2:0"):     "more follows after its end",
		strings.Trim(page("#1:0"), "{"): "the answer is not JSON",
	} {
		s := serve(t, answer(200, body))
		counted := map[string]int{}
		all := func(reached bool) map[string]error {
			c := client(t, Config{URL: s.URL, Reached: reached, NotJSON: func(operation string) { counted[operation]++ }})
			asked, u := each(t, c), NewUpdates(c)
			_, asked["bulk-updates"] = u.listFiles(t.Context())
			_, _, asked["snapshot"] = u.askSnapshot(t.Context(), snapshotRequest{})
			return asked
		}
		for _, err := range all(true) {
			require.Equal(t, http.StatusOK, retryable(t, err).Status)
			require.ErrorContains(t, err, says)
			require.ErrorContains(t, err, "; the answer begins ")
		}
		for operation, err := range all(false) {
			require.Contains(t, problem(t, err), " is not JSON, and none came before that is. see what stands between here and --scan-url")
			require.Equal(t, 2, counted[operation])
		}
	}
}

// What cuts a page off on the way is trouble that passes, wherever it happens and whoever notices; a smaller one may
// come through.
func TestAPageThatIsCutOffMayBeAskedForAgain(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for name, c := range map[string]struct{ answer, says string }{
		"by one who hides it": {head + "Connection: close\r\n\r\n" + `{"transactions":[`, "cut off after 17 bytes: the JSON has no end"},
		"before it began":     {head + "Content-Length: 0\r\n\r\n", "cut off after 0 bytes: the JSON has no end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, raw(c.answer))
			cl := client(t, Config{URL: s.URL})
			for range 2 {
				_, err := cl.TransactionsAfter(t.Context(), "")
				_ = retryable(t, err)
				require.ErrorIs(t, err, jsonhttp.ErrCutOff)
				require.ErrorContains(t, err, c.says)
			}
			require.Equal(t, []int{1000, 500}, s.sizes(t), "not at once, but smaller")
		})
	}
}

// A limit that the server names once holds for good; each kind of request finds out for itself. One that no page can
// keep needs an operator. A server that gives up on a page is asked for a smaller one, with the next try.
func TestWhatIsAskedForAfterARefusal(t *testing.T) {
	t.Parallel()
	const strained = "The server is taking too long to respond to the (POST) request at /v0/transactions"
	above := func(size int, refuse http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if wantedOf(r).Size > size {
				refuse(w, r)
				return
			}
			answer(200, page("#1:0"))(w, r)
		}
	}
	all := []int{1000, 500, 250, 125, 62, 31, 15, 7, 3, 1}
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		tries  int
		sizes  []int
		what   string // of the problem
	}{
		"a limit":                {above(300, answer(400, `{"error":"Exceeded limit maximum (1000 > 300)."}`)), 3, []int{1000, 500, 250, 250, 250}, ""},
		"a limit in other words": {above(300, plain(400, "page_size is too large")), 3, []int{1000, 500, 250, 250, 250}, ""},
		"a proxy's limit":        {above(300, plain(413, "Payload Too Large")), 3, []int{1000, 500, 250, 250, 250}, ""},
		"a limit of nothing":     {answer(400, `{"error":"Limit must be at least 1."}`), 1, all, "the Scan service refuses the request as invalid. "},
		"a strained service":     {above(250, answer(503, `{"error":"`+strained+`"}`)), 3, []int{1000, 500, 250}, ""},
		"a strained HTTP server": {above(250, plain(503, "The server was not able to produce a timely response to your request.")), 3, []int{1000, 500, 250}, ""},
		"a strained proxy":       {above(250, plain(504, "upstream request timeout")), 3, []int{1000, 500, 250}, ""},
		"what has other reasons": {answer(503, `{"error":"starting"}`), 2, []int{1000, 1000}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, c.handle)
			scan := client(t, Config{URL: s.URL})
			for range c.tries {
				_, err := scan.TransactionsAfter(t.Context(), "")
				if c.what != "" {
					require.Contains(t, problem(t, err), c.what)
				} else if err != nil {
					_ = retryable(t, err)
				}
			}
			require.Equal(t, c.sizes, s.sizes(t))
			if name == "a limit" {
				_, err := scan.NewestTransactions(t.Context(), 400)
				require.NoError(t, err)
				require.Equal(t, []int{400, 200}, s.sizes(t))
			}
		})
	}
	size := jsonhttp.NewSize(MaxPage)
	require.False(t, shrinkAfter(size, MaxPage, &Error{Failure: jsonhttp.Failure{Err: fmt.Errorf("%w for 40s", jsonhttp.ErrSilent)}}))
	require.Equal(t, 500, size.Ask(), "one that says nothing")
}

// A page that is larger than what is read is asked for in smaller pieces, until larger ones fit again.
func TestAPageOverTheSizeLimitIsHalvedForAWhile(t *testing.T) {
	t.Parallel()
	var bytes atomic.Int64
	s := serve(t, sized(func() int { return int(bytes.Load()) }))
	c := client(t, Config{URL: s.URL})
	c.maxBody = 150_000
	bytes.Store(300)
	records, err := c.TransactionsAfter(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, 250, len(records))
	require.Equal(t, []int{1000, 500, 250}, s.sizes(t))

	bytes.Store(0)
	for range 40 {
		_, err := c.TransactionsAfter(t.Context(), "")
		require.NoError(t, err)
	}
	sizes := s.sizes(t)
	require.Equal(t, []int{282, 314, 346}, sizes[:3])
	require.Equal(t, MaxPage, sizes[len(sizes)-1])
}

func TestOneRecordOverTheSizeLimitNeedsAnOperator(t *testing.T) {
	t.Parallel()
	s := serve(t, sized(func() int { return 10_000 }))
	c := client(t, Config{URL: s.URL})
	c.maxBody = 5000
	for after, says := range map[string]string{
		"":         "the first record of the transaction history is larger than what is read of an answer. see what the service answers",
		"#1220a:0": `the record of the transaction history after event id "#1220a:0" is larger than what is read of an answer`,
	} {
		_, err := c.TransactionsAfter(t.Context(), after)
		require.Contains(t, problem(t, err), says)
		require.ErrorIs(t, err, jsonhttp.ErrTooLarge)
	}
	require.Equal(t, []int{1000, 500, 250, 125, 62, 31, 15, 7, 3, 1, 1}, s.sizes(t))
	_, err := c.NewestTransactions(t.Context(), 5)
	require.Contains(t, problem(t, err), "the newest record of the transaction history is larger than what is read of an answer")
	require.Equal(t, []int{5, 2, 1}, s.sizes(t))
}
