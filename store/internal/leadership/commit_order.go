package leadership

import "context"

// CommitOrder is the place of a write among others that run at the same time: their transactions begin in their order,
// and are committed in it. Package ingest declares the same interface, as neither imports the other.
type CommitOrder = interface {
	// First reports whether nothing is before it: Begin and Wait wait for nothing.
	First() bool
	// Begin waits until the transaction of the write before has begun: one that is open then waits for no other writer,
	// such as a repair, that waits for this one. It fails if the write before has.
	Begin(ctx context.Context) error
	// Began says that the transaction has begun. It is called at most once.
	Began()
	// Wait waits until the write before is stored, and fails if it was not. It may be called again.
	Wait(ctx context.Context) error
}
