// Package sandbox simulates a ledger participant and a Scan service: a deterministic
// ledger grown from a seed, their JSON over HTTP with its real limits and errors,
// faults on demand, and the truth, which says what a database that indexed the
// ledger must hold.
//
// [NewLedger] makes a ledger and [Ledger.Grow] adds updates to it. [LoadReplay] makes one of recorded responses
// instead, [ReplayExchanges] one of recorded exchanges. [NewServer] serves either. [NewScan] serves the transaction
// history of a ledger. [Ledger.Truth], [Ledger.TruthFromSnapshot], [Ledger.Holdings] and [Scan.Truth] give the rows to
// compare with.
//
// Access: a server without an [Authority] and without a Token allows everything to
// everybody. With an Authority it requires the token of a user that the authority knows:
//
//   - 401 answers a token that is missing, forged, expired, revoked, or for another
//     audience; 403 a user without a right that the request needs, a token for another
//     participant, and, with ledger_api_error in the context, a user that is deactivated or
//     not known. Both are redacted: they don't say what is missing.
//   - Reading the updates and contracts of a party needs CanReadAs, which CanActAs and
//     CanReadAsAnyParty imply; reading for any party needs CanReadAsAnyParty, and so do the
//     topology events of all parties and the lookup of a contract for no party. Changing
//     what is vetted needs ParticipantAdmin, which does not imply reading. The ledger's end
//     and the like need only a token; the version needs none.
//   - A long poll ends with 409 when the rights of its user change, or when it delivers
//     something after its token has expired.
//
// Packages: the participant serves packages of types only, whose ids are their hashes. They describe the templates,
// interfaces and choices of every simulated ledger exactly: each value that is served is of the type that its package
// says. The template Agreement has a value of every type.
//
// Values are as a real participant writes them: a Numeric of scale 0 ends with its dot, an Optional in an Optional is a
// list at every level, an Optional without a value is left out at the end of a record and null before, and maps are
// sorted. Lists of parties are sets: each reading has another order, which follows from the seed and the number of
// readings before.
//
// Lookups: a contract can be looked up by its id unless it was archived, or merely
// divulged, at or below the pruned offset. So readers that start in the middle find
// contracts created before. Real participants put meaningless values into fields that
// interface.md calls not populated, and so does the server; with StrictInterface it
// leaves them empty.
//
// Amulets and the transaction history: amulets are minted, tapped, transferred, locked for
// an offered transfer, unlocked, and expire; each is a movement, and [Scan] serves a record
// of it. So ledger and history agree: a record has the event id of its exercise or creation,
// the time and synchronizer of the update, and the parties, amounts and rounds of the
// amulets that are consumed and created below that event. Rewards, fees and descriptions are
// only in the history. A round lasts half a minute. If an exercise wraps several movements,
// all their records have its id; some are equal in everything. Like a real service, Scan
// returns an empty page after an unknown event id, and fails for one that two records have.
//
// Updates of the network: [Scan] also serves every update as the DSO sees it, from its ledger effects: events that the
// DSO does not see are left out, and the others numbered depth first. Record times are the ledger's; the migration id
// rises in the middle of the ledger if that is asked for. Of a reassignment of several contracts it serves one.
// [Scan.NetworkTruth] gives the rows to compare with.
//
// What happens elsewhere: with [Options.Elsewhere] the network also shows what no party of this participant sees: the
// DSO opens, issues and closes mining rounds, and parties that are hosted elsewhere allocate and settle, pay for names,
// buy and renew preapprovals, collect rewards for coupons, buy traffic, transfer by command, and by version 2 of the
// token standard, which logs whose holdings it changes. Each kind of movement comes in the form of three times: before
// Splice 0.5.16, since then, and since 0.6.11. Their exercises are those of Splice's models, but for contexts.
//
// Package vetting: what participants have vetted on each synchronizer belongs to the
// ledger and is shared by its servers. [Ledger.Packages] are the packages, the same
// on every ledger, with one for each reason to refuse vetting: an invalid upgrade
// (bank 2.0.0), a second trade 1.1.0, audit and audit-api, which are not vetted yet,
// and orphan, a dependency of which was never uploaded. [Ledger.Vetting] returns the
// state, and [Ledger.SetVetting] changes it without a request. Three things may
// surprise: the Empty operation is refused (to see the state, dry-run an Unvet of no
// packages), malformed requests are PROTO_DESERIALIZATION_FAILURE, and the last page
// of a list has a token, too.
//
// Invariants:
//
//   - The same options give the same ledger, byte for byte, however the growth is
//     cut into calls of Grow.
//   - A contract is created once, archived at most once, and archived on the
//     synchronizer where it is active. Offsets and record times strictly grow.
//   - Only the decisions are kept in memory (about 200 bytes an update); names,
//     payloads and hashes are derived from the seed whenever they are served.
//   - The truth comes from those decisions, never from a served response.
//   - The package encodes with its own code and imports nothing else of this
//     module, so that an error in a client's types cannot hide in the server's.
package sandbox
