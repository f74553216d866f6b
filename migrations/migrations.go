// Package migrations holds the database schema as goose SQL files, embedded in the binaries.
package migrations

import (
	"embed"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

//go:embed *.sql
var files embed.FS

// For returns the migrations in order of their numbers, with what analysts read in a schema of this name; the files call it ledger.
// Tables have no schema there: they are made in the first one of the connection's search path, which has to exist.
func For(views string) fs.FS { return renamed(views) }

// renamed has another name where the files say ledger.
type renamed string

// The schema in a name of something in it, and where it is made or spoken of.
var ledgerSchema = regexp.MustCompile(`\bledger(\.[a-z_])|\b((?:schema|SCHEMA) )ledger\b`)

func (r renamed) Open(name string) (fs.File, error) {
	file, err := files.Open(name)
	if err != nil || path.Ext(name) != ".sql" {
		return file, err
	}
	text, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return renamedFile{file, strings.NewReader(ledgerSchema.ReplaceAllString(string(text), "${2}"+string(r)+"${1}"))}, nil
}

type renamedFile struct {
	fs.File
	text *strings.Reader
}

func (f renamedFile) Read(p []byte) (int, error) { return f.text.Read(p) }
