// Package codegen writes types for programs that read typed views: a struct or an interface for each view, with a field for each column.
//
// What it writes follows from the columns that were published, and from nothing else: the same views give the same text.
package codegen
