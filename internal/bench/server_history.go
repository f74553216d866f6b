package bench

import (
	"net/http"
	"strings"

	"ledgerindexer/sandbox"
)

// historyPath and historyMost are where a Scan service has its transaction history, and how many records a page has at most.
const (
	historyPath = "/v0/transactions"
	historyMost = 1000
)

// historyServer serves the records of a transaction history, which stands still.
type historyServer struct {
	data elements
	rest http.Handler
}

func newHistoryServer(data elements) *historyServer {
	data.find("event_id", "") // now, and not when somebody waits for it
	return &historyServer{data: data, rest: sandbox.NewScan(sandbox.NewLedger(sandbox.Options{Seed: seed}), sandbox.ScanOptions{})}
}

// ServeHTTP answers as Scan does: nothing follows an event id that it does not know, and it fails for one of two records.
func (s *historyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != historyPath {
		s.rest.ServeHTTP(w, r)
		return
	}
	var q struct {
		Size  int    `json:"page_size"`
		After string `json:"page_end_event_id"`
		Order string `json:"sort_order"`
	}
	if !read(w, r, &q) {
		return
	}
	size := min(max(q.Size, 1), historyMost)
	down := q.Order == "desc"
	i := 0 // the first one upwards, or the one behind it downwards
	if down {
		i = s.data.len()
	}
	if q.After != "" {
		at, ok := s.data.find("event_id", q.After)
		switch {
		case !ok:
			send(w, nil, `{"transactions":[`, `]}`)
			return
		case at < 0:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			fprint(w, `{"error":"ERROR: more than one row returned by a subquery used as an expression"}`)
			return
		}
		if i = at; !down {
			i++
		}
	}
	if !down {
		send(w, s.data.slice(i, min(i+size, s.data.len())), `{"transactions":[`, `]}`)
		return
	}
	var newest []string
	for ; i > 0 && len(newest) < size; i-- {
		newest = append(newest, string(s.data.slice(i-1, i)))
	}
	send(w, nil, `{"transactions":[`+strings.Join(newest, ","), `]}`)
}
