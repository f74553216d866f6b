// Package typed says in terms of SQL what the types of Daml packages are: the fields of templates, choices and interfaces.
//
// It does no I/O: contents of packages come from a function, and what it makes is values and texts.
package typed
