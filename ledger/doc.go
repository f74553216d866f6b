// Package ledger holds the domain: offsets, updates, events, the contract entries of a snapshot, the scope of
// what is read, and their decoding from the JSON that a participant serves.
//
// It knows no HTTP and no SQL and imports nothing else of this project. Decoding is strict: duplicate keys, bad
// UTF-8, an element with two variants or none and a missing required field are errors that name the offset;
// what is merely new (an unknown update or event kind, an unknown member) is kept as the server sent it.
package ledger
