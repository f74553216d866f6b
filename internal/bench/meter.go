package bench

import (
	"encoding/json"
	"net/http"
	"sync"
)

// pathStats is where a server that bench starts says what it was asked so far.
const pathStats = "/bench/stats"

// stats is what a server was asked.
type stats struct {
	Requests map[string]int64 // by path
	Bytes    int64            // of the answers' bodies
}

// total is the number of requests.
func (s stats) total() (n int64) {
	for _, count := range s.Requests {
		n += count
	}
	return n
}

// meter counts what passes through a server.
type meter struct {
	next http.Handler

	mu sync.Mutex
	stats
}

func newMeter(next http.Handler) *meter {
	return &meter{next: next, stats: stats{Requests: map[string]int64{}}}
}

func (m *meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == pathStats {
		m.mu.Lock()
		told, err := json.Marshal(m.stats)
		m.mu.Unlock()
		if err != nil {
			panic(err) // of numbers: can't happen
		}
		w.Write(told)
		return
	}
	counted := &countingWriter{ResponseWriter: w}
	defer func() { // also where the handler breaks the connection off
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
