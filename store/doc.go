// Package store keeps the PostgreSQL side: facts, coverage, projections, carried rows, checkpoints, leadership and
// the schema's migrations.
//
// Its invariants:
//
//   - An update's rows exist if and only if its offset is covered: facts and their coverage row commit together.
//   - The watermark moves only by compare-and-swap, and only forward.
//   - A record of the transaction history, what is derived from it, and the position behind it commit together. The
//     position moves only by compare-and-swap of its revision.
//   - Every write transaction first holds the row of its lease at its own epoch, so that a leader of the past
//     can commit nothing.
//   - After any error the outcome of a transaction is unknown: callers read the watermark, or the position,
//     again, never assume.
//
// A writer takes a lease, and has what only that lease may do: UpdatesWriter, TransactionsWriter or PruningWriter.
// Package audit compares, repairs and seals.
//
// Each package in internal has one subject, and the linter keeps it from using what is above it: tables (which tables
// there are), pgcopy (encoding for COPY), pg (codes of errors, ends of transactions), session (connections, refusals),
// partitions (attaching and cutting them), names (numbers of names), redacted (what was redacted, and taking it out),
// leadership (the term of a lease), bounds (what the database says that it holds), amulets (the updates that records
// follow from), rows (pure functions from what was read to rows), active (what updates do to the active set), writing
// (what writers and repairs write alike), storetest (what the tests share).
//
// It knows no HTTP and nothing of package ingest, which declares the interfaces that the writers satisfy.
package store
