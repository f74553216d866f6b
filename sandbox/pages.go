package sandbox

import (
	"encoding/binary"
	"net/http"
)

// pageSize reads maxPageSize.
func pageSize(d *decoder, body object, usual, most int) (int, *cantonError) {
	size := decode[int](d, body["maxPageSize"], "maxPageSize")
	switch {
	case isNull(body["maxPageSize"]) || size == 0:
		return usual, nil
	case size < 0 || size > most:
		return 0, invalidArgument("Requested page size must not exceed %d, but got %d", most, size)
	}
	return size, nil
}

// The token of a snapshot's page says first which offset the snapshot is of: a
// request may leave it out and means the ledger end of the first page then.
func appendPageOffset(at int64, token []byte) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(at)), token...)
}

func pageOffset(token []byte) (int64, bool) {
	if len(token) <= 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(token)), true
}

// updatesPage implements POST /v2/updates/get-updates-page.
func (s *Server) updatesPage(w http.ResponseWriter, r *http.Request) {
	body, ok := s.body(w, r)
	if !ok {
		return
	}
	var d decoder
	begin := decode[int64](&d, body["beginOffsetExclusive"], "beginOffsetExclusive")
	b := bounds{
		begin: begin, end: decode[int64](&d, body["endOffsetInclusive"], "endOffsetInclusive"),
		open:       isNull(body["endOffsetInclusive"]),
		descending: decode[bool](&d, body["descendingOrder"], "descendingOrder"),
	}
	format := d.updateFormat(body["updateFormat"])
	token := d.bytes(body["pageToken"], "pageToken")
	size, refused := pageSize(&d, body, 100, 2000)
	if refused == nil && format == nil {
		refused = missingField("update_format")
	}
	if !accepted(w, &d, refused) || !allowed(w, r, format.needs()...) {
		return
	}
	n := s.names()
	filter, refused := n.compileUpdates(format)
	if !accepted(w, &d, refused) {
		return
	}
	h := s.history.open()
	sum := checksum("updates", s.opts.Version, n.participant, begin, b.end, b.open, b.descending, format)
	page := updatesPage{bounds: b, tail: b.open && !b.descending, size: size}
	if !accepted(w, &d, page.start(h, token, sum)) {
		return
	}
	writeJSON(w, s.appendUpdatesPage(h, &page, filter, sum, r.URL.Path))
}

// updatesPage is the part of the ledger that a page and those after it cover.
type updatesPage struct {
	bounds
	tail bool // there is always a next page
	size int
}

// start puts the bounds where the page begins: at the token, or at the pruning
// offset if no begin was given.
func (p *updatesPage) start(h reading, token []byte, sum [4]byte) *cantonError {
	if p.begin == 0 {
		p.begin = h.prunedTo()
	}
	if p.open {
		p.open, p.end = false, max(h.end(), 1)
		if h.end() == 0 {
			p.end = 0
		}
	}
	if len(token) > 0 {
		at, refused := resume(token, sum, "page_token", "INVALID_UPDATES_PAGE_TOKEN")
		if refused != nil {
			return refused
		}
		if p.descending {
			p.end = at.number
		} else {
			p.begin = at.number
		}
	}
	if p.end == 0 && h.end() == 0 && p.begin == 0 {
		return nil // an empty ledger
	}
	return p.check(h)
}

func (s *Server) appendUpdatesPage(h reading, p *updatesPage, f *updateFilter, sum [4]byte, path string) []byte {
	out := append(make([]byte, 0, 64<<10), `{"updates":[`...)
	first, last := h.after(p.begin), h.after(p.end)-1
	low, high := p.begin, p.end
	n, whole := 0, true
	for i := first; i <= last; i++ {
		at := i
		if p.descending {
			at = last - (i - first)
		}
		if n == p.size {
			whole = false
			break
		}
		start := len(out)
		if out[len(out)-1] != '[' {
			out = append(out, ',')
		}
		body := len(out)
		var shown bool
		if out, shown = h.appendUpdate(out, at, f, &s.feat); !shown {
			out = out[:start]
			continue
		}
		n++
		if s.opts.Rewrite != nil {
			raw, keep := s.rewrite(path, h.offsetOf(at), append([]byte(nil), out[body:]...))
			if out = out[:body]; keep {
				out = append(out, raw...)
			} else {
				out = out[:start]
			}
		}
		if n == p.size {
			if p.descending {
				low = h.offsetOf(at) - 1
			} else {
				high = h.offsetOf(at)
			}
		}
	}
	if whole {
		low, high = p.begin, p.end
	}
	out = append(out, `],"lowestPageOffsetExclusive":`...)
	out = appendInt(out, low)
	out = append(out, `,"highestPageOffsetInclusive":`...)
	out = appendInt(out, high)
	out = append(out, `,"nextPageToken":`...)
	switch {
	case whole && !p.tail:
		return append(out, "null}"...)
	case p.descending:
		out = appendBase64(out, pointer{number: low}.encode(sum))
	default:
		out = appendBase64(out, pointer{number: high}.encode(sum))
	}
	return append(out, '}')
}
