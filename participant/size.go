package participant

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"ledgerindexer/ledger"
)

// size is how many elements are asked for in one request. It follows what the server can do: a refusal lowers it
// for good, trouble lowers it for a while.
type size struct {
	mu   sync.Mutex
	now  int
	most int // what the server is not known to refuse
}

func newSize(most int) size { return size{now: most, most: most} }

func (s *size) ask() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// worked lets the size creep back: fast enough to recover within some dozens of requests, slowly enough that a
// server which is too slow for more does not fail every second request.
func (s *size) worked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = min(s.most, s.now+s.most/32+1)
}

// failed looks at why a request for asked elements failed and halves the size where that helps. It says whether to
// ask again at once; where not, the error is the caller's.
func (s *size) failed(asked int, err error) (again bool) {
	var e *Error
	var p *ledger.Problem
	if asked <= 1 || !errors.As(err, &e) || errors.As(err, &p) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	half := asked / 2
	switch {
	case e.Status == http.StatusRequestEntityTooLarge, e.aboutPageSize():
		s.most = min(s.most, half)
		s.now = min(s.now, half)
		return true
	case errors.Is(e, errTooLarge):
		s.now = min(s.now, half)
		return true
	case e.timedOut():
		// The server is struggling: a smaller request, but when the caller's patience says so.
		s.now = min(s.now, half)
	}
	return false
}

// aboutPageSize says whether the server refused maxPageSize.
func (e *Error) aboutPageSize() bool {
	if e.Status != http.StatusBadRequest {
		return false
	}
	text := strings.NewReplacer("_", "", " ", "", "-", "").Replace(strings.ToLower(e.Cause + e.Body))
	return strings.Contains(text, "pagesize")
}

// timedOut says whether the server, or a proxy before it, gave up on the request.
func (e *Error) timedOut() bool {
	return e.Status == http.StatusGatewayTimeout ||
		e.Status == http.StatusServiceUnavailable && strings.Contains(e.Body, "timely response")
}

// proof is the largest number of elements that one list call brought over the connections that are open. A server
// may ignore a limit that is larger than its own setting and serve what its setting allows, without a word: then
// an answer shorter than the limit can be cut. It can't be where it is also shorter than one that came before.
// Where connections are made anew the setting may be another, and the proof starts again.
type proof struct{ elements atomic.Int64 }

// complete says whether a list call for limit elements that brought n is proven to have brought all there were.
func (p *proof) complete(n, limit int) bool {
	return n == 0 || n < limit && int64(n) < p.elements.Load()
}

func (p *proof) saw(n int) {
	for {
		most := p.elements.Load()
		if int64(n) <= most || p.elements.CompareAndSwap(most, int64(n)) {
			return
		}
	}
}

func (p *proof) forget() { p.elements.Store(0) }
