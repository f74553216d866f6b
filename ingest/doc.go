// Package ingest holds the loops that bring the ledger into the database: updates, the transaction history, and the
// snapshot that a backfill seeds with. It owns the interfaces it needs and knows no HTTP and no SQL.
//
// A loop reads on from what is committed, retries what may pass with a backoff that every commit resets, and returns
// what an operator must cure (*ledger.Problem), what should never have been asked (*ledger.Bug) and what cannot be
// understood (*ledger.DecodeError) at once. After any error it asks the sink where it stands, and never assumes.
//
// Beside the updates there are background tasks: look-ups of older contracts, and the vetted packages. Nothing that
// happens to them ends or holds up the stream; how they fare is recorded instead.
package ingest
