// Package damllf reads compiled Daml packages (Daml-LF 2), as GET /v2/packages/{id} answers them, for the exact types of what is on
// the ledger: payloads, keys, choices, interface views.
//
// [Decode] reads one package. References to other packages stay what they are there, an id and a name; a [Resolver] follows them and
// makes a [Type] of a [TypeExpr]. [Compatible] compares a type with a later version of it.
//
// A package comes from the participant and is trusted with nothing: its bytes must have the hash that is its id, every name is
// checked against the grammar of the language, and time, memory and depth have bounds. Expressions are skipped by their length.
package damllf
