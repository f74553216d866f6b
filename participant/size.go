package participant

import (
	"errors"
	"net/http"
	"strings"
	"sync"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// shrinkAfter asks for fewer elements from now on, if that is what a failed request calls for; then the caller asks
// again.
func shrinkAfter(s *jsonhttp.Size, asked int, err error) (again bool) {
	e, unusable := errors.AsType[*Error](err)
	if _, judged := errors.AsType[*ledger.Problem](err); !unusable || judged {
		return false
	}
	refused := e.Status == http.StatusRequestEntityTooLarge || e.aboutPageSize()
	return s.ShrinkAfter(e, asked, refused, e.timedOut() || errors.Is(e, jsonhttp.ErrSlow))
}

// aboutPageSize reports whether the server refused maxPageSize.
func (e *Error) aboutPageSize() bool {
	if e.Status != http.StatusBadRequest {
		return false
	}
	text := strings.NewReplacer("_", "", " ", "", "-", "").Replace(strings.ToLower(e.Cause + e.Body))
	return strings.Contains(text, "pagesize")
}

// timedOut reports whether the server, or a proxy before it, gave up on the request.
func (e *Error) timedOut() bool {
	return e.Status == http.StatusGatewayTimeout ||
		e.Status == http.StatusServiceUnavailable && strings.Contains(e.Body, "timely response")
}

// longestList holds the largest number of elements that one list call has returned over the open connections. A server
// silently cuts a list at its own setting, even below the limit. So a list shorter than the limit may have been cut,
// unless it is also shorter than one that the server returned before.
//
// After a new connection, or the end of one with a request on it, a server with another setting may answer, so it
// resets the maximum. Calls in flight at that moment are neither counted nor judged.
type longestList struct {
	mu         sync.Mutex
	elements   int
	generation int // counts the restarts
}

// begin returns the generation for a list call that is about to be sent; pass it to complete and observe.
func (p *longestList) begin() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.generation
}

// complete reports whether a list call for limit elements that returned n certainly returned all there were.
func (p *longestList) complete(began, n, limit int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return n == 0 || n < limit && n < p.elements && began == p.generation
}

func (p *longestList) observe(began, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if began == p.generation {
		p.elements = max(p.elements, n)
	}
}

func (p *longestList) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.elements = 0
	p.generation++
}
