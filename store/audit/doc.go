// Package audit compares what a database holds with what its sources show and with itself, repairs what differs, and
// seals with digests what was compared.
//
//   - compare_*.go say what differs, in one read-only snapshot each.
//   - repair_*.go put it right, in a role of its own, while the writers that it concerns wait.
//   - seal_*.go keep digests of what was compared, and compare what is stored with them, without any source.
//
// It stands on package store and its rooms, and none of them uses it. It knows nothing of package verify, which
// declares the interfaces that Stored, Sealer and Repairer satisfy.
package audit
