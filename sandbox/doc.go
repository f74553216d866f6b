// Package sandbox simulates a ledger participant: a deterministic ledger grown
// from a seed, the participant's JSON over HTTP with its real limits and errors,
// faults on demand, and the truth, which says what a database that indexed the
// ledger must hold.
//
// [NewLedger] makes a ledger and [Ledger.Grow] adds updates to it. [LoadReplay]
// makes one of recorded responses instead. [NewServer] serves either. [Ledger.Truth]
// and [Ledger.TruthFromSnapshot] give the rows to compare with.
//
// Invariants:
//
//   - The same options give the same ledger, byte for byte, however the growth is
//     cut into calls of Grow.
//   - A contract is created once, archived at most once, and archived on the
//     synchronizer where it is active. Offsets and record times strictly grow.
//   - Only the decisions are kept in memory (about 200 bytes an update); names,
//     payloads and hashes are derived from the seed whenever they are served.
//   - The truth comes from those decisions, never from a served response.
//   - The package encodes with its own code and imports nothing else of this
//     module, so that an error in a client's types cannot hide in the server's.
package sandbox
