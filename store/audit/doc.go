// Package audit proves what a database holds: it reads a ledger again, compares it with what is stored, repairs what
// differs, and seals with digests what was compared.
//
//   - verify_*.go choose what is read again of a source, and seals*.go do so in the background, at a limited rate.
//   - compare_*.go say what differs, in one read-only snapshot each.
//   - repair_*.go put it right, in a role of its own, while the writers that it concerns wait.
//   - seal_*.go keep digests of what was compared, and compare what is stored with them, without any source.
//   - redact*.go erase, and note that it must not come back.
//
// It stands on package store and its rooms, and none of them uses it. Sources are interfaces: it knows no HTTP.
package audit
