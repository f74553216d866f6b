// Package participant talks to one ledger participant over its JSON API: the update stream, the snapshot of active
// contracts, look-ups of contracts and updates by their ids, and package vetting (interface.md, endpoints 1 to 5).
//
// ReadUpdates, TailUpdates and ReadSnapshot read for the client's scope and know how far an answer reaches; Updates and
// ActiveContracts are the plain operations with all their fields. A request that breaks a rule of the interface is a
// *RequestError and is not sent.
//
// What servers offer differs by version, so Discover finds out which paths there are and the best of them is used.
// The package guarantees that a Page is complete for the range it names, whatever the server's limits are, and
// that a piece of a snapshot says truly whether more follows. Once Discover knows who the participant is, an answer
// over a new connection counts only after it was asked again who answers.
//
// It does not retry: a failed request is an *Error, which may be tried again, or wraps a *ledger.Problem or
// *ledger.Bug, which may not; verdict.go decides. Only a size that the server refuses is halved and asked for again at
// once, and so is a request with a fresh token where the server refuses the one it had. Tokens and passwords never stand
// in an error or in the log.
package participant
