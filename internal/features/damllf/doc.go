// Package damllf reads compiled Daml packages (Daml-LF 2), as GET /v2/packages/{id} serves them, for the exact types of
// the values on the ledger: payloads, keys, choices, interface views.
//
// [Decode] reads one package, in which a reference to another one is an id and a name. A [Resolver] follows these, and
// makes a [Type] of a [TypeExpr].
//
// Packages are not trusted: the bytes must have the hash that is the id, names are checked against the grammar of the
// language, and time, memory and depth are limited. Expressions are skipped.
package damllf
