// Package scan is the HTTP client of a Scan service: its transaction history, POST /v0/transactions (interface.md,
// endpoint 6). It knows which page comes after which and what an answer means, and decodes nothing beyond that.
//
// The path is deprecated, and gone from Splice 0.7 on: a server may well not have it (ledger.ErrNotOffered).
package scan
