// Package ledger holds the domain: offsets, updates, events, the contract entries of a snapshot, the records of the
// transaction history, the scope of what is read, and their decoding from the JSON that a participant and a Scan
// service serve.
//
// It knows no HTTP and no SQL and imports nothing else of this project. Decoding is strict: duplicate keys, bad
// UTF-8, an element with two variants or none and a missing required field are errors that name the offset, or the
// event id of a record. Unknown kinds of updates, events, entries and records, and unknown members, are kept as the
// server sent them.
package ledger
