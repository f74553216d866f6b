package session

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/ledger"
)

// What may pass by itself is no refusal, and whatever is one has a cure.
func TestWhatTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	d, err := Open(Config{URL: "postgres://h/d"})
	require.NoError(t, err)
	defer d.Close()
	for _, c := range []struct {
		code, text string
		want       refusal
	}{
		{"08006", "", ""}, {"53300", "too many connections", ""}, {"53100", "disk full", ""}, {"57P01", "terminated", ""}, {"57P03", "starting up", ""},
		{"40001", "", ""}, {"40P01", "deadlock", ""}, {"55P03", "lock", ""}, {"55000", "not accepting connections", ""}, {"25006", "a standby", ""},
		{"57014", "canceled", ""}, {"58030", "I/O", ""}, {"XX000", "", ""},
		{"28P01", "", refusalUser}, {"28000", "", refusalUser}, {"3D000", "", refusalDatabase}, {"42501", "", refusalSchema}, {"42P01", "", refusalSchema},
		{"3F000", "", refusalSchema}, {"0A000", "", refusalServer}, {"42704", "", refusalSchema}, {"23514", "", refusalRows}, {"22003", "", refusalRows},
		{"54000", "", refusalRows}, {"26000", "", refusalPooled}, {"42P05", "", refusalPooled},
		// PgBouncer's
		{"08P01", "query_wait_timeout", ""}, {"08P01", "server login failed: FATAL the database system is starting up", ""},
		{"08P01", "no more connections allowed (max_client_conn)", ""}, {"08P01", "pgbouncer cannot connect to server", ""},
		{"08P01", "unsupported startup parameter: jit", refusalParameter}, {"08P01", "SASL authentication failed", refusalUser},
		{"08P01", `role "x" does not exist`, refusalUser}, {"08P01", "no such database: x", refusalDatabase},
		{"08P01", `database "x" does not exist`, refusalDatabase}, {"08P01", `permission denied for database "x"`, refusalSchema},
		{"08P01", "transaction blocks not allowed in statement pooling mode", refusalPooled},
	} {
		err := fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: c.code, Message: c.text})
		require.Equal(t, c.want, refusalOf(err), c)
		problem := (*ledger.Problem)(nil)
		require.Equal(t, c.want != "", errors.As(d.Unusable(err), &problem), c)
		require.True(t, c.want == "" || problem.Do != "", c)
	}
	require.ErrorContains(t, d.Unusable(&pgconn.PgError{Code: "25006"}), "is a standby, or default_transaction_read_only is on")
	require.Empty(t, refusalOf(errors.New("no answer")))
	require.Equal(t, refusalPolicies, refusalOf(&pgconn.PgError{Code: "42501", Routine: "check_enable_rls"}))
	require.Empty(t, refusalOf(&pgconn.PgError{Code: "0A000", Message: "cached plan must not change result type", Routine: "RevalidateCachedQuery"}))
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://indexer@db/ledger": "db:5432 ledger", "postgres://indexer@a:1,b:2/ledger": "a:1,b:2 ledger", "host=/run/pg dbname=ledger": "/run/pg ledger",
	} {
		config, err := pgx.ParseConfig(url)
		require.NoError(t, err)
		require.Equal(t, want, (&Database{Conn: config}).Address())
	}
}
