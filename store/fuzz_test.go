package store

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// FuzzURL looks for a database's URL whose password is printed.
func FuzzURL(f *testing.F) {
	const secret = "correct-horse-battery"
	for _, text := range []string{"", "postgres://joe:" + secret + "@localhost/x", "postgres://joe:" + secret + "@ser ver/x", "host=h password=" + secret,
		"postgres://joe:" + secret + "@h/x?sslmode=what", "postgres://joe@h/x?password=" + secret + "&port=x", "password='" + secret, "postgres://h:1,h:2/x",
		"postgres:///x?host=/tmp", "postgres://joe:" + secret + "@h/x?application_name=%00", "host=a\\ b dbname='c d'", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Open(Config{URL: text})
		if err != nil {
			// Only what is given as a password is one.
			if strings.Contains(text, ":"+secret+"@") {
				require.NotContains(t, err.Error(), secret)
			}
			return
		}
		defer s.Close()
		if s.db.Conn.Password == secret && !strings.Contains(s.db.Conn.Host+s.db.Conn.Database, secret) {
			require.NotContains(t, s.Address(), secret)
		}
	})
}

// FuzzIdentifier has PostgreSQL read a name that was quoted for a statement.
func FuzzIdentifier(f *testing.F) {
	for _, name := range []string{"plain", `a"b`, `""`, `"; DROP SCHEMA indexer; --`, "\\", "\u00e9", "a\nb", "a.b", "$1", "%s"} {
		f.Add(name)
	}
	db := newDatabase(f)
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || len(name) > 63 || strings.Contains(name, "\x00") || strings.ToValidUTF8(name, "") != name {
			return // no name of a database
		}
		rows, err := db.Conn.Query(t.Context(), "SELECT 1 AS "+pgx.Identifier{name}.Sanitize())
		require.NoError(t, err)
		defer rows.Close()
		require.Equal(t, name, rows.FieldDescriptions()[0].Name)
	})
}
