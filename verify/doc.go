// Package verify reads a ledger again and compares it with what is stored, says what differs, and has it written again. It
// knows no HTTP and no SQL: participant, scan and store do that behind the interfaces here.
package verify
