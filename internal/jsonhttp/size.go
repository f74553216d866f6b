package jsonhttp

import "sync"

// Size is how many elements are asked for in one request. It follows what the server can do: a refusal lowers it
// for good, trouble lowers it for a while. It is safe for concurrent use.
type Size struct {
	mu   sync.Mutex
	now  int
	most int // what the server is not known to refuse
}

// NewSize begins with the most that may be asked for, 1 or more.
func NewSize(most int) *Size { return &Size{now: most, most: most} }

// Ask is how many to ask for now.
func (s *Size) Ask() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Worked lets the size creep back: fast enough to recover within some dozens of requests, slowly enough that a
// server which is too slow for more does not fail every second request.
func (s *Size) Worked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = min(s.most, s.now+s.most/32+1)
}

// Halve lowers the size to half of what was asked for, 2 or more, in a request that failed; forGood says that the server
// will never serve as many.
func (s *Size) Halve(asked int, forGood bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = min(s.now, asked/2)
	if forGood {
		s.most = min(s.most, asked/2)
	}
}
