// Package verify reads a ledger again and has it compared with what is stored, reports what differs, and has it
// repaired. It decides what is read and in which order; package store/audit decides what counts as a difference
// (compare_*.go) and how it is repaired (repair_*.go). It knows no HTTP and no SQL: participant, scan and store/audit
// implement its interfaces.
package verify
