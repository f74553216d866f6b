package session

import (
	"fmt"
	"regexp"
	"strings"
)

// Schemas name the two schemas that a Database works on. Several such pairs can lie in one database, each with a ledger
// of its own: none sees, locks or waits for another. An empty name is the default one.
type Schemas struct {
	Tables string // the tables that the indexer writes; "indexer" by default
	Views  string // what analysts read; "ledger" by default
}

// DefaultSchemas are the names in place of empty ones.
var DefaultSchemas = Schemas{Tables: "indexer", Views: "ledger"}

// NetworkSchemas are the pair of schemas of the updates of a network.
var NetworkSchemas = Schemas{Tables: "network_indexer", Views: "network"}

// SchemaName matches what a schema of ours may be called. A name is written without quotes, and stands in the names of
// sessions, of which PostgreSQL keeps 63 bytes: "ledgerindexer:", the name, " transactions epoch " and some digits.
var SchemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,23}$`)

// Validate refuses names that can't be those of a pair of schemas.
func (s Schemas) Validate() error {
	s = s.OrDefault()
	for _, name := range []string{s.Tables, s.Views} {
		switch {
		case !SchemaName.MatchString(name):
			return fmt.Errorf("schema %q: a schema's name has up to 24 lower case letters, digits and underscores, and begins "+
				"with no digit", name)
		case strings.HasPrefix(name, "pg_"), name == "public", name == "information_schema":
			return fmt.Errorf("schema %q: that is PostgreSQL's own", name)
		}
	}
	if s.Tables == s.Views {
		return fmt.Errorf("schema %q can't hold both the tables and the views: their names are the same", s.Tables)
	}
	return nil
}

// OrDefault returns the schemas with the default names in place of empty ones.
func (s Schemas) OrDefault() Schemas {
	if s.Tables == "" {
		s.Tables = DefaultSchemas.Tables
	}
	if s.Views == "" {
		s.Views = DefaultSchemas.Views
	}
	return s
}

// OfNetwork reports whether it is the pair of the updates of a network.
func (s Schemas) OfNetwork() bool { return s == NetworkSchemas }

// Flags says how a command is told to use the pair.
func (s Schemas) Flags() string {
	switch s {
	case DefaultSchemas:
		return "leave out --network, --tables-schema and --views-schema"
	case NetworkSchemas:
		return "give --network"
	}
	return fmt.Sprintf("give --tables-schema %s --views-schema %s", s.Tables, s.Views)
}

// SearchPath returns the search_path of sessions: the schema of temporary tables comes last, so that a temporary table
// hides none of ours.
func (s Schemas) SearchPath() string { return s.Tables + ", " + s.Views + ", pg_temp" }

// VersionTable returns the table with the version of the schema, which lies beside the tables.
func (s Schemas) VersionTable() string { return s.Tables + ".schema_version" }

// Program returns the beginning of the names of sessions. It names the schema of the tables, unless that is the default
// one.
func (s Schemas) Program() string {
	if s.Tables == DefaultSchemas.Tables {
		return "ledgerindexer"
	}
	return "ledgerindexer:" + s.Tables
}

// SessionPrefix returns the beginning of the names of a lease's leaders' sessions, and of no others.
func (s Schemas) SessionPrefix(lease Lease) string {
	return s.Program() + " " + string(lease) + " epoch "
}
