package bench

import (
	"encoding/json"
	"net/http"
	"sync"
)

// pathStats is the path at which a server of bench reports its requests so far.
const pathStats = "/bench/stats"

// stats counts a server's requests.
type stats struct {
	Requests map[string]int64 // by path
	Bytes    int64            // of the answers' bodies
}

// total returns the number of requests.
func (s stats) total() (n int64) {
	for _, count := range s.Requests {
		n += count
	}
	return n
}

// requestCounter counts the requests and answers of a server.
type requestCounter struct {
	next http.Handler

	mu sync.Mutex
	stats
}

func newRequestCounter(next http.Handler) *requestCounter {
	return &requestCounter{next: next, stats: stats{Requests: map[string]int64{}}}
}

func (m *requestCounter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == pathStats {
		m.mu.Lock()
		text, err := json.Marshal(m.stats)
		m.mu.Unlock()
		if err != nil {
			panic(err) // can't happen for numbers
		}
		w.Write(text)
		return
	}
	counted := &countingWriter{ResponseWriter: w}
	defer func() { // also if the handler aborts the connection
		m.mu.Lock()
		m.Requests[r.URL.Path]++
		m.Bytes += counted.n
		m.mu.Unlock()
	}()
	m.next.ServeHTTP(counted, r)
}

type countingWriter struct {
	http.ResponseWriter
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.n += int64(n)
	return n, err
}

// Unwrap lets a handler reach the connection.
func (c *countingWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }
