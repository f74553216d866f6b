// Package audit proves what a database holds: it reads a ledger again, compares it with what is stored, repairs what
// differs, and seals with digests what was compared.
//
//   - verify*.go choose what is read again of a source, and sealing_*.go do so in the background, at a limited rate;
//     snapshot_walk.go is how both walk over a snapshot.
//   - page.go, carried.go, active.go, records.go, derived.go, coverage.go, lookups.go and packages.go say of what they
//     are named after how it differs, in one read-only snapshot each, and put that right, with a lease of its own
//     (repair.go), while the writers that it concerns wait; what is active is put right by take_in.go. table_*.go
//     compare the rows of one table with those that writing would make, follows.go with those that follow from other
//     tables; held.go compares what is held with itself. one_update.go compares one update, for people.
//   - seal_next.go says what is sealed next, sealer.go and seal_write.go keep digests of what was compared, and
//     seal_compare.go compares what is stored with them, without any source.
//   - divergence.go finds where a restored participant and the database part.
//   - redact*.go erase, and note that it must not come back.
//
// It stands on package store and its rooms, and none of them uses it. Sources are interfaces: it knows no HTTP.
package audit
