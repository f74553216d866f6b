package bench

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"ledgerindexer/sandbox"
)

// The paths that control a ledger that grows while it is followed: see growing.
const (
	pathGrow  = "/bench/grow" // grow at a rate (updates a second) for so many seconds, and answer with what was added
	startSize = 1000          // updates at the start
)

// growing is a ledger served by the simulated server itself, or by its Scan service: a tail has few updates.
type growing struct {
	ledger   *sandbox.Ledger
	scan     *sandbox.Scan // nil: the participant serves it
	requests *requestCounter
}

func newGrowing(kind string) *growing {
	l := sandbox.NewLedger(sandbox.Options{Seed: seed, EventsPerUpdate: catchupEvents})
	l.Grow(startSize)
	if kind == serveScan {
		scan := sandbox.NewScan(l, sandbox.ScanOptions{})
		return &growing{ledger: l, scan: scan, requests: newRequestCounter(scan)}
	}
	return &growing{ledger: l, requests: newRequestCounter(sandbox.NewServer(l, sandbox.ServerOptions{}))}
}

func (g *growing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != pathGrow {
		g.requests.ServeHTTP(w, r)
		return
	}
	perSecond, err := strconv.ParseFloat(r.URL.Query().Get("rate"), 64)
	if err != nil || perSecond <= 0 {
		http.Error(w, "rate must be a number of updates a second", http.StatusBadRequest)
		return
	}
	d, err := time.ParseDuration(r.URL.Query().Get("for"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	arrived, err := g.grow(r.Context(), perSecond, d)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	text, err := json.Marshal(arrived)
	if err != nil {
		panic(err) // can't happen for numbers
	}
	w.Write(text)
}

// arrival is when a server had an update.
type arrival struct {
	Offset int64
	At     time.Time
}

// grow adds updates at independent times, and returns those that are served: some have no visible event.
func (g *growing) grow(ctx context.Context, perSecond float64, d time.Duration) ([]arrival, error) {
	before := g.ledger.Len()
	var times []time.Time
	random := rand.New(rand.NewPCG(seed, uint64(perSecond)))
	began := time.Now()
	for due := time.Duration(0); ; {
		due += time.Duration(random.ExpFloat64() / perSecond * float64(time.Second))
		if due > d {
			break
		}
		if wait := time.Until(began.Add(due)); wait > 0 {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		times = append(times, time.Now())
		g.ledger.Grow(1)
	}
	if g.scan != nil {
		return g.arrived(ctx, before, times)
	}
	var arrived []arrival
	i := before
	err := eachUpdate(ctx, g.ledger, sandbox.Scope{}, before, func(offset int64, _ []byte) {
		for g.ledger.Offset(i) < offset {
			i++
		}
		arrived = append(arrived, arrival{Offset: offset, At: times[i-before]})
	})
	return arrived, err
}

// arrived returns which of the ledger's updates from index before on its network shows, and when they came.
func (g *growing) arrived(ctx context.Context, before int, times []time.Time) (shown []arrival, err error) {
	came := map[string]time.Time{}
	for i, at := range times {
		came[g.ledger.UpdateID(before+i)] = at
	}
	err = eachNetworkUpdate(ctx, g.scan, func(offset int64, id string, _ []byte) bool {
		if at, ok := came[id]; ok {
			shown = append(shown, arrival{Offset: offset, At: at})
		}
		return true
	})
	return shown, err
}
