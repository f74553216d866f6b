package ingest

import "ledgerindexer/ledger"

// How much of the updates is written at once.
const (
	// A batch is full with this many updates, or this many bytes of JSON, a quarter of the loader's mostRoom: more would
	// add latency, not throughput.
	batchUpdates = 2_000
	batchBytes   = 6 << 20
)

// fetched is a page that was read and not written yet.
type fetched struct {
	page     ledger.Page
	events   int  // of the page; counted only while catching up
	answered bool // the page was read from the server; false: it only carries current
	current  bool // the ledger had nothing more when it was read
	trail    Trail
}

// batch is the consecutive pages that one transaction writes.
type batch struct {
	pages   []ledger.Page // consecutive
	updates int
	events  int
	bytes   int64 // of JSON, that of pages without updates included
	trails  []Trail
	current bool // the ledger had nothing more
}

func (b *batch) to() ledger.Offset { return b.pages[len(b.pages)-1].To }

func (b *batch) span() ledger.Range { return ledger.Range{From: b.pages[0].From, To: b.to()} }

func (b *batch) full() bool { return b.updates >= batchUpdates || b.bytes >= batchBytes }

func (b *batch) take(f fetched) {
	if f.page.To > f.page.From || len(f.page.Checkpoints) > 0 {
		b.pages = append(b.pages, f.page)
		b.trails = append(b.trails, f.trail)
	}
	b.updates += len(f.page.Updates)
	b.events += f.events
	b.bytes += f.page.Bytes
	b.current = f.current
}
