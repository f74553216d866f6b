// Package audit verifies what a database holds: it reads a ledger again, compares it with what is stored, and repairs
// what differs, or seals the result. Comparing makes the rows again that should be stored, and finds which of the
// stored ones differ; a seal is the result of comparing a window, with a digest of its rows.
//
//   - verify*.go choose what is read again of a source, for a command, and sealing_*.go do so in the background, at a
//     limited rate; snapshot_walk.go is how both walk over a snapshot.
//   - page.go, carried.go, active.go, records.go, derived.go, coverage.go, lookups.go and packages.go each compare what
//     they are named after, in one read-only snapshot of the database, and repair it (active contracts: take_in.go),
//     with a lease of its own (repair.go), while the writers that it concerns wait.
//   - table_*.go compare the rows of one table with those that writing would make, follows.go with those that follow
//     from other tables; held.go compares what the database says that it holds with itself; one_update.go compares one
//     update, for people.
//   - seal_next.go chooses the next window, sealer.go and seal_write.go seal it, and seal_compare.go compares what is
//     stored with the seals, without any source.
//   - divergence.go finds where a restored participant and the database part.
//   - redact*.go erase content, and note that it must not come back.
//
// It uses package store and the store's internal packages, and none of them uses it. Sources are interfaces: it knows
// no HTTP.
package audit
