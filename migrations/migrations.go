// Package migrations holds the database schema as goose SQL files, embedded in the binaries.
package migrations

import "embed"

// Files are the migrations in order of their numbers.
//
//go:embed *.sql
var Files embed.FS
