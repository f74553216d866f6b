package throwaway

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// strangeSettings are settings that an administrator may have set on a role or a database for other programs. Each
// changes the form or the meaning of texts.
var strangeSettings = []string{
	"datestyle = 'German'", "intervalstyle = 'sql_standard'", "timezone = 'Asia/Kathmandu'", "bytea_output = 'escape'",
	"client_encoding = 'LATIN1'", "standard_conforming_strings = off", "escape_string_warning = off", "array_nulls = off",
	"extra_float_digits = -15", "quote_all_identifiers = on", "transform_null_equals = on", "search_path = 'elsewhere'",
	"lc_monetary = 'POSIX'", "lc_numeric = 'POSIX'", "lc_time = 'POSIX'",
}

// Strange is Database with settings that a program may not expect, and a connection
// with the usual settings.
func Strange(t testing.TB) (database string, usual *pgx.Conn) {
	t.Helper()
	database = Database(t)
	usual, err := pgx.Connect(t.Context(), database) // before they are set
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeConn(usual) })
	for _, setting := range strangeSettings {
		if _, err := usual.Exec(t.Context(), "ALTER DATABASE "+quote(usual.Config().Database)+" SET "+setting); err != nil {
			t.Fatalf("%s: %v", setting, err)
		}
	}
	return database, usual
}
