package sandbox

import (
	"encoding/json"
	"net/http"
)

// snapshotRequest is what the list and the page of active contracts have in common.
type snapshotRequest struct {
	at     int64
	format *eventFormat
	filter *eventFilter
	sum    [4]byte
	from   pointer
}

// prepare checks the offset and the token, and compiles the filter.
func (s *Server) prepare(q *snapshotRequest, h reading, token []byte, field, code string) *cantonError {
	n := s.names()
	filter, refused := n.compile(q.format)
	if refused != nil {
		return q.said(refused)
	}
	q.filter = filter
	q.sum = checksum(field, s.opts.Version, n.participant, q.at, q.format)
	end, pruned := h.end(), h.prunedTo()
	switch {
	case q.at < 0:
		return negativeOffset("active_at_offset", q.at)
	case q.at > end:
		return q.said(refuse(12, "OFFSET_AFTER_LEDGER_END", "active_at_offset offset (%d) is after ledger end (%d)", q.at,
			end))
	case q.at < pruned:
		return prunedError(pruned, "Active contracts request at offset %d precedes pruned offset %d", q.at, pruned)
	case len(token) > 0:
		q.from, refused = resume(token, q.sum, field, code)
		return refused
	case q.at != end && h.inFlight(q.at):
		return prunedError(pruned,
			"Active contracts request at offset %d, which is not the ledger end, has reassignments in flight", q.at)
	}
	return nil
}

// said adds the filters to what the ledger refuses. What is no request to it, such as a name that can't be one, is
// refused before.
func (q *snapshotRequest) said(e *cantonError) *cantonError {
	if e.ErrorCategory == 8 {
		return e
	}
	return e.with("filters", mustJSON(q.format))
}

// appendEntry appends the element of a snapshot response.
func (s *Server) appendEntry(dst []byte, e *entry, token []byte) []byte {
	if e.whole != nil {
		return append(dst, e.whole...)
	}
	dst = append(dst, `{"workflowId":`...)
	dst = appendString(dst, e.workflow)
	dst = append(dst, `,"contractEntry":`...)
	dst = append(dst, e.raw...)
	if s.feat.token {
		dst = append(dst, `,"streamContinuationToken":`...)
		dst = appendBase64(dst, token)
	}
	return append(dst, '}')
}

func appendString(dst []byte, text string) []byte {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // of a string: can not happen
	}
	return append(dst, b...)
}

// activeContracts implements POST /v2/state/active-contracts (interface.md, endpoint 1).
func (s *Server) activeContracts(w http.ResponseWriter, r *http.Request) {
	l, ok := s.newList(w, r)
	if !ok {
		return
	}
	body, ok := s.body(w, r)
	if !ok {
		return
	}
	var d decoder
	q := snapshotRequest{at: decode[int64](&d, body["activeAtOffset"], "activeAtOffset")}
	var token []byte
	if s.feat.token {
		token = d.bytes(body["streamContinuationToken"], "streamContinuationToken")
	}
	var refused *cantonError
	q.format, refused = d.eventFormatOf(body)
	if !accepted(w, &d, refused) || !allowed(w, r, q.format.needs()...) {
		return
	}
	h := s.history.open()
	if !accepted(w, &d, s.prepare(&q, h, token, "stream_continuation_token", "INVALID_CONTINUATION_TOKEN")) {
		return
	}
	if q.at > 0 && !l.full() {
		s.entries(h, &q, func(e entry) bool {
			l.appendWith(e.offset, func(dst []byte) ([]byte, bool) {
				return s.appendEntry(dst, &e, e.at.encode(q.sum)), true
			})
			return !l.full()
		})
	}
	l.answer(w)
}

// Beyond the last reassignment come the extra entries, if they are wanted.
const extraEntries = 1 << 40

var extraRaw = [...]string{`{"JsEmpty":{}}`, `{"JsFromTheFuture":{"contractId":"00","reason":null}}`}

// entries yields the snapshot and then the extra entries.
func (s *Server) entries(h reading, q *snapshotRequest, yield func(entry) bool) {
	more := true
	if q.from.number < extraEntries {
		h.snapshot(q.at, q.from, q.filter, &s.feat, func(e entry) bool {
			more = yield(e)
			return more
		})
	}
	if !s.opts.ExtraEntries {
		return
	}
	from := max(q.from.number-extraEntries, 0)
	for i := from; i < int64(len(extraRaw)) && more; i++ {
		at := pointer{number: extraEntries + i + 1, incomplete: true, offset: q.at}
		more = yield(entry{at: at, offset: q.at, raw: []byte(extraRaw[i])})
	}
}

// activeContractsPage implements /v2/state/active-contracts-page: a GET with a body until 3.5.9, a POST from then on.
func (s *Server) activeContractsPage(w http.ResponseWriter, r *http.Request) {
	body, ok := s.body(w, r)
	if !ok {
		return
	}
	var d decoder
	h := s.history.open()
	q := snapshotRequest{at: decode[int64](&d, body["activeAtOffset"], "activeAtOffset"),
		format: d.eventFormat(body["eventFormat"], "eventFormat")}
	token := d.bytes(body["pageToken"], "pageToken")
	size, refused := pageSize(&d, body, 2000, 10_000)
	if refused == nil && q.format == nil {
		refused = missingField("event_format")
	}
	if !accepted(w, &d, refused) || !allowed(w, r, q.format.needs()...) {
		return
	}
	at, resumed := pageOffset(token)
	if resumed {
		token = token[8:]
	}
	if isNull(body["activeAtOffset"]) {
		if q.at = h.end(); resumed {
			q.at = at
		}
	}
	if !accepted(w, &d, s.prepare(&q, h, token, "page_token", "INVALID_ACS_PAGE_TOKEN")) {
		return
	}
	s.writeSnapshotPage(w, r, h, &q, size)
}

func (s *Server) writeSnapshotPage(w http.ResponseWriter, r *http.Request, h reading, q *snapshotRequest, size int) {
	out := append(make([]byte, 0, 64<<10), `{"activeContracts":[`...)
	n, more := 0, false
	var last pointer
	if q.at > 0 {
		s.entries(h, q, func(e entry) bool {
			if n == size {
				more = true
				return false
			}
			raw, keep := s.rewrite(r.URL.Path, e.offset, s.appendEntry(nil, &e, nil))
			if keep {
				if n > 0 {
					out = append(out, ',')
				}
				out = append(out, raw...)
			}
			n++
			last = e.at
			return true
		})
	}
	out = append(out, `],"activeAtOffset":`...)
	out = appendInt(out, q.at)
	out = append(out, `,"nextPageToken":`...)
	if more {
		out = appendBase64(out, appendPageOffset(q.at, last.encode(q.sum)))
	} else {
		out = append(out, "null"...)
	}
	writeJSON(w, append(out, '}'))
}
