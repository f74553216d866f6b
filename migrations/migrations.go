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

// For returns the migrations in order of their numbers, with what analysts read in a schema of this name; the files
// call it ledger. Tables have no schema there: they are made in the first one of the connection's search path, which
// has to exist. Each migration but the first begins with the statements that begin returns for its text; nil: it has no
// more. One marked NO TRANSACTION has no more either, because each of its statements would be a transaction of its own.
func For(views string, begin func(text string) string) fs.FS { return adapted{files, views, begin} }

// adapted has another name where the files say ledger, and more at the beginning.
type adapted struct {
	files fs.FS
	views string
	begin func(text string) string
}

// The schema in a name of something in it, where it is made or spoken of, and as a value.
var ledgerSchema = regexp.MustCompile(`\bledger(\.[a-z_])|\b((?:schema|SCHEMA) )ledger\b|(['"])ledger(['"])`)

func (a adapted) Open(name string) (fs.File, error) {
	file, err := a.files.Open(name)
	if err != nil || path.Ext(name) != ".sql" {
		return file, err
	}
	text, err := fs.ReadFile(a.files, name)
	if err != nil {
		return nil, err
	}
	adapted := string(text)
	if a.views != "ledger" {
		adapted = ledgerSchema.ReplaceAllString(adapted, "${2}${3}"+a.views+"${1}${4}")
	}
	if !strings.Contains(adapted, aloneMark) {
		head, statements, _ := strings.Cut(adapted, upMark)
		if a.begin != nil && !strings.HasPrefix(name, first) {
			statements = a.begin(statements) + statements
		}
		adapted = head + upMark + beginMark + statements + endMark
	}
	return adaptedFile{file, strings.NewReader(adapted)}, nil
}

const (
	first  = "00001_" // how the name of the first migration begins, which makes what begin needs
	upMark = "\n-- +goose Up\n"

	// A migration is sent as one statement: goose takes a buffer of 4 MB to each line of others.
	beginMark = "-- +goose StatementBegin\n"
	endMark   = "-- +goose StatementEnd\n"
	aloneMark = "-- +goose NO TRANSACTION" // where each statement is its own transaction
)

type adaptedFile struct {
	fs.File
	text *strings.Reader
}

func (f adaptedFile) Read(p []byte) (int, error) { return f.text.Read(p) }
