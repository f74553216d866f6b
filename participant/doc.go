// Package participant reads one ledger participant over its JSON API: the update stream and the snapshot of
// active contracts.
//
// What servers offer differs by version, so Discover finds out which paths there are and the best of them is used.
// The package guarantees that a Page is complete for the range it names, whatever the server's limits are, and
// that a piece of a snapshot says truly whether more follows. Once Discover knows who the participant is, an answer
// over a new connection counts only after it was asked again who answers.
//
// It does not retry: a failed request is an *Error, which may be tried again, or wraps a *ledger.Problem, which
// may not. Only a size that the server refuses is halved and asked for again at once. Tokens and passwords never
// stand in an error or in the log.
package participant
