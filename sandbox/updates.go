package sandbox

import (
	"net/http"
	"time"
)

// bounds is the range of a read of updates.
type bounds struct {
	begin      int64
	end        int64
	open       bool // no end given
	descending bool
}

// check applies the participant's rules about offsets.
func (b *bounds) check(h reading) *cantonError {
	end, pruned := h.end(), h.prunedTo()
	switch {
	case b.descending && b.open:
		return refuse(8, "DESCENDING_ORDER_MISSING_END", "Descending order needs end_inclusive.")
	case b.begin < 0:
		return negativeOffset("begin_exclusive", b.begin)
	case !b.open && b.end <= 0:
		return refuse(8, "NON_POSITIVE_OFFSET", "Offset %d in end_inclusive is not a positive integer", b.end)
	case b.begin > end:
		return refuse(12, "OFFSET_AFTER_LEDGER_END", "Begin offset (%d) is after ledger end (%d)", b.begin, end)
	case !b.open && b.end > end:
		return refuse(12, "OFFSET_AFTER_LEDGER_END", "End offset (%d) is after ledger end (%d)", b.end, end)
	case !b.open && b.end < b.begin:
		return refuse(9, "OFFSET_OUT_OF_RANGE", "End offset %d is before begin offset %d.", b.end, b.begin)
	case b.begin < pruned:
		to := b.end
		if b.open {
			to = end
		}
		return prunedError(pruned, "Updates request from %d to %d precedes pruned offset %d", b.begin+1, to, pruned)
	}
	return nil
}

// updates implements POST /v2/updates and /v2/updates/flats (interface.md, endpoint 2).
func (s *Server) updates(w http.ResponseWriter, r *http.Request) {
	s.updateList(w, r, (*decoder).updateFormatOf)
}

func (s *Server) updateList(w http.ResponseWriter, r *http.Request, formatOf func(*decoder, object) (*updateFormat,
	*cantonError)) {
	l, ok := s.newList(w, r)
	if !ok {
		return
	}
	body, ok := s.body(w, r)
	if !ok {
		return
	}
	var d decoder
	b := bounds{
		begin: decode[int64](&d, body["beginExclusive"], "beginExclusive"), open: isNull(body["endInclusive"]),
		end: decode[int64](&d, body["endInclusive"], "endInclusive"),
	}
	if s.opts.Version != "3.4" {
		b.descending = decode[bool](&d, body["descendingOrder"], "descendingOrder")
	}
	format, refused := formatOf(&d, body)
	if !accepted(w, &d, refused) || !allowed(w, r, format.needs()...) {
		return
	}
	n := s.names()
	filter, refused := n.compileUpdates(format)
	if !accepted(w, &d, refused) {
		return
	}
	h := s.history.open()
	if !accepted(w, &d, b.check(h)) {
		return
	}
	if b.open {
		complete, refused := s.follow(l, r, h, b.begin, filter)
		if !accepted(w, &d, refused) {
			return
		}
		if !complete {
			late(r.Context(), w)
			return
		}
	} else {
		s.readBounded(l, h, b, filter)
	}
	l.answer(w)
}

func (s *Server) readBounded(l *list, h reading, b bounds, f *updateFilter) {
	first, last := h.after(b.begin), h.after(b.end)-1
	for i := first; i <= last && !l.full(); i++ {
		at := i
		if b.descending {
			at = last - (i - first)
		}
		l.appendWith(h.offsetOf(at), func(dst []byte) ([]byte, bool) { return s.appendListed(dst, h, at, f) })
	}
}

// firstCheckpoint is how soon after a read began its first OffsetCheckpoint may come.
const firstCheckpoint = 450 * time.Millisecond

// follow reads on from an offset, waiting for new updates, until the list is full or
// nothing has come for the idle time. It is not complete if the request ended before,
// and refused if its user may no longer read.
func (s *Server) follow(l *list, r *http.Request, h reading, begin int64,
	f *updateFilter) (complete bool, refused *cantonError) {
	reader := callerOf(r)
	idle := s.opts.IdleTimeout
	if l.idle > 0 {
		idle = l.idle
	}
	interval := s.opts.CheckpointInterval
	checkpoint := time.NewTimer(min(interval, firstCheckpoint))
	defer checkpoint.Stop()
	if s.opts.NoCheckpoints {
		checkpoint.Stop()
	}
	gap := time.NewTimer(idle)
	defer gap.Stop()
	next := h.after(begin)
	made := s.madeCheckpoint(h)
	delivered := 0
	for {
		changed, refused := reader.watch()
		if refused != nil {
			return false, refused
		}
		if made == begin && l.n == 0 && next < h.count() && !s.opts.NoCheckpoints {
			s.addCheckpoint(l, h, begin, next)
		}
		for ; next < h.count() && !l.full(); next++ {
			l.appendWith(h.offsetOf(next), func(dst []byte) ([]byte, bool) { return s.appendListed(dst, h, next, f) })
		}
		if l.n > delivered {
			if refused := reader.expired(); refused != nil { // checked only before a delivery
				return false, refused
			}
			delivered = l.n
			gap.Reset(idle)
		}
		if l.full() {
			return true, nil
		}
		select {
		case <-h.more():
			made = s.madeCheckpoint(h)
			h = s.history.open()
		case <-checkpoint.C:
			s.addCheckpoint(l, h, h.end(), h.count())
			checkpoint.Reset(interval)
			gap.Reset(idle)
		case <-gap.C:
			return true, nil
		case <-s.opts.Down:
			return false, goingDown()
		case <-changed:
		case <-r.Context().Done():
			return false, nil
		}
	}
}

// madeCheckpoint returns the offset of the last OffsetCheckpoint, which all reads share. A new one is made at a
// reading's end when it is due. A participant sends it before the first update of a read that begins at this offset, so
// such a read for one element returns only the checkpoint until the next one is made.
func (s *Server) madeCheckpoint(h reading) int64 {
	s.making.Lock()
	defer s.making.Unlock()
	if time.Since(s.madeAt) >= s.opts.CheckpointInterval {
		s.made, s.madeAt = h.end(), time.Now()
	}
	return s.made
}

// addCheckpoint adds an OffsetCheckpoint: everything up to an offset, n updates, has been delivered. Record times
// advance even if offsets do not.
func (s *Server) addCheckpoint(l *list, h reading, offset int64, updates int) {
	if offset == 0 {
		return
	}
	later := s.checkpoints.Add(1) % 900
	raw := append([]byte(nil), `{"update":{"OffsetCheckpoint":{"value":{"offset":`...)
	raw = appendInt(raw, offset)
	raw = append(raw, `,"synchronizerTimes":`...)
	raw = s.appendTimes(raw, h, updates, later)
	raw = append(raw, `}}}}`...)
	l.add(offset, raw)
}

func (s *Server) appendTimes(dst []byte, h reading, updates int, later int64) []byte {
	dst = append(dst, '[')
	first := true
	synchronizers := s.history.names().synchronizers
	for i, t := range h.recordTimes(updates) {
		if t == 0 {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, `{"synchronizerId":`...)
		dst = appendQuoted(dst, synchronizers[i])
		dst = append(dst, `,"recordTime":"`...)
		dst = appendInstant(dst, t+later)
		dst = append(dst, `"}`...)
	}
	return append(dst, ']')
}
