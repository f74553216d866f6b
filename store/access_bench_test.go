package store

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// What a role that is limited pays, beside the same query of the owner, and of a role that sees everything beside one
// that is limited. Of the limited ones the first sees a thousandth of the rows, the second a tenth and the last one
// all.
func BenchmarkLimitedReaders(b *testing.B) {
	d := newDatabase(b)
	d.started()
	d.fillHoldings(200_000, 10)
	d.Exec("CREATE TABLE indexer.updates_all PARTITION OF indexer.updates DEFAULT")
	d.Exec(`INSERT INTO indexer.updates (ledger_offset, update_id, kind, synchronizer_ref, record_time, effective_at, seen_by_ref)
		SELECT ledger_offset, md5(ledger_offset::text), 'transaction', 1, '2026-01-01'::timestamptz + ledger_offset * interval '1 second', now(), signatories_ref FROM indexer.created`)
	d.Exec("UPDATE indexer.created SET stakeholders_ref = signatories_ref, witness_parties_ref = signatories_ref")
	for _, table := range []string{"active_contracts", "lifetimes"} {
		d.Exec(`UPDATE indexer.` + table + ` a SET stakeholders_ref = c.stakeholders_ref FROM indexer.created c
			WHERE c.ledger_offset = a.activated_offset AND c.node_id = a.activated_node_id`)
	}
	d.Exec("UPDATE indexer.interface_views v SET seen_by_ref = c.signatories_ref FROM indexer.created c WHERE c.ledger_offset = v.ledger_offset AND c.node_id = v.node_id")
	d.Exec("INSERT INTO indexer.position_stakeholders SELECT position_id, stakeholders_ref FROM indexer.held_stakeholders")
	for _, table := range []string{"active_contracts", "created", "lifetimes", "interface_views"} { // which were written twice
		d.Exec("VACUUM FULL indexer." + table)
	}
	d.Exec("VACUUM ANALYZE")

	s := d.store()
	roles := map[string]Reader{
		"all": {AllParties: true}, "one-in-1000": {}, "one-in-10": {}, "every-row": {Parties: []string{"dso"}},
	}
	parties := d.Rows("SELECT DISTINCT owner FROM indexer.positions ORDER BY 1")
	for name, r := range roles {
		r.Role = d.Row("SELECT current_database()") + "-" + name
		d.Exec("CREATE ROLE " + pgx.Identifier{r.Role}.Sanitize())
		b.Cleanup(func() {
			_, err := d.Conn.Exec(context.Background(), "RESET ROLE; DROP OWNED BY "+pgx.Identifier{r.Role}.Sanitize()+"; DROP ROLE "+pgx.Identifier{r.Role}.Sanitize())
			require.NoError(b, err)
		})
		switch name {
		case "one-in-1000":
			r.Parties = parties[:1]
		case "one-in-10":
			r.Parties = parties[:len(parties)/10]
		}
		_, err := s.Grant(b.Context(), r)
		require.NoError(b, err)
		roles[name] = r
	}
	d.Exec("SET jit = off")
	contract := d.Row("SELECT contract_id FROM ledger.holdings WHERE owner = $1 ORDER BY 1 LIMIT 1", parties[0])
	for _, query := range [][2]string{
		{"count active", "SELECT count(*) FROM ledger.active_contracts"},
		{"count active by template", "SELECT entity_name, count(*) FROM ledger.active_contracts GROUP BY 1"},
		{"one party with payload", "SELECT contract_id, payload FROM ledger.active_contracts WHERE '" + parties[0] + "' = ANY (signatories)"},
		{"payloads of a template", "SELECT contract_id, payload FROM ledger.active_contracts WHERE entity_name = 'T7'"},
		{"holding totals", "SELECT * FROM ledger.holding_totals"},
		{"holdings of an owner", "SELECT * FROM ledger.holdings WHERE owner = '" + parties[0] + "'"},
		{"count as of", "SELECT count(*) FROM ledger.active_at(800000)"},
		{"latest updates", "SELECT * FROM ledger.updates ORDER BY ledger_offset DESC LIMIT 100"},
		{"updates per hour", "SELECT date_trunc('hour', record_time), count(*) FROM ledger.updates GROUP BY 1"},
		{"count creations", "SELECT count(*) FROM ledger.created_events"},
		{"creations of a day", "SELECT * FROM ledger.created_events WHERE ledger_offset BETWEEN 400000 AND 402000"},
		{"contract history", "SELECT * FROM ledger.contract_history('" + contract + "')"},
		{"interface views", "SELECT count(*) FROM ledger.interface_views"},
	} {
		for _, name := range []string{"owner", "all", "one-in-1000", "one-in-10", "every-row"} {
			b.Run(strings.ReplaceAll(query[0], " ", "-")+"/"+name, func(b *testing.B) {
				d.Exec("RESET ROLE")
				if name != "owner" {
					d.Exec("SET ROLE " + pgx.Identifier{roles[name].Role}.Sanitize())
				}
				for b.Loop() {
					d.Exec(query[1])
				}
				d.Exec("RESET ROLE")
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "ms/query")
			})
		}
	}
}
