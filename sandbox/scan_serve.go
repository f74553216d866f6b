package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pathTransactions is the path of the transaction history that the simulated Scan serves (interface.md, endpoint 6).
const pathTransactions = "/v0/transactions"

// routes serves what the release has.
func (s *Scan) routes() {
	s.paths, s.begins = map[string]http.HandlerFunc{}, map[string]http.HandlerFunc{}
	release := releaseOf(s.opts.Release)
	if !since(release, 0, 7, 0) {
		s.paths["POST "+pathTransactions] = s.transactions
	}
	if s.opts.StrictInterface {
		return
	}
	s.paths["GET /version"] = s.version
	s.paths["GET /v0/dso-party-id"] = s.dsoParty
	s.paths["GET /v0/backfilling/status"] = s.backfillingStatus
	s.paths["GET /livez"] = func(http.ResponseWriter, *http.Request) {}
	s.paths["GET /readyz"] = func(http.ResponseWriter, *http.Request) {}
	if since(release, 0, 4, 2) {
		s.paths["POST "+pathNetworkUpdates] = s.networkUpdates
		s.begins["GET "+pathNetworkUpdates+"/"] = s.networkUpdate
		s.paths["GET "+pathSnapshotBefore] = s.snapshotTime("before", (*networkView).snapshotBefore)
		s.paths["GET "+pathSnapshotAfter] = s.snapshotTime("after", (*networkView).snapshotAfter)
	}
	if since(release, 0, 6, 0) {
		s.paths["POST "+pathBulkUpdates] = s.bulkUpdates
		s.paths["GET "+pathBulkSnapshot] = s.bulkSnapshot
		s.begins["GET "+pathBulkDownload] = s.bulkDownload
	}
	if since(release, 0, 6, 1) {
		s.paths["POST "+pathNetworkACS] = s.networkACS
	}
	if since(release, 0, 6, 3) {
		s.paths["POST "+pathHoldingsSummary] = s.holdingsSummary
	}
}

// releaseOf returns the numbers of a release, at least three. It panics on what is none.
func releaseOf(text string) (numbers []int) {
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			panic(fmt.Sprintf("sandbox: %q is no release of Scan", text))
		}
		numbers = append(numbers, n)
	}
	return append(numbers, make([]int, max(0, 3-len(numbers)))...)
}

// since reports whether a release is another one, or later.
func since(release []int, first ...int) bool { return slices.Compare(release, first) >= 0 }

// ServeHTTP implements http.Handler.
func (s *Scan) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	slowed(w, r, s.opts.Latency, s.opts.Fault, s.serve)
}

func (s *Scan) serve(w http.ResponseWriter, r *http.Request) {
	operation := r.Method + " " + r.URL.Path
	handler, ok := s.paths[operation]
	for begin, serves := range s.begins {
		if !ok && strings.HasPrefix(operation, begin) {
			operation, handler, ok = begin, serves, true
		}
	}
	switch {
	case s.opts.Token != "" && r.Header.Get("Authorization") != "Bearer "+s.opts.Token:
		writeScanError(w, http.StatusUnauthorized, "a bearer token is needed")
	case !ok:
		writeScanError(w, http.StatusNotFound, "The requested resource could not be found.")
	case s.limited(operation):
		http.Error(w, "Too many requests", http.StatusTooManyRequests) // no JSON, as from the real service
	default:
		handler(w, r)
	}
}

// limited counts a request of an operation, and reports whether there were too many in this second.
func (s *Scan) limited(operation string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now().Unix(); s.second != now {
		s.second, s.asked = now, map[string]int{}
	}
	s.asked[operation]++
	return s.opts.RequestLimit > 0 && s.asked[operation] > s.opts.RequestLimit
}

// writeScanError answers in the form of all errors of Scan.
func writeScanError(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprint(w, mustJSON(map[string]string{"error": text}))
}

func (s *Scan) version(w http.ResponseWriter, _ *http.Request) {
	writeValue(w, map[string]string{"version": s.opts.Release, "commit_ts": "2026-01-01T00:00:00Z"})
}

func (s *Scan) dsoParty(w http.ResponseWriter, _ *http.Request) {
	writeValue(w, map[string]string{"dso_party_id": s.ledger.DSO()})
}

func (s *Scan) backfillingStatus(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	complete := !s.backfilling
	s.mu.Unlock()
	writeValue(w, map[string]bool{"complete": complete})
}

// historyRequest is the body of POST /v0/transactions.
type historyRequest struct {
	size       int64
	after      string
	descending bool
}

// malformedContent begins what the real service says of a request that it can't read.
const malformedContent = "The request content was malformed: "

// requestObject reads the body of a request, which has to be an object.
func requestObject(w http.ResponseWriter, r *http.Request) (o object, refused string) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 10<<20))
	if err != nil {
		return nil, malformedContent + err.Error()
	}
	if err := json.Unmarshal(raw, &o); err != nil || o == nil {
		return nil, malformedContent + "expected an object"
	}
	return o, ""
}

// historyRequest reads a request. Its refusals have the text of the real service.
func (s *Scan) historyRequest(w http.ResponseWriter, r *http.Request) (q historyRequest, refused string) {
	o, refused := requestObject(w, r)
	if refused != "" {
		return q, refused
	}
	if isNull(o["page_size"]) {
		return q, malformedContent + "DecodingFailure at .page_size: Missing required field"
	}
	var d decoder
	q.size = decode[int64](&d, o["page_size"], "page_size")
	q.after = decode[string](&d, o["page_end_event_id"], "page_end_event_id")
	order := decode[string](&d, o["sort_order"], "sort_order")
	switch {
	case d.err != nil:
		return q, malformedContent + d.err.Error()
	case order == "desc":
		q.descending = true
	case order != "asc" && !isNull(o["sort_order"]):
		return q, fmt.Sprintf("%sDecodingFailure at .sort_order: unknown value %s", malformedContent, order)
	case q.size < 1:
		return q, "Limit must be at least 1."
	case q.size > int64(s.opts.PageLimit):
		return q, fmt.Sprintf("Exceeded limit maximum (%d > %d).", q.size, s.opts.PageLimit)
	}
	return q, ""
}

// transactions implements POST /v0/transactions (interface.md, endpoint 6). As in a real Scan, the page after an
// unknown event id is empty, and one after an event id of two records fails.
func (s *Scan) transactions(w http.ResponseWriter, r *http.Request) {
	q, refused := s.historyRequest(w, r)
	if refused != "" {
		writeScanError(w, http.StatusBadRequest, refused)
		return
	}
	read := s.records
	if s.prepared != nil {
		read = s.preparedRecords
	}
	records, twice := read(q)
	if twice {
		writeScanError(w, http.StatusInternalServerError,
			"ERROR: more than one row returned by a subquery used as an expression")
		return
	}
	out := append([]byte(`{"transactions":[`), bytes.Join(records, []byte{','})...)
	writeJSON(w, append(out, `]}`...))
}

// records returns the answer to a request. twice reports that two records have the event id after which it reads.
func (s *Scan) records(q historyRequest) (records [][]byte, twice bool) {
	v, list, twice := s.after(q.after, q.size, q.descending)
	form := s.form()
	for _, number := range list {
		m := &v.movements[number]
		record := v.appendRecord(nil, int(number), form)
		if s.opts.Rewrite != nil {
			e := Element{Path: pathTransactions, Offset: v.updates[m.update].offset, EventID: v.eventID(m), Raw: record}
			if record = s.opts.Rewrite(e); record == nil {
				continue
			}
		}
		records = append(records, record)
	}
	return records, twice
}

// form returns how records are written: by the options and the service's order.
func (s *Scan) form() recordForm {
	s.mu.Lock()
	defer s.mu.Unlock()
	return recordForm{word: s.opts.Word, changes: s.opts.BalanceChanges, bare: s.opts.StrictInterface,
		odd: s.opts.OddShapes, order: s.order}
}

// eventID returns the event id of a movement's record.
func (v *view) eventID(m *movement) string {
	return "#" + v.updateIDOf(int(m.update)) + ":" + strconv.Itoa(int(m.node))
}
