package jsonhttp

import (
	"errors"
	"sync"
)

// Size is the number of elements to request at once. It adapts to the server: a refusal lowers it for good, a failure
// lowers it for a while. It is safe for concurrent use.
type Size struct {
	mu   sync.Mutex
	now  int
	most int // the server is not known to refuse this
}

// NewSize returns a Size that begins with the largest allowed number, 1 or more.
func NewSize(most int) *Size { return &Size{now: most, most: most} }

// Ask returns how many elements to request now.
func (s *Size) Ask() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Worked raises the size a little after a success: fast enough to recover within some dozens of requests, slowly enough
// that a server that is too slow for more does not fail every second request.
func (s *Size) Worked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = min(s.most, s.now+s.most/32+1)
}

// halve lowers the size to half of a failed request for asked elements, 2 or more. With forGood the server will never
// serve as many.
func (s *Size) halve(asked int, forGood bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = min(s.now, asked/2)
	if forGood {
		s.most = min(s.most, asked/2)
	}
}

// ShrinkAfter halves the size after a failed request for asked elements, if that can help. With refused the server says
// that they are too many, with strained it may have given up because of their number. It reports whether to retry at
// once; if not, the caller handles the error, and the next request is smaller.
func (s *Size) ShrinkAfter(err error, asked int, refused, strained bool) (again bool) {
	if asked <= 1 {
		return false
	}
	again = refused || errors.Is(err, ErrTooLarge)
	if again || strained {
		s.halve(asked, refused)
	}
	return again
}
