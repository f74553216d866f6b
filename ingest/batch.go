package ingest

import "ledgerindexer/ledger"

const (
	// A batch takes what has been fetched meanwhile, up to so many updates: more would make latency, not speed.
	batchUpdates = 2_000
	// It is full when so much JSON has come for it.
	batchBytes = bytesInFlight / 4
)

// fetched is a page that was read and is to be written.
type fetched struct {
	page     ledger.Page
	answered bool // by the server; a page that only says "current" was not read from it
	current  bool // the ledger had nothing more when it was read
}

// batch is what one transaction writes.
type batch struct {
	pages   []ledger.Page // that follow one another
	updates int
	bytes   int64 // of JSON, also of pages that were empty
	current bool  // the ledger had nothing more
}

func (b *batch) to() ledger.Offset { return b.pages[len(b.pages)-1].To }

func (b *batch) span() ledger.Range { return ledger.Range{From: b.pages[0].From, To: b.to()} }

// full tells whether it is enough for a transaction.
func (b *batch) full() bool { return b.updates >= batchUpdates || b.bytes >= batchBytes }

func (b *batch) take(f fetched) {
	if f.page.To > f.page.From || len(f.page.Checkpoints) > 0 {
		b.pages = append(b.pages, f.page)
	}
	b.updates += len(f.page.Updates)
	b.bytes += f.page.Bytes
	b.current = f.current
}
