package bench

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"ledgerindexer/sandbox"
)

// The paths that are asked for more than a few times. Everything else the simulated server answers.
const (
	pathLedgerEnd    = "/v2/state/ledger-end"
	pathUpdates      = "/v2/updates"
	pathUpdatesFlats = "/v2/updates/flats"
	pathUpdatesPage  = "/v2/updates/get-updates-page"
	pathUpdateByID   = "/v2/updates/update-by-id"
	pathSnapshotPage = "/v2/state/active-contracts-page"
	pathStats        = "/bench/stats" // ours: what was asked so far
)

// listLimit is the most elements of a list, as servers are configured unless somebody changes it.
const listLimit = 200

// elements is what a server has to give, in order.
type elements interface {
	len() int
	end() int64 // of the ledger
	offset(i int) int64
	after(offset int64) int // how many have offsets up to this one
	slice(i, j int) []byte  // those from i to j-1, with commas between
	find(key, value string) (i int, ok bool)
}

// stats is what a server was asked.
type stats struct {
	Requests map[string]int64 // by path
	Bytes    int64            // of the answers' bodies
}

// total is the number of requests.
func (s stats) total() (n int64) {
	for _, count := range s.Requests {
		n += count
	}
	return n
}

// meter counts what passes through a server, and waits before each answer.
type meter struct {
	next    http.Handler
	latency time.Duration

	mu sync.Mutex
	stats
}

func newMeter(next http.Handler, latency time.Duration) *meter {
	return &meter{next: next, latency: latency, stats: stats{Requests: map[string]int64{}}}
}

func (m *meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == pathStats {
		m.mu.Lock()
		told, err := json.Marshal(m.stats)
		m.mu.Unlock()
		if err != nil {
			panic(err) // of numbers: can't happen
		}
		w.Write(told)
		return
	}
	time.Sleep(m.latency)
	counted := &countingWriter{ResponseWriter: w}
	defer func() { // also where the handler breaks the connection off
		m.mu.Lock()
		m.Requests[r.URL.Path]++
		m.Bytes += counted.n
		m.mu.Unlock()
	}()
	m.next.ServeHTTP(counted, r)
}

type countingWriter struct {
	http.ResponseWriter
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.n += int64(n)
	return n, err
}

// Unwrap lets a handler reach the connection.
func (c *countingWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// participant serves updates as a participant's release does that has pages of 2,000, or one that has lists of 200 only. The
// ledger stands still.
type participant struct {
	data  elements
	pages bool
	rest  http.Handler
}

func newParticipant(data elements, pages bool) *participant {
	data.find("updateId", "") // now, and not when somebody waits for it
	version := "3.4"
	if pages {
		version = "3.5"
	}
	return &participant{data: data, pages: pages, rest: sandbox.NewServer(
		sandbox.NewLedger(sandbox.Options{Seed: seed}), sandbox.ServerOptions{Version: version})}
}

func (p *participant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == pathLedgerEnd:
		sendEnd(w, p.data)
	case path == pathUpdatesPage && p.pages:
		p.page(w, r)
	case path == pathUpdates, path == pathUpdatesFlats:
		p.list(w, r)
	case path == pathUpdateByID:
		p.byID(w, r)
	default:
		p.rest.ServeHTTP(w, r)
	}
}

// send answers with elements and what stands before and behind them.
func send(w http.ResponseWriter, body []byte, before, behind string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(before)+len(body)+len(behind)))
	_, _ = io.WriteString(w, before) // a client that is gone needs no answer
	w.Write(body)
	_, _ = io.WriteString(w, behind)
}

// sendEnd answers where the ledger ends.
func sendEnd(w http.ResponseWriter, data elements) {
	told, err := json.Marshal(map[string]int64{"offset": data.end()})
	if err != nil {
		panic(err) // of a number: can't happen
	}
	send(w, told, "", "")
}

// refuse answers with an error as a participant writes it.
func refuse(w http.ResponseWriter, category int, code, cause string) {
	status, body := sandbox.CantonErrorBody(category, code, cause, nil)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fprint(w, body)
}

func fprint(w io.Writer, text string) { _, _ = io.WriteString(w, text) }

// within says whether a range of offsets is one that the ledger has; if not, the request has been answered.
func (p *participant) within(w http.ResponseWriter, begin, end int64) bool {
	if begin < 0 || begin > end || end > p.data.end() {
		refuse(w, 12, "OFFSET_AFTER_LEDGER_END", "the range is not within the ledger")
		return false
	}
	return true
}

// read decodes a request's body; one that can't be is answered.
func read(w http.ResponseWriter, r *http.Request, body any) bool {
	if err := json.NewDecoder(r.Body).Decode(body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

func (p *participant) page(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Begin int64 `json:"beginOffsetExclusive"`
		End   int64 `json:"endOffsetInclusive"`
		Size  int   `json:"maxPageSize"`
		Down  bool  `json:"descendingOrder"`
	}
	if !read(w, r, &q) || !p.within(w, q.Begin, q.End) {
		return
	}
	if q.Down {
		http.Error(w, "this server has no descending order", http.StatusNotImplemented)
		return
	}
	i, j := p.data.after(q.Begin), p.data.after(q.End)
	high, next := q.End, "null"
	if size := min(max(q.Size, 1), pageSize); j-i > size {
		j = i + size
		high = p.data.offset(j - 1)
		next = `"` + base64.StdEncoding.EncodeToString(strconv.AppendInt(nil, high, 10)) + `"`
	}
	send(w, p.data.slice(i, j), `{"updates":[`, `],"lowestPageOffsetExclusive":`+strconv.FormatInt(q.Begin, 10)+
		`,"highestPageOffsetInclusive":`+strconv.FormatInt(high, 10)+`,"nextPageToken":`+next+`}`)
}

// list answers a bounded or an open-ended read. As nothing comes any more, one that is open-ended and finds nothing ends
// with its idle time.
func (p *participant) list(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Begin int64  `json:"beginExclusive"`
		End   *int64 `json:"endInclusive"`
		Down  bool   `json:"descendingOrder"`
	}
	if !read(w, r, &q) {
		return
	}
	if q.Down {
		http.Error(w, "this server has no descending order", http.StatusNotImplemented)
		return
	}
	end := p.data.end()
	if q.End != nil {
		end = *q.End
	}
	if !p.within(w, q.Begin, end) {
		return
	}
	i, j := p.data.after(q.Begin), p.data.after(end)
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	switch {
	case err == nil && limit <= listLimit:
		j = min(j, i+max(limit, 0))
	case j-i > listLimit:
		_, body := sandbox.CantonErrorBody(2, "JSON_API_MAXIMUM_LIST_ELEMENTS_NUMBER_REACHED",
			"The number of matching elements is greater than the node limit.", nil)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		fprint(w, body)
		return
	}
	if q.End == nil && i == j {
		idle, err := strconv.Atoi(r.URL.Query().Get("stream_idle_timeout_ms"))
		if err != nil {
			idle = 500
		}
		select {
		case <-time.After(time.Duration(idle) * time.Millisecond):
		case <-r.Context().Done():
		}
	}
	send(w, p.data.slice(i, j), `[`, `]`)
}

func (p *participant) byID(w http.ResponseWriter, r *http.Request) {
	var q struct {
		ID string `json:"updateId"`
	}
	if !read(w, r, &q) {
		return
	}
	i, ok := p.data.find("updateId", q.ID)
	if !ok {
		refuse(w, 11, "UPDATE_NOT_FOUND", "Update not found, or not visible.")
		return
	}
	send(w, p.data.slice(i, i+1), "", "")
}
