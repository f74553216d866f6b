package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// The data sets that are served are made once, in pages of these sizes, from a ledger of the sandbox.
const (
	seed     = 1
	pageSize = 2000 // elements; the largest page of updates

	historyMost = 1000 // records of a page of the transaction history
	listLimit   = 200  // elements of a list, by the servers' default
)

// The paths that are asked here, and by the sequential reader.
const (
	pathUpdates      = "/v2/updates"
	pathUpdatesPage  = "/v2/updates/get-updates-page"
	pathSnapshotPage = "/v2/state/active-contracts-page"
	pathHistory      = "/v0/transactions"
)

// drop is an http.ResponseWriter that keeps the status and the answer of a request that was made for its elements.
type drop struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (d *drop) Header() http.Header         { return d.header }
func (d *drop) WriteHeader(status int)      { d.status = status }
func (d *drop) Write(b []byte) (int, error) { return d.body.Write(b) }

// ask makes a request to a simulated server in this process.
func ask(ctx context.Context, h http.Handler, path, body string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://sandbox"+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer := &drop{header: http.Header{}, status: http.StatusOK}
	h.ServeHTTP(answer, r)
	if answer.status != http.StatusOK {
		return nil, fmt.Errorf("the simulated server refuses %s: %d: %s", path, answer.status, answer.body.Bytes())
	}
	return answer.body.Bytes(), nil
}

// eachUpdate calls add with every update of a ledger from index from on, as a server sends it in a scope.
func eachUpdate(ctx context.Context, l *sandbox.Ledger, scope sandbox.Scope, from int,
	add func(offset int64, raw []byte)) error {
	h := sandbox.NewServer(l, sandbox.ServerOptions{Rewrite: func(e sandbox.Element) []byte {
		add(e.Offset, e.Raw)
		return nil
	}})
	format := scope.UpdateFormat()
	for n := l.Len(); from < n; from += pageSize {
		var begin int64
		if from > 0 {
			begin = l.Offset(from - 1)
		}
		body := fmt.Sprintf(`{"beginOffsetExclusive":%d,"endOffsetInclusive":%d,"maxPageSize":%d,"updateFormat":%s}`,
			begin, l.Offset(min(from+pageSize, n)-1), pageSize, format)
		if _, err := ask(ctx, h, pathUpdatesPage, body); err != nil {
			return err
		}
	}
	return nil
}

// updatesOptions configure the updates to make.
type updatesOptions struct {
	N      int    // how many
	Events int    // of each in the shape of ledger effects, on average
	Shape  string // of package sandbox
	// First, if not 0, is the first offset, and offsets have no gaps.
	First int64
	// Parties is how many the participant hosts; 0: as many as the simulated ledger has by itself.
	Parties int
	// Views are of all interfaces.
	Views bool
}

// ledger configures the ledger that the updates are of.
func (o updatesOptions) ledger() sandbox.Options {
	return sandbox.Options{Seed: seed, EventsPerUpdate: o.Events, FirstOffset: o.First, NoGaps: o.First > 0,
		Parties: o.Parties}
}

// buildUpdates makes a data set of updates.
func buildUpdates(ctx context.Context, name string, o updatesOptions) error {
	return build(name, countUpdate, func(b *builder) error {
		l := sandbox.NewLedger(o.ledger())
		scope := sandbox.Scope{Shape: o.Shape}
		if o.Views {
			scope.Interfaces = sandbox.InterfaceNames()
		}
		for at := 0; at < o.N; {
			step := min(20_000, o.N-at)
			l.Grow(step)
			if err := eachUpdate(ctx, l, scope, at, b.add); err != nil {
				return err
			}
			at += step
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		b.Last = l.Offset(l.Len() - 1)
		return nil
	})
}

// buildSnapshot makes a data set of the first n entries of a snapshot.
func buildSnapshot(ctx context.Context, name string, n int) error {
	return build(name, countEntry, func(b *builder) error {
		l := sandbox.NewLedger(sandbox.Options{Seed: seed, EventsPerUpdate: 15, ActiveShare: 1})
		l.Grow(n/5 + 100) // the share is a mean, and a snapshot lists the contracts synchronizer by synchronizer
		b.Last = l.End()
		h := sandbox.NewServer(l, sandbox.ServerOptions{Rewrite: func(e sandbox.Element) []byte {
			if b.Elements < int64(n) {
				b.add(e.Offset, e.Raw)
			}
			return nil
		}})
		token := ""
		for b.Elements < int64(n) {
			body := fmt.Sprintf(`{"activeAtOffset":%d,"maxPageSize":%d,"pageToken":%q,"eventFormat":%s}`,
				b.Last, 5*pageSize, token, sandbox.Scope{}.EventFormat())
			answer, err := ask(ctx, h, pathSnapshotPage, body)
			if err != nil {
				return err
			}
			var page struct {
				Next string `json:"nextPageToken"`
			}
			if err := json.Unmarshal(answer, &page); err != nil {
				return fmt.Errorf("read the simulated server's page: %w", err)
			}
			if token = page.Next; token == "" && b.Elements < int64(n) {
				return fmt.Errorf("the simulated ledger has %d active contracts, and not %d", b.Elements, n)
			}
		}
		return nil
	})
}

func countUpdate(rows map[string]int64, raw []byte) (events int64, err error) {
	u, err := ledger.DecodeUpdate(raw)
	return countRows(rows, &u), err
}

// countRows adds the rows of an update. It returns how many events it has: an assignment is one with the creation
// inside it.
func countRows(rows map[string]int64, u *ledger.Update) (events int64) {
	rows["updates"]++
	for e := range u.All {
		rows[e.Table()]++
	}
	for i := range u.Created {
		rows["interface_views"] += int64(len(u.Created[i].InterfaceViews))
	}
	return int64(u.Elements() - len(u.Assigned))
}

// countEntry adds the rows that an entry of a snapshot must leave.
func countEntry(rows map[string]int64, raw []byte) (events int64, err error) {
	rows["created"]++
	rows["reassignments"] += count(raw, `{"JsIncomplete`)
	rows["active_contracts"] += count(raw, `{"JsActiveContract":{`)
	return 1, nil
}

func count(raw []byte, word string) int64 { return int64(bytes.Count(raw, []byte(word))) }
