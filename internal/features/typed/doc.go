// Package typed translates the types of Daml packages (the fields of templates, choices and interfaces) into SQL.
//
// It does no I/O: a function provides the content of packages, and the results are values and texts.
package typed
