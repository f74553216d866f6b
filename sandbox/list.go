package sandbox

import (
	"net/http"
	"strconv"
	"time"
)

// list collects the elements of a list response under the participant's limits.
type list struct {
	server *Server
	path   string
	take   int // stop here
	most   int // more than these are refused
	out    []byte
	n      int
	idle   time.Duration // 0: not given
}

// newList reads limit and stream_idle_timeout_ms. A request that gives a bad one
// has been answered when ok is false.
func (s *Server) newList(w http.ResponseWriter, r *http.Request) (l *list, ok bool) {
	q := r.URL.Query()
	number := func(name string) (n int64, given, ok bool) {
		if !q.Has(name) {
			return 0, false, true
		}
		n, err := strconv.ParseInt(q.Get(name), 10, 64)
		if err != nil {
			writeText(w, http.StatusBadRequest, "Invalid value for: query parameter "+name)
		}
		return n, true, err == nil
	}
	limit, given, ok := number("limit")
	if !ok {
		return nil, false
	}
	idle, _, ok := number("stream_idle_timeout_ms")
	if !ok {
		return nil, false
	}
	most := s.opts.ListLimit
	l = &list{server: s, path: r.URL.Path, most: most, take: most + 1, idle: time.Duration(idle) * time.Millisecond}
	switch {
	case s.opts.IgnoreLargeLimit && (!given || limit > int64(most)):
		l.take = most
	case given && limit <= int64(most):
		l.take = int(max(limit, 0))
	}
	l.out = append(make([]byte, 0, 64<<10), '[')
	return l, true
}

func (l *list) full() bool { return l.n >= l.take }

// add puts an element in.
func (l *list) add(offset int64, raw []byte) {
	raw, keep := l.server.rewrite(l.path, offset, raw)
	if !keep {
		return
	}
	if l.n > 0 {
		l.out = append(l.out, ',')
	}
	l.out = append(l.out, raw...)
	l.n++
}

// appendWith lets f append an element in place: elements are large, and most need
// no hook. f returns false if there is none.
func (l *list) appendWith(offset int64, f func([]byte) ([]byte, bool)) {
	start := len(l.out)
	if l.n > 0 {
		l.out = append(l.out, ',')
	}
	body := len(l.out)
	out, ok := f(l.out)
	if !ok {
		l.out = out[:start]
		return
	}
	if l.server.opts.Rewrite != nil {
		raw := append([]byte(nil), out[body:]...)
		l.out = out[:start]
		l.add(offset, raw)
		return
	}
	l.out = out
	l.n++
}

func (l *list) answer(w http.ResponseWriter) {
	if l.n > l.most {
		writeError(w, listOverflow(l.most))
		return
	}
	writeJSON(w, append(l.out, ']'))
}
