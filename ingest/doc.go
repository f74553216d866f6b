// Package ingest holds the loops that bring the ledger into the database: updates, the transaction history, and the
// snapshot that a backfill seeds with. It owns the interfaces it needs and knows no HTTP and no SQL.
//
// A loop reads on from what is committed, retries what may pass with a backoff that every commit resets, and returns
// what an operator must cure (*ledger.Problem), what should never have been asked (*ledger.Bug) and what cannot be
// understood (*ledger.DecodeError) at once. After any error it asks the sink where it stands, and never assumes.
//
// What fails is tried again through Retry. Who does several things at a time has one goroutine that owns the state (eventLoop):
// the loader, with which catching up, the tail and filling in read updates, and the reading of a snapshot. What is written
// concurrently and has to be committed in order goes through orderedCommits. Before anything is read, and wherever another
// server may have begun to answer, forkCheck sees whether the participant still has the history that is stored.
//
// Beside the updates there are background tasks: look-ups of older contracts, and the vetted packages. Nothing that
// happens to them ends or holds up the stream; how they fare is recorded instead.
package ingest
