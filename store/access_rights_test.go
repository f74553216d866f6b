package store

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
)

// A grant gives everything that a reader needs where PUBLIC may call no function and use no type, of what is made later
// too, and a revocation takes all of it.
func TestAGrantNeedsNothingOfPublic(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newPQS(t)
	s := d.store()
	for _, schema := range []string{"indexer", "ledger", "pqs", "public"} {
		d.Exec("REVOKE ALL ON ALL ROUTINES IN SCHEMA " + schema + " FROM PUBLIC")
		d.Exec("REVOKE ALL ON SCHEMA " + schema + " FROM PUBLIC")
	}
	for _, statement := range d.Rows(`SELECT format('REVOKE ALL ON TYPE %s FROM PUBLIC', t.oid::regtype) FROM pg_type t
		WHERE t.typnamespace::regnamespace::text IN ('indexer', 'ledger', 'pqs') AND t.typelem = 0`) {
		d.Exec(statement)
	}
	d.Exec("ALTER DEFAULT PRIVILEGES REVOKE ALL ON ROUTINES FROM PUBLIC")
	d.Exec("ALTER DEFAULT PRIVILEGES REVOKE ALL ON TYPES FROM PUBLIC")
	roles := &attacked{testDB: d, role: d.Row("SELECT current_database()")}
	for suffix, reader := range map[string]Reader{"_all": {AllParties: true}, "_limited": {Parties: []string{"alice"}}} {
		reader.Role = roles.newRole(suffix)
		_, err := s.Grant(t.Context(), reader)
		require.NoError(t, err)
		_, err = s.DisablePQS(t.Context(), "pqs")
		require.NoError(t, err)
		require.NoError(t, s.EnablePQS(t.Context(), "pqs"))
		d.Exec("SET search_path = pqs")
		ask := func(query string) {
			d.Exec("SET ROLE " + reader.Role)
			defer d.Exec("RESET ROLE")
			_, err := d.Conn.Exec(t.Context(), query)
			require.NoError(t, err, "%s: %s", reader.Role, query)
		}
		for _, relation := range d.relations() {
			ask("SELECT * FROM ledger." + relation)
		}
		for _, query := range []string{
			"SELECT * FROM ledger.active_at(20)", "SELECT * FROM ledger.holdings_at(20)", "SELECT ledger.balance_at_offset('alice', 'Token', 20)",
			"SELECT * FROM ledger.party_statement('alice', 10, 100)", "SELECT ledger.as_numeric('5.0E-7', 10)", "SELECT ledger.offset_at(now())",
			"SELECT * FROM active('Main:Asset')", "SELECT * FROM creates('Main:Asset')", "SELECT * FROM exercises()", "SELECT 'template'::__payload_type",
			"SELECT latest_offset()", "SELECT * FROM summary_active()",
		} {
			ask(query)
		}
		for _, function := range contractFunctions {
			ask("SELECT ledger." + function + "()")
		}
		d.Exec("SET ROLE " + reader.Role)
		d.requireError("permission denied", "SELECT FROM indexer.updates")
		d.Exec("RESET ROLE")
		_, err = s.Revoke(t.Context(), reader.Role)
		require.NoError(t, err)
		require.Empty(t, d.Rows("SELECT classid::regclass::text, pg_describe_object(classid, objid, objsubid) FROM pg_shdepend WHERE refobjid = '"+reader.Role+
			"'::regrole AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"), strings.TrimPrefix(suffix, "_"))
	}
}
