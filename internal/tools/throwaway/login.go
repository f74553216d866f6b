package throwaway

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Login makes a role that may connect to a test's database and nothing else, unless
// options of CREATE ROLE say so, until the test is done. It returns the role's name
// and the database's URL with it.
func Login(t testing.TB, database, options string) (role, connection string) {
	t.Helper()
	config, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	role = config.Database + "_login"
	run := func(ctx context.Context, statements ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
		defer cancel()
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		defer closeConn(conn)
		for _, statement := range statements {
			if _, err := conn.Exec(ctx, statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	const password = "secret-of-a-test"
	run(t.Context(), "CREATE ROLE "+quote(role)+" LOGIN PASSWORD '"+password+"' "+options)
	t.Cleanup(func() { run(context.Background(), "DROP OWNED BY "+quote(role), "DROP ROLE "+quote(role)) })
	return role, withUser(database, role, password)
}

// withUser returns the connection string with another user.
func withUser(connection, user, password string) string {
	u, err := url.Parse(connection)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		value := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
		return connection + " user='" + value.Replace(user) + "' password='" + value.Replace(password) + "'"
	}
	u.User = url.UserPassword(user, password)
	q := u.Query()
	q.Del("user") // they would win over those before the host
	q.Del("password")
	u.RawQuery = q.Encode()
	return u.String()
}
