package participant

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"ledgerindexer/internal/jsonhttp"
	"ledgerindexer/ledger"
)

// failed looks at why a request for asked elements failed and halves the size where that helps. It says whether to
// ask again at once; where not, the error is the caller's.
func failed(s *jsonhttp.Size, asked int, err error) (again bool) {
	var e *Error
	var p *ledger.Problem
	if asked <= 1 || !errors.As(err, &e) || errors.As(err, &p) {
		return false
	}
	switch {
	case e.Status == http.StatusRequestEntityTooLarge, e.aboutPageSize():
		s.Halve(asked, true)
		return true
	case errors.Is(e, jsonhttp.ErrTooLarge):
		s.Halve(asked, false)
		return true
	case e.timedOut(), errors.Is(e, jsonhttp.ErrSlow):
		// The server, or the way to it, is struggling: a smaller request, but when the caller's patience says so.
		s.Halve(asked, false)
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
