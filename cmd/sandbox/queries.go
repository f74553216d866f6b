package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/sandbox"
)

// query is a question that the demonstration asks of its database, and the SQL that answers it.
type query struct{ question, query string }

// demoQueries are the first questions that the ledger itself cannot answer.
var demoQueries = []query{
	{
		"How many contracts of each template are active?",
		`SELECT package_name, module_name || ':' || entity_name AS template, count(*) AS active
FROM ledger.active_contracts
GROUP BY 1, 2
ORDER BY active DESC
LIMIT 5`,
	},
	{
		"Which choices were exercised most, and how often did they archive their contract?",
		`SELECT choice, count(*) AS exercises, count(*) FILTER (WHERE consuming) AS consuming
FROM ledger.exercised_events
GROUP BY choice
ORDER BY exercises DESC
LIMIT 5`,
	},
	{
		"What happened last?",
		`SELECT u.ledger_offset, u.kind, to_char(u.record_time, 'YYYY-MM-DD HH24:MI:SS') AS record_time,
			count(c.node_id) AS created
FROM ledger.updates u
LEFT JOIN ledger.created_events c ON c.ledger_offset = u.ledger_offset
GROUP BY 1, 2, u.record_time
ORDER BY u.ledger_offset DESC
LIMIT 5`,
	},
	{
		"Who holds most amulets?",
		`SELECT split_part(owner, '::', 1) AS owner, amount, locked_amount, contracts
FROM ledger.holding_totals
WHERE instrument = 'Amulet' AND admin_signed
ORDER BY amount DESC NULLS LAST
LIMIT 5`,
	},
}

// networkQueries are about the updates of the network, which its Scan service has, and about the records that follow
// from them.
var networkQueries = []query{
	{
		"What moved in the network?",
		`SELECT kind, count(*) AS records, to_char(max(date), 'YYYY-MM-DD HH24:MI:SS') AS latest
FROM network.transactions
GROUP BY kind
ORDER BY records DESC`,
	},
	{
		"What did whoever sent the last transfer send and receive before?",
		`SELECT to_char(date, 'YYYY-MM-DD HH24:MI:SS') AS date, direction,
			split_part(counterparties[1], '::', 1) AS counterparty, net_amount, amount, fee
FROM network.party_transfers
WHERE party = (SELECT sender FROM network.transfers ORDER BY seq DESC LIMIT 1)
    AND party <> ALL (counterparties) -- not what it only locked
LIMIT 5`,
	},
	{
		"How much of what the network saw did the participant see too?",
		`SELECT count(*) AS network_updates, count(u.update_id) AS seen_by_the_participant
FROM network.updates n
LEFT JOIN ledger.updates u USING (update_id)`,
	},
}

// printQueries runs the queries and prints them with their results.
func printQueries(ctx context.Context, out io.Writer, conn *pgx.Conn, queries []query) error {
	for _, q := range queries {
		fmt.Fprintf(out, "\n-- %s\n%s;\n\n", q.question, q.query)
		if err := printQuery(ctx, out, conn, q.query); err != nil {
			return err
		}
	}
	return nil
}

// printRows prints how many rows each relation has.
func printRows(ctx context.Context, out io.Writer, conn *pgx.Conn, network bool) error {
	var parts []string
	add := func(schema string, relations []string) {
		for _, relation := range relations {
			parts = append(parts, fmt.Sprintf("SELECT '%s.%s' AS relation, count(*) AS rows FROM %[1]s.%[2]s", schema, relation))
		}
	}
	add("ledger", sandbox.Relations())
	if network {
		add("network", append(sandbox.Relations(), sandbox.HistoryRelations()...))
	}
	fmt.Fprintln(out)
	return printQuery(ctx, out, conn, strings.Join(parts, " UNION ALL ")+" ORDER BY 1")
}

func printQuery(ctx context.Context, out io.Writer, conn *pgx.Conn, query string) error {
	rows, err := conn.Query(ctx, query, pgx.QueryResultFormats{pgx.TextFormatCode}) // as psql shows it
	if err != nil {
		return err
	}
	defer rows.Close()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i, field := range rows.FieldDescriptions() {
		if i > 0 {
			fmt.Fprint(w, "\t")
		}
		fmt.Fprint(w, strings.ToUpper(field.Name))
	}
	fmt.Fprintln(w)
	for rows.Next() {
		for i, value := range rows.RawValues() {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprintf(w, "%s", value)
		}
		fmt.Fprintln(w)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return w.Flush()
}
