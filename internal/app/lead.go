package app

import (
	"context"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// How long a process that takes a lease waits: while another one has it, and until its own term has ended.
const (
	// How often a process that stands by or waits looks whether it can lead.
	standbyEvery = time.Second
	// How long the end of a term waits for each goroutine or connection that ends with it.
	shutdownGrace = 3 * time.Second
	// The lock of a killed leader stays for some seconds. One that is still held after this time belongs to a running
	// process.
	leadPatience = 10 * time.Second
	// The time limit for recording a state in the database.
	noteFor = 3 * time.Second
)

// writer is what the holder of any lease is.
type writer interface {
	Lost() <-chan struct{}
	Err() error
	RecordProgress(ctx context.Context, progress ledger.Progress) error
	Close()
}

// leadNow takes a lease. If another process has it, the error names that, with do as the cure.
func leadNow[W any](ctx context.Context, db *store.Store, lease store.Lease,
	take func(context.Context) (W, bool, error), do string) (none W, err error) {
	deadline := time.Now().Add(leadPatience)
	for {
		leader, ok, err := take(ctx)
		if err != nil || ok {
			return leader, err
		}
		if time.Now().After(deadline) {
			who, err := db.Leadership(ctx, lease)
			if err != nil {
				return none, err
			}
			return none, &ledger.Problem{What: "another process writes this database: " + who.Holder, Do: do}
		}
		ingest.Sleep(ctx, standbyEvery)
		if ctx.Err() != nil {
			return none, context.Cause(ctx)
		}
	}
}

// whileLeading returns a context that ends when the lead is lost, which is then its cause, or when end is called.
func whileLeading(ctx context.Context, leader writer) (leading context.Context, end func()) {
	leading, lose := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-leader.Lost():
			lose(leader.Err())
		case <-leading.Done():
		}
	}()
	return leading, func() { lose(nil) }
}
