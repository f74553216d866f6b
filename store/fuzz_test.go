package store

import (
	"strings"
	"testing"

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
