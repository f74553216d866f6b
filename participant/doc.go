// Package participant talks to one ledger participant over its JSON API: the update stream, the snapshot of active
// contracts, look-ups of contracts and updates by their ids, and package vetting (interface.md, endpoints 1 to 5).
//
// ReadUpdates, TailUpdates and ReadSnapshot read the client's scope and return the range that an answer covers; Get
// sends a request as its caller wrote it.
//
// Servers of different versions offer different paths. Discover finds those that exist, and the best of them is used.
// The package guarantees that a Page is complete for the range it names, whatever the server's limits are, and
// that a page of a snapshot reports correctly whether more follows. Once Discover has found the participant's id, an
// answer after a connection was made, or has ended with a request on it, is used only after the id was checked again.
//
// It does not retry: a failed request is an *Error, which may be tried again, or wraps a *ledger.Problem or
// *ledger.Bug, which may not; verdict.go decides. There are two exceptions. A size that the server refuses is halved
// and requested at once, and a request whose token is refused is repeated with a fresh one. Errors and logs never
// contain tokens or passwords.
package participant
