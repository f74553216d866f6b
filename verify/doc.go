// Package verify reads a ledger again and compares it with what is stored, reports what differs, and repairs it. It knows no HTTP
// and no SQL: participant, scan and store implement its interfaces.
package verify
