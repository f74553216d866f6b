package bench

import (
	"context"
	"fmt"

	"ledgerindexer/sandbox"
)

// history measures how fast a transaction history is read.
func (h *harness) history(ctx context.Context) error {
	data, path, err := h.dataset(fmt.Sprintf("history-%d", h.Records),
		func(name string) error { return buildHistory(ctx, name, h.Records) })
	if err != nil {
		return err
	}
	run := func() (usage, error) {
		r, err := h.indexAll(ctx, []source{{serveOptions: serveOptions{Kind: serveHistory, Data: path}, pair: h.db.pair,
			rows: data.Rows}})
		return r.usage, err
	}
	o := copied{what: "transaction history, records/s", unit: "records", n: data.Elements, run: run, least: 0.80,
		places: ofRecords}
	s, limits, err := h.againstCopy(ctx, o)
	if err != nil {
		return err
	}
	h.add(section{title: "Transaction history", table: copyTable(o, s, limits), notes: []string{
		fmt.Sprintf("%s records with %s bytes of JSON each, on average; against psql COPY of their rows. A service gives "+
			"pages of %d, each of which has to be asked for with the last event id of the one before.",
			thousands(float64(data.Elements)),
			thousands(float64(data.Bytes)/float64(data.Elements)), historyMost),
	}})
	return nil
}

// buildHistory makes a data set of the first n records of a transaction history.
func buildHistory(ctx context.Context, name string, n int) error {
	l := sandbox.NewLedger(sandbox.Options{Seed: seed})
	for len(sandbox.NewScan(l, sandbox.ScanOptions{}).EventIDs()) < n {
		l.Grow(max(20_000, l.Len()))
	}
	return buildRecords(ctx, name, l, sandbox.ScanOptions{}, n)
}

// buildRecords makes a data set of the first n records of a ledger's transaction history.
func buildRecords(ctx context.Context, name string, l *sandbox.Ledger, o sandbox.ScanOptions, n int) error {
	return build(name, countRecord, func(b *builder) error {
		known := 0 // how many of the next page's records were added before
		o.Rewrite = func(e sandbox.Element) []byte {
			if known > 0 {
				known--
			} else if b.Elements < int64(n) {
				b.add(e.Offset, e.Raw)
			}
			return nil
		}
		service := sandbox.NewScan(l, o)
		ids := service.EventIDs()
		share := map[string]int{} // how many records have an id
		for _, id := range ids {
			share[id]++
		}
		for b.Elements < int64(n) && ctx.Err() == nil {
			at, after := int(b.Elements), ""
			for at > 0 && share[ids[at-1]] > 1 { // the service fails after such an id
				at--
			}
			if at > 0 {
				after = ids[at-1]
			}
			known = int(b.Elements) - at
			body := fmt.Sprintf(`{"page_size":%d,"page_end_event_id":%q,"sort_order":"asc"}`, historyMost, after)
			if _, err := ask(ctx, service, pathHistory, body); err != nil {
				return err
			}
		}
		b.Last = l.End()
		return ctx.Err()
	})
}

// countRecord adds the rows that a record must leave.
func countRecord(rows map[string]int64, raw []byte) (events int64, err error) {
	rows["transactions"]++
	rows["transfers"] += count(raw, `"transfer":{`)
	return 1, nil
}
