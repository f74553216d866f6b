package app

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// documented is a simulated ledger, a database that has all of it, and a connection of the role that reads it.
type documented struct {
	ledger   *sandbox.Ledger
	scope    sandbox.Scope
	database string
	conn     *pgx.Conn

	rows  map[string][]sandbox.Row // of every relation that the model knows, and events
	past  map[int64]map[string][]sandbox.Row
	n, m  int64             // two offsets
	given map[string]string // variables of psql
}

// TestSQLDocuments runs what the documents for readers of schema ledger say, on one database.
func TestSQLDocuments(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "runs every query of the documents")
	d := document(t)
	t.Run("cookbook", d.testCookbook)
	t.Run("cookbook as a limited role", d.testCookbookLimited)
	t.Run("keys", d.testKeys)
	t.Run("functions", d.testFunctions)
	t.Run("refusals", d.testRefusals)
	t.Run("tools", d.testTools)
	t.Run("psql", d.testPSQL)
	t.Run("python", d.testPython)
	t.Run("dbt", d.testDBT)
	t.Run("PostgREST's rules", d.testPostgRESTRules)
	t.Run("PostgREST", d.testPostgREST)
}

func document(t *testing.T) *documented {
	t.Helper()
	l := sandbox.NewLedger(sandbox.Options{Seed: 61})
	l.Grow(1500)
	scan := sandbox.NewScan(l, sandbox.ScanOptions{BalanceChanges: true})
	d := &documented{
		ledger: l, scope: sandbox.Scope{Shape: sandbox.LedgerEffects, Interfaces: sandbox.InterfaceNames()}, database: throwaway.Migrated(t, migrateWithoutPublic),
		n: l.Offset(500), m: l.Offset(1000), past: map[int64]map[string][]sandbox.Row{},
	}
	d.rows = l.Truth(d.scope, l.End())
	for relation, rows := range l.Holdings(d.scope, l.End()) {
		d.rows[relation] = rows
	}
	for relation, rows := range scan.Truth() {
		d.rows[relation] = rows
	}
	d.rows["events"], d.rows["token_events"] = eventsOf(d.rows), l.TokenEvents(d.scope, l.End())

	cfg := indexerFor(d.database, serve(t, l, sandbox.ServerOptions{}), effects())
	cfg.ScanURL = []string{serveScan(t, scan)}
	cfg.PackagesInterval, cfg.VerifyRate = often, 100_000
	daemon := startIndexer(t, cfg)
	waitFor(t, d.database, lastUpdate(l))
	waitForHistory(t, d.database, scan)
	waitUntil(t, d.database, everyTypeKnown+" AND EXISTS (SELECT FROM ledger.vetted_packages) AND "+
		"ledger.verified_offset() = ledger.latest_offset() AND ledger.verified_seq() = (SELECT max(seq) FROM ledger.transactions)")
	require.NoError(t, daemon.finish())
	d.conn = reader(t, d.database)
	d.given = d.variables(t)
	return d
}

// eventsOf are the rows of ledger.events, of the shape ledger-effects.
func eventsOf(rows map[string][]sandbox.Row) (events []sandbox.Row) {
	above := map[string][]sandbox.Row{}
	for _, x := range rows["exercised_events"] {
		above[text(x["ledger_offset"])] = append(above[text(x["ledger_offset"])], x)
	}
	add := func(r sandbox.Row, kind string, choice any) {
		var parent any
		for _, x := range above[text(r["ledger_offset"])] { // in their order: the last that fits is the innermost
			if whole(x["node_id"]) < whole(r["node_id"]) && whole(x["last_descendant_node_id"]) >= whole(r["node_id"]) {
				parent = x["node_id"]
			}
		}
		events = append(events, sandbox.Row{
			"ledger_offset": r["ledger_offset"], "node_id": r["node_id"], "parent_node_id": parent, "kind": kind, "contract_id": r["contract_id"],
			"entity_name": r["entity_name"], "choice": choice, "acting_parties": r["acting_parties"],
		})
	}
	for _, r := range rows["created_events"] {
		add(r, map[any]string{"transaction": "created", "assignment": "assigned"}[r["origin"]], nil)
	}
	for _, r := range rows["exercised_events"] {
		add(r, "exercised", r["choice"])
	}
	for _, r := range only(rows["reassignments"], is("kind", "unassigned")) {
		add(r, "unassigned", nil)
	}
	return events
}

// variables are contracts, parties and updates about which the questions have something to say.
func (d *documented) variables(t *testing.T) map[string]string {
	t.Helper()
	first := func(relation string, fits func(sandbox.Row) bool) sandbox.Row {
		found := slices.IndexFunc(d.rows[relation], fits)
		require.GreaterOrEqual(t, found, 0, "the ledger has none of %s", relation)
		return d.rows[relation][found]
	}
	has := func(relation, column string) func(sandbox.Row) bool {
		return func(r sandbox.Row) bool { return slices.ContainsFunc(d.rows[relation], is(column, r["contract_id"])) }
	}
	tree := first("exercised_events", func(r sandbox.Row) bool { return whole(r["node_id"]) == 0 && whole(r["last_descendant_node_id"]) > 2 })
	child := first("events", func(r sandbox.Row) bool { return r["kind"] == "created" && r["parent_node_id"] != nil })
	tap := first("taps", func(sandbox.Row) bool { return true })
	receiver := first("transfer_receivers", func(r sandbox.Row) bool {
		return slices.ContainsFunc(d.rows["holdings"], is("owner", r["party"])) && slices.ContainsFunc(d.rows["transfers"], is("sender", r["party"]))
	})
	key, err := json.Marshal(first("created_events", func(r sandbox.Row) bool { return r["entity_name"] == "Account" })["contract_key"])
	require.NoError(t, err)
	given := map[string]any{
		"contract": first("archived_events", has("reassignments", "contract_id"))["contract_id"],
		"party":    receiver["party"], "dso": d.ledger.DSO(), "key": string(key), "event": tap["event_id"],
		"update":   first("updates", is("ledger_offset", tree["ledger_offset"]))["update_id"],
		"recorded": first("transactions", is("event_id", tap["event_id"]))["update_id"],
		"child":    child["contract_id"],
		"viewed":   first("interface_views", func(sandbox.Row) bool { return true })["contract_id"],
		"moved":    first("active_contracts", func(r sandbox.Row) bool { return whole(r["reassignment_counter"]) > 0 })["contract_id"],
		"owner":    within(first("active_contracts", is("entity_name", "Account"))["payload"], "owner"),
		"hosted":   first("topology_events", is("kind", "added"))["party_id"],
		"workflow": first("updates", func(r sandbox.Row) bool { return r["workflow_id"] != nil && r["workflow_id"] != "" })["workflow_id"],
		"n":        d.n, "m": d.m, "s": 10, "o": tree["ledger_offset"],
	}
	texts := map[string]string{}
	for name, value := range given {
		texts[name] = text(value)
	}
	return texts
}

var variable = regexp.MustCompile(`::\w+|:'\w+'|:[a-z]\b`)

// query is a statement of a document with its variables replaced.
func (d *documented) query(t *testing.T, statement string) string {
	t.Helper()
	return variable.ReplaceAllStringFunc(statement, func(found string) string {
		name := strings.Trim(found, ":'")
		if strings.HasPrefix(found, "::") {
			return found
		}
		value, known := d.given[name]
		require.True(t, known, "a variable that the test does not know: %s in %s", found, statement)
		if strings.HasPrefix(found, ":'") {
			return "'" + strings.ReplaceAll(value, "'", "''") + "'"
		}
		return value
	})
}

// ask returns the rows of a query, the values in the order of its columns, as [plain] has them.
func (d *documented) ask(t *testing.T, query string) (answer []string) {
	t.Helper()
	rows, err := d.conn.Query(t.Context(), "SELECT row_to_json(q)::text FROM ("+query+") q")
	require.NoError(t, err, query)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err, query)
	for _, line := range lines {
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.UseNumber()
		_, err := decoder.Token() // {
		require.NoError(t, err)
		var values []any
		for decoder.More() {
			_, err := decoder.Token() // the column
			require.NoError(t, err)
			var value any
			require.NoError(t, decoder.Decode(&value))
			values = append(values, value)
		}
		answer = append(answer, plainRow(values))
	}
	return answer
}

// plainRow is a row as text in which equal values are equal: numbers whatever their zeros, times whatever their form.
func plainRow(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = plain(v)
	}
	return strings.Join(texts, " | ")
}

func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case *big.Rat:
		return v.RatString()
	case []any:
		texts := make([]string, len(v))
		for i, x := range v {
			texts[i] = plain(x)
		}
		return "[" + strings.Join(texts, ", ") + "]"
	case json.Number:
		return rational(v).RatString()
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return at.UTC().Format(time.RFC3339Nano)
		}
		return v
	default:
		return fmt.Sprint(v)
	}
}

// recipe is a question of docs/cookbook.md and its SQL.
type recipe struct{ question, statement string }

func recipes(t *testing.T) (list []recipe) {
	t.Helper()
	file, err := os.ReadFile("../../docs/cookbook.md")
	require.NoError(t, err)
	for _, part := range strings.Split(string(file), "\n### ")[1:] {
		question, rest, _ := strings.Cut(part, "\n")
		found := statements(rest)
		require.Len(t, found, 1, question)
		list = append(list, recipe{question, found[0]})
	}
	return list
}

func recipeOf(t *testing.T, question string) string {
	t.Helper()
	for _, r := range recipes(t) {
		if r.question == question {
			return r.statement
		}
	}
	t.Fatalf("the cookbook does not ask: %s", question)
	return ""
}

// testCookbook compares the answer to each question of the cookbook with the model's.
func (d *documented) testCookbook(t *testing.T) {
	answers := map[string]answer{}
	for _, part := range []map[string]answer{contractAnswers, pastAnswers, eventAnswers, movementAnswers, partyAnswers, historyAnswers} {
		for question, a := range part {
			answers[question] = a
		}
	}
	asked := recipes(t)
	require.GreaterOrEqual(t, len(asked), 40)
	for _, r := range asked {
		t.Run(r.question, func(t *testing.T) {
			a, known := answers[r.question]
			require.True(t, known, "a question without an answer in this test")
			var want []string
			for _, row := range a.of(d) {
				want = append(want, plainRow(row))
			}
			if !a.empty {
				require.NotEmpty(t, want, "the ledger says nothing about it")
			}
			got := d.ask(t, d.query(t, r.statement))
			slices.Sort(want)
			slices.Sort(got)
			require.Equal(t, want, got)
		})
		delete(answers, r.question)
	}
	require.Empty(t, answers, "answers to questions that nobody asks")
}

// testCookbookLimited asks each question as a role that is limited to a party.
func (d *documented) testCookbookLimited(t *testing.T) {
	_, as := limitedRole(t, d.database, "_limited", store.Reader{Parties: []string{d.given["party"]}, History: true})
	conn, err := pgx.Connect(t.Context(), as)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	_, err = conn.Exec(t.Context(), "SET search_path = ledger")
	require.NoError(t, err)
	for _, r := range recipes(t) {
		_, err := conn.Exec(t.Context(), d.query(t, r.statement))
		require.NoError(t, err, r.question)
	}
}

// testKeys holds what comments say of keys against the rows.
func (d *documented) testKeys(t *testing.T) {
	used, without := d.keysHold(t)
	require.Greater(t, used, 25)
	require.ElementsMatch(t, []string{"holding_totals", "fields", "unknown_updates", "exact_payloads", "token_events", "token_transfers"}, without,
		"no columns of these are unique and never NULL; others need the line of keys at the end of their comment in migrations/")
}

// keysHold returns how many references lead to a row, and the relations that have no key.
func (d *documented) keysHold(t *testing.T) (used int, without []string) {
	t.Helper()
	described := describedRelations(t, d.conn)
	for name, r := range described {
		if len(r.keys.Key) == 0 {
			without = append(without, name)
			continue
		}
		key := strings.Join(r.keys.Key, ", ")
		require.Equal(t, []string{"0 | 0"}, d.ask(t, fmt.Sprintf("SELECT count(*) - count(DISTINCT (%s)), count(*) FILTER (WHERE num_nulls(%s) > 0) FROM %s", key, key, name)), name)
		for _, ref := range r.keys.References {
			require.Equal(t, "ledger", ref.Schema)
			require.Contains(t, described, ref.Table)
			var on []string
			for i := range ref.Columns {
				on = append(on, "a."+ref.Columns[i]+" = b."+ref.To[i])
			}
			found := d.ask(t, fmt.Sprintf("SELECT EXISTS (SELECT FROM %s a), EXISTS (SELECT FROM %s a JOIN %s b ON %s)", name, name, ref.Table, strings.Join(on, " AND ")))
			if found[0] == "true | true" {
				used++
			} else {
				require.Equal(t, "false | false", found[0], "%s refers to %s", name, ref.Table)
			}
		}
	}
	return used, without
}
