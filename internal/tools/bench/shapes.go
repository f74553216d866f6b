package bench

import (
	"context"
	"fmt"

	"ledgerindexer/sandbox"
)

// shapes measures the events indexed per second, by events per update and transaction shape.
func (h *harness) shapes(ctx context.Context) error {
	table := [][]string{{"shape", "events of an update", "bytes of an update", "updates/s", "events/s", "MB/s",
		"CPU s for 100,000 updates", "peak MiB"}}
	for _, shape := range []struct{ flag, name string }{{"acs-delta", sandbox.ACSDelta},
		{"ledger-effects", sandbox.LedgerEffects}} {
		for _, events := range []int{1, 5, 15} {
			data, path, err := h.updates(ctx, updatesOptions{N: max(h.Updates/events, 1), Events: events, Shape: shape.name})
			if err != nil {
				return err
			}
			s := &samples{}
			for range h.Runs {
				r, err := h.index(ctx, serveOptions{Kind: serveUpdates, Data: path, Pages: true}, data.Rows, "--shape="+shape.flag)
				if err != nil {
					return fmt.Errorf("%s, %d events: %w", shape.flag, events, err)
				}
				s.add(data.Elements, r)
			}
			n, updates := float64(data.Elements), median(s.rate)
			h.say("%s, %.2f events an update: %.0f events/s", shape.flag, float64(data.Events)/n, updates*float64(data.Events)/n)
			table = append(table, cells(shape.flag, cell("%.2f", float64(data.Events)/n), thousands(float64(data.Bytes)/n),
				thousands(updates),
				thousands(updates*float64(data.Events)/n), cell("%.0f", updates*float64(data.Bytes)/n/1e6),
				cell("%.2f", median(s.cpu)), cell("%.0f", median(s.peak))))
		}
	}
	h.add(section{title: "Events", table: table, notes: []string{"From a server with pages. Ledgers of 1, 5 and 15 " +
		"events an update in the shape of ledger effects, on average; the shape of ACS deltas shows fewer of them."}})
	return nil
}

// The updates of the measurement of memory are this large: about 75 kB.
const (
	largeUpdates = 6_000
	largeEvents  = 68
)

// memory measures the indexer's memory with pages of 2,000 large updates.
func (h *harness) memory(ctx context.Context) error {
	data, path, err := h.updates(ctx, updatesOptions{N: largeUpdates, Events: largeEvents, Shape: sandbox.ACSDelta})
	if err != nil {
		return err
	}
	s := &samples{}
	for range h.Runs {
		r, err := h.index(ctx, serveOptions{Kind: serveUpdates, Data: path, Pages: true}, data.Rows)
		if err != nil {
			return err
		}
		s.add(data.Elements, r)
		h.say("pages of large updates: %.0f MiB, %.0f updates/s", last(s.peak), last(s.rate))
	}
	h.target(target{what: "peak resident memory of the indexer, pages of 2,000 large updates", measured: median(s.peak),
		wanted: 400,
		atMost: true, unit: "MiB"})
	h.add(section{title: "Large updates", notes: []string{shapeOf(data), fmt.Sprintf("Pages of 2,000 of them: %.0f MiB "+
		"of memory, %s updates/s.",
		median(s.peak), thousands(median(s.rate)))}})
	return nil
}
