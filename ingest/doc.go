// Package ingest holds the loops that bring the ledger into the database: updates, the transaction history, and the
// snapshot that a backfill seeds with. It owns the interfaces it needs and knows no HTTP and no SQL.
//
// A loop resumes from what is committed. It retries errors that may pass, with a backoff that every commit resets, and
// returns the others at once: what an operator must cure (*ledger.Problem), a request that should never have been sent
// (*ledger.Bug), and an answer that can't be understood (*ledger.DecodeError). After any error it reads its position
// from the sink again.
//
// loop.go shows the loop of the updates: read, write, move the watermark. Retry tries again what failed, and pace.go
// says when the next request is sent, such as after a 429. eventLoop runs work that does several things at a time, with
// one goroutine that owns the state: the loader, which reads updates for catching up and the tail, and the reading of a
// snapshot. orderedCommits writes concurrently and commits in order. forkCheck detects a participant whose updates are
// not the stored ones: before anything is read, and whenever another server may have begun to answer.
//
// Background tasks, which task.go names, run beside the updates. Their failures are recorded, and never end or delay
// the stream.
package ingest
