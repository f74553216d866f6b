// Package scan is the HTTP client of a Scan service. It reads pages of the transaction history, POST /v0/transactions
// (interface.md, endpoint 6), and the service's release and network. It decides how large a page may be and what an
// answer means. Package ingest decides which page comes next, and where the history ends.
//
// Updates reads the updates of the network, POST /v2/updates, as a ledger: pages of them, the newest one, and news.
//
// The path of the transaction history is deprecated and gone from Splice 0.7 on, so a server may not have it
// (ledger.ErrNotOffered).
package scan
