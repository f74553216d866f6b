// Package scan is the HTTP client of a Scan service: its transaction history, POST /v0/transactions (interface.md,
// endpoint 6), and who it is. It knows what a page is, how large one may be, and what an answer means. Which page comes after which, and
// whether the history has an end, is for the loop that reads it (package ingest).
//
// The path is deprecated, and gone from Splice 0.7 on: a server may well not have it (ledger.ErrNotOffered).
package scan
