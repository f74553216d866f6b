package participant

import (
	"errors"
	"net/http"
	"strings"
	"sync"

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
// Where connections are made anew the setting may be another, and the proof starts again: calls that were on their way then
// prove nothing, and are proven by nothing.
type proof struct {
	mu       sync.Mutex
	elements int
	forgot   int // how often it started again
}

// begin is to be called before a list call is sent; the others take what it returned.
func (p *proof) begin() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forgot
}

// complete says whether a list call for limit elements that brought n is proven to have brought all there were.
func (p *proof) complete(began, n, limit int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return n == 0 || n < limit && n < p.elements && began == p.forgot
}

func (p *proof) saw(began, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if began == p.forgot {
		p.elements = max(p.elements, n)
	}
}

func (p *proof) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.elements = 0
	p.forgot++
}
