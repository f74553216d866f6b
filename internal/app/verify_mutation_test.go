package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/audit"
)

// How many mutations are made before each verification. Fewer at once take longer: MUTATIONS_AT_ONCE=1 makes sure that
// none is found for another one's sake.
const mutationsAtOnce = 40

// Tables that are not compared with anything, and why.
var notVerified = map[string]string{
	"leadership":            "who leads now",
	"offset_checkpoints":    "hints of the server, which no promise rests on",
	"packages":              "what is vetted is read again at an interval",
	"vetting_states":        "as packages",
	"vetted_packages":       "as packages",
	"vetting_changes":       "what was seen between two readings: nobody can tell it again",
	"hosting":               "the participant is asked again",
	"tasks":                 "how the tasks beside the stream fare",
	"verifications":         "the seals have a test of their own",
	"schema_version":        "of the migrations",
	"progress":              "how far long work has come",
	"rewrites":              "a help for readers that keep copies",
	"readers":               "the operator's choice",
	"reader_parties":        "as readers",
	"unlimited":             "always the same row",
	"position_stakeholders": "more of them may be there: they are written before the contracts",
}

// Columns that are not compared, and why.
var notVerifiedColumns = map[string]string{
	"participant.recorded_at": "when it was recorded first",
	"network.recorded_at":     "as of participant",
	"scopes.recorded_at":      "as of participant",
	"lookups.looked_up_at":    "the indexer's clock",
	"checkpoints.updated_at":  "the database's clock",
	"snapshots.started_at":    "as of checkpoints",
}

// Columns that a repair which reads the history again writes anew.
var writtenAnew = []string{
	"transactions_position.revision",
}

// once are the tables that say what is held, and what numbers mean. What is wrong there is found; it is repaired where
// the ledger tells it.
var once = []string{
	"participant", "network", "scopes", "checkpoints", "coverage", "floors", "snapshots", "transactions_position", "templates", "synchronizers",
	"party_lists",
}

// mutation is one damage.
type mutation struct {
	relation string
	column   string   // empty: the row is gone
	what     string   // for people
	named    []string // relations of which one has to be named
	harmless bool
}

func (m mutation) String() string { return "\n" + m.relation + ": " + m.what }

// mutator damages a database.
type mutator struct {
	t       *testing.T
	conn    *pgx.Conn
	random  *rand.Rand
	schema  string // of the tables
	tables  []string
	columns map[string][]mutableColumn
	turn    map[string]int // of a table's columns
}

type mutableColumn struct{ name, kind string }

func newMutator(t *testing.T, url, schema string, seed uint64) *mutator {
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	m := &mutator{t: t, conn: conn, random: rand.New(rand.NewPCG(seed, 1)), schema: schema, columns: map[string][]mutableColumn{}, turn: map[string]int{}}
	rows, err := conn.Query(t.Context(), `
		SELECT c.relname, a.attname, y.typname FROM pg_class c
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		JOIN pg_type y ON y.oid = a.atttypid
		WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1, a.attnum`, schema)
	require.NoError(t, err)
	var table, name, kind string
	_, err = pgx.ForEachRow(rows, []any{&table, &name, &kind}, func() error {
		if notVerified[table] == "" {
			m.columns[table] = append(m.columns[table], mutableColumn{name, kind})
		}
		return nil
	})
	require.NoError(t, err)
	m.tables = slices.Sorted(maps.Keys(m.columns))
	return m
}

// state is every row of every table that is verified.
func (m *mutator) state() map[string][]string {
	m.t.Helper()
	state := map[string][]string{}
	for _, table := range m.tables {
		state[table] = m.rows(table)
	}
	return state
}

// rows is every row of a table, as far as it is verified.
func (m *mutator) rows(table string) []string {
	m.t.Helper()
	var selected []string
	for _, c := range m.columns[table] {
		if name := table + "." + c.name; !slices.Contains(writtenAnew, name) && notVerifiedColumns[name] == "" {
			selected = append(selected, "t."+c.name)
		}
	}
	rows, err := m.conn.Query(m.t.Context(), "SELECT row_to_json(r)::text FROM (SELECT "+strings.Join(selected, ", ")+" FROM "+m.schema+"."+table+" t) r ORDER BY 1")
	require.NoError(m.t, err)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(m.t, err)
	return texts
}

// allowed tells whether rows of a table that are not what they were do no harm.
func allowed(table string, rows, were []string) bool {
	// What is written before the rows that need it.
	return (table == "template_interfaces" || table == "positions") && containsAll(rows, were)
}

// containsAll tells whether all of some rows are there.
func containsAll(rows, some []string) bool {
	return !slices.ContainsFunc(some, func(row string) bool { return !slices.Contains(rows, row) })
}

// mutate damages one table.
func (m *mutator) mutate(table string) (mutation, bool) {
	ctx := m.t.Context()
	var partition, place, text string
	err := m.conn.QueryRow(ctx, fmt.Sprintf(`
		SELECT tableoid::regclass::text, ctid::text, left(t::text, 300) FROM %s t
		ORDER BY t::text OFFSET floor($1::float8 * (SELECT count(*) FROM %[1]s)) LIMIT 1`, m.schema+"."+table), m.random.Float64()).Scan(&partition, &place, &text)
	if errors.Is(err, pgx.ErrNoRows) {
		return mutation{}, false
	}
	require.NoError(m.t, err)
	made := mutation{relation: table, named: namesOf(table)}
	where := fmt.Sprintf("%s.%s SET %%s WHERE tableoid = '%s'::regclass AND ctid = '%s'", m.schema, table, partition, place)
	column := m.columns[table][m.turn[table]%len(m.columns[table])]
	m.turn[table]++
	switch kind := m.random.IntN(10); {
	case kind < 2:
		made.what = "deleted " + text
		return made, m.exec(fmt.Sprintf("DELETE FROM %s.%s WHERE tableoid = '%s'::regclass AND ctid = '%s'", m.schema, table, partition, place))
	case kind < 4:
		var names, values []string
		for _, c := range m.columns[table] {
			value := c.name
			if c == column {
				value = m.other(column)
			}
			names, values = append(names, c.name), append(values, value)
		}
		made.column = column.name
		made.what = fmt.Sprintf("doubled, with another %s: %s", column.name, text)
		if notVerifiedColumns[table+"."+column.name] != "" {
			return made, false
		}
		return made, m.exec(fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %[1]s WHERE tableoid = '%[4]s'::regclass AND ctid = '%[5]s'",
			m.schema+"."+table, strings.Join(names, ", "), strings.Join(values, ", "), partition, place))
	default:
		if notVerifiedColumns[table+"."+column.name] != "" {
			return made, false
		}
		value := m.other(column)
		made.column = column.name
		made.what = fmt.Sprintf("%s = %s in %s", column.name, value, text)
		if table == "lookups" && column.name == "node_id" { // any event of its contract is the right place of a look-up
			where += fmt.Sprintf(" AND (contract_id, ledger_offset, %s) NOT IN (SELECT k.contract_id, k.ledger_offset, k.node_id FROM %s.lookup_events(%d) k)",
				value, m.schema, math.MaxInt64)
		}
		return made, m.exec(fmt.Sprintf("UPDATE "+where+" AND (%s)::text IS DISTINCT FROM %s::text", column.name+" = "+value, value, column.name))
	}
}

// exec tells whether a statement did something. Most of what constraints refuse is not tried further.
func (m *mutator) exec(sql string) bool {
	tag, err := m.conn.Exec(m.t.Context(), sql)
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		require.NotEqual(m.t, "42", refused.Code[:2], "%s: %v", sql, err)
		return false
	}
	require.NoError(m.t, err)
	return tag.RowsAffected() > 0
}

// other is an expression for another value of a column.
func (m *mutator) other(c mutableColumn) string {
	choices := map[string][]string{
		"int8":        {"%s + 1", "%s - 1", "0", "%s * 2 + 1", "NULL"},
		"int4":        {"%s + 1", "%s - 1", "0", "%s * 2 + 1", "NULL"},
		"bool":        {"NOT %s", "NULL"},
		"text":        {"%s || 'x'", "''", "upper(%s)", "NULL", "'updates'"},
		"jsonb":       {`'{"a": 1}'`, `NULL`, `jsonb_build_array(%s)`, `jsonb_build_object('$exact', 'damage')`},
		"timestamptz": {"%s + interval '1 microsecond'", "%s - interval '1 day'", "NULL"},
		"uuid":        {"md5(%s::text)::uuid", "NULL"},
		"bytea":       {`%s || '\x00'::bytea`, `''::bytea`, "NULL"},
		"_text":       {"array_append(%s, 'mallory')", "'{}'::text[]", "NULL", "%s[2:]"},
		"_int8":       {"array_append(%s, 1)", "%s[2:]", "'{}'::bigint[]"},
		"numeric":     {"%s + 0.0000000001", "-%s", "NULL"},
	}[c.kind]
	require.NotEmpty(m.t, choices, "a column of type %s", c.kind)
	value := choices[m.random.IntN(len(choices))]
	if strings.Contains(value, "%s") {
		value = fmt.Sprintf(value, c.name)
	}
	return value
}

// alsoNamed are the relations that may be named instead of the one that was damaged: what refers to it, or what it is
// compared with.
var alsoNamed = map[string][]string{
	"template_interfaces": {"interface_views"},
}

func namesOf(table string) []string { return append([]string{table}, alsoNamed[table]...) }

// Every damage to any column of any relation that is verified is found, named and repaired.
func TestVerifyFindsNamesAndRepairsEveryMutation(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "damages, verifies and repairs six databases")
	seed, count := uint64(numberFrom(t, "MUTATIONS_SEED", 1)), 720 // mutations, over all databases
	worlds := mutationWorlds()
	for i, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.run(t, seed*100+uint64(i), numberFrom(t, "MUTATIONS", count)/len(worlds), numberFrom(t, "MUTATIONS_AT_ONCE", mutationsAtOnce))
		})
	}
}

func numberFrom(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

func (w *mutationWorld) run(t *testing.T, seed uint64, count, atOnce int) {
	database, run, cfg := w.index(t)
	m := newMutator(t, database, cfg.Schemas.Domain().OrDefault().Tables, seed)
	if w.network { // what of the transaction history has a row although there is none is not compared
		m.tables = slices.DeleteFunc(m.tables, func(table string) bool { return table == "balance_rounds" })
	}
	pristine := m.state()
	result, err := RunVerify(t.Context(), cfg, testLogger(t), func(d audit.Difference) { t.Errorf("before anything was damaged: %v", d) })
	require.NoError(t, err)
	require.Equal(t, w.late, len(result.Notes) == 1, "without a snapshot the active set is not known: %v", result.Notes)
	require.Equal(t, pristine, m.state(), "verification writes nothing")
	if t.Failed() {
		return
	}
	cfg.Repair = true
	for done := 0; done < count; {
		made := m.several(min(atOnce, count-done))
		done += len(made)
		for i := range made {
			table := made[i].relation
			made[i].harmless = allowed(table, m.rows(table), pristine[table])
		}
		var found []audit.Difference
		result, err := RunVerify(t.Context(), cfg, testLogger(t), func(d audit.Difference) { found = append(found, d) })
		require.NoError(t, err, "seed %d: %v", seed, made)
		for _, mutation := range made {
			if !mutation.harmless && !slices.ContainsFunc(found, func(d audit.Difference) bool { return slices.Contains(mutation.named, d.Relation) }) {
				t.Errorf("seed %d: not named: %v", seed, mutation)
			}
		}
		if !slices.Equal(pristine["lookups"], m.rows("lookups")) { // what is wanted again, the daemon asks for
			require.NoError(t, RunIndexer(t.Context(), run, testLogger(t)))
		}
		repaired := m.state()
		for _, table := range m.tables {
			want, got := pristine[table], repaired[table]
			if !slices.Equal(want, got) && !allowed(table, got, want) {
				t.Errorf("seed %d: not repaired: %s\n%s", seed, table, differentRows(want, got))
			}
		}
		require.Zero(t, result.Remaining(true), "seed %d: %v", seed, made)
		if t.Failed() {
			t.Fatalf("after %d mutations:\n%v\nfound:\n%v", done, made, found[:min(len(found), 20)])
		}
	}
	m.alterHeld(cfg, seed, max(count/160, 1))
	m.alterNames(cfg)
}

// unfound are damages of what is held that nothing tells, of a column or of a whole row (docs/reliability.md).
var unfound = map[string]string{
	"participant.":          "recorded again, of whichever server is asked next",
	"network.":              "as participant",
	"network.network_id":    "the service of a transaction history is asked; of one that follows from updates there is none",
	"coverage.to_inclusive": "beyond the watermark it claims what may be there: updates are missing when the watermark has passed it",
	"floors.pruned_to":      "up to where was pruned follows from nothing else",
	"snapshots.token_kind":  "of a snapshot that is finished nothing is read on",
	"snapshots.token":       "as token_kind",
	"snapshots.entries":     "for people",
	"snapshots.finished_at": "the database's clock, if it is finished",
	"snapshots.pruned":      "whether pruning made it follows from nothing else",
	"snapshots.mixed":       "as pruned",

	"transactions_position.revision":  "a writer only needs to see that it changed",
	"transactions_position.rereading": "the next time that the history is read to its end says so",
}

// passes reports whether what is damaged is a checkpoint that goes back by one, where nothing may have begun or ended, or
// that of the transaction history: where a service's is read on says the last record, and derived records that are there
// twice, or not, are found as soon as they are.
func (m mutation) passes() bool {
	return m.relation == "checkpoints" &&
		(strings.Contains(m.what, "(transactions,") || strings.HasPrefix(m.what, "ledger_offset = ledger_offset - 1 "))
}

// alterHeld damages what is held, one row at a time, and puts it back: it is found, by what it says together with
// others, or by what it is compared with. Each world takes half of the tables, the one after it the others.
func (m *mutator) alterHeld(cfg VerifyConfig, seed uint64, times int) {
	cfg.Repair = false
	for i, table := range once {
		if (uint64(i)+seed)%2 != 0 {
			continue
		}
		for range times {
			before := m.rows(table)
			m.exec("CREATE TEMPORARY TABLE before AS TABLE " + m.schema + "." + table)
			made, ok := m.mutate(table)
			if ok && !(slices.Contains(dictionaries, table) && containsAll(m.rows(table), before)) {
				found, err := m.verified(cfg)
				var problem *ledger.Problem
				if len(found) == 0 && !errors.As(err, &problem) && unfound[table+"."+made.column] == "" && !made.passes() {
					m.t.Errorf("not found: %v (%v)", made, err)
				} else {
					m.t.Logf("%v: %v %v", made, found[:min(len(found), 1)], err)
				}
			}
			m.exec("DELETE FROM " + m.schema + "." + table)
			m.exec("INSERT INTO " + m.schema + "." + table + " SELECT * FROM before")
			m.exec("DROP TABLE before")
		}
	}
}

// dictionaries are tables of which a row more does no harm.
var dictionaries = []string{"templates", "synchronizers", "party_lists"}

// alterNames damages a row of each dictionary: what refers to them is told, and is right when it was repaired.
func (m *mutator) alterNames(cfg VerifyConfig) {
	for _, table := range dictionaries {
		for _, ok := m.mutate(table); !ok; {
			_, ok = m.mutate(table)
		}
	}
	_, err := m.verified(cfg)
	require.NoError(m.t, err)
	cfg.Repair = false
	left, err := m.verified(cfg)
	require.NoError(m.t, err)
	require.Empty(m.t, left)
}

func (m *mutator) verified(cfg VerifyConfig) (found []audit.Difference, err error) {
	_, err = RunVerify(m.t.Context(), cfg, testLogger(m.t), func(d audit.Difference) { found = append(found, d) })
	return found, err
}

// together are tables of which one at a time is damaged.
var together = [][]string{
	// Where a record's own row is lost, the rest of it is not looked at but written anew, and what follows from it may be
	// lost too.
	{
		"transactions", "transfers", "transfer_receivers", "balance_changes", "mints", "taps", "aborted_transfer_instructions", "unknown_transactions",
		"party_transfers", "balance_totals", "latest_totals",
	},
}

// several damages different tables.
func (m *mutator) several(n int) (made []mutation) {
	tables := slices.DeleteFunc(slices.Clone(m.tables), func(table string) bool { return slices.Contains(once, table) })
	m.random.Shuffle(len(tables), func(i, j int) { tables[i], tables[j] = tables[j], tables[i] })
	var taken []string // of all that may be named instead: what one damage is named by, no other one is
	for _, table := range tables {
		if slices.ContainsFunc(namesOf(table), func(name string) bool { return slices.Contains(taken, name) }) {
			continue
		}
		for range 20 {
			if len(made) == n {
				return made
			}
			if mutation, ok := m.mutate(table); ok {
				made = append(made, mutation)
				taken = append(taken, mutation.named...)
				for _, group := range together {
					if slices.Contains(group, table) {
						taken = append(taken, group...)
					}
				}
				break
			}
		}
	}
	return made
}

// differentRows lists rows that are on one side only, some of each.
func differentRows(want, got []string) string {
	var b strings.Builder
	list := func(sign string, rows, others []string) {
		n := 0
		for _, row := range rows {
			if n < 3 && !slices.Contains(others, row) {
				fmt.Fprintf(&b, "%s %.500s\n", sign, row)
				n++
			}
		}
	}
	list("-", want, got)
	list("+", got, want)
	return b.String()
}

// mutationWorld is a ledger, and how it is indexed.
type mutationWorld struct {
	name    string
	shape   string
	version string
	from    bool // a snapshot in the middle
	late    bool // begun in the middle without a snapshot, so that contracts have to be looked up
	strange bool // elements of unknown kinds, records of unknown shapes, and values that jsonb can't hold
	network bool // the updates of a network, over two migrations
}

func mutationWorlds() []mutationWorld {
	return []mutationWorld{
		{name: "from genesis", shape: "acs-delta", version: "3.5", strange: true},
		{name: "exercises", shape: "ledger-effects", version: "3.6"},
		{name: "from a snapshot", shape: "acs-delta", version: "3.5", from: true, strange: true},
		{name: "from the middle", shape: "acs-delta", version: "3.5", late: true},
		{name: "of a network", strange: true, network: true},
		{name: "of a network from a snapshot", strange: true, network: true, from: true},
	}
}

// index indexes the world, and says how it is verified.
func (w *mutationWorld) index(t *testing.T) (database string, run Indexer, cfg VerifyConfig) {
	t.Helper()
	if w.network {
		return w.indexNetwork(t)
	}
	l := sandbox.NewLedger(sandbox.Options{Seed: 7, ActiveShare: 0.5})
	l.Grow(120)
	options := sandbox.ServerOptions{Version: w.version, NoCheckpoints: true}
	if w.strange {
		options.Rewrite = unusual
	}
	ledgerURL := serve(t, l, options)
	scanURL := serveScan(t, sandbox.NewScan(l, sandbox.ScanOptions{BalanceChanges: true, ExtraKinds: true, OddShapes: w.strange}))
	scope := defaultScope()
	scope.Shape, scope.Blobs, scope.Interfaces = w.shape, true, []string{holdingInterface}
	database = throwaway.Migrated(t, migrate)
	run = indexerFor(database, ledgerURL, scope)
	run.ScanURL = []string{scanURL}
	at := quietOffset(t, l)
	if w.from {
		_, err := RunBackfill(t.Context(), backfillFor(database, ledgerURL, scope, at), testLogger(t), nil)
		require.NoError(t, err)
	}
	if w.late {
		run.Start, run.LookupRate = strconv.FormatInt(at, 10), 100
	}
	require.NoError(t, RunIndexer(t.Context(), run, testLogger(t)))
	return database, run, VerifyConfig{Database: run.Database, Sources: run.Sources, Verify: config.Verify{All: true}}
}

// indexNetwork is index for the updates of a network.
func (w *mutationWorld) indexNetwork(t *testing.T) (database string, run Indexer, cfg VerifyConfig) {
	t.Helper()
	_, scan := scanOf(7, 400, sandbox.ScanOptions{Rewrite: unusual, SnapshotEvery: 5 * time.Second})
	database = networkDatabase(t)
	run = networkFor(database, serveScan(t, scan))
	if w.from {
		_, err := RunNetworkBackfill(t.Context(), networkBackfillFor(database, run.ScanURL[0], networkOffsetAt(t, scan, 0.7)), testLogger(t), nil)
		require.NoError(t, err)
	}
	require.NoError(t, RunIndexer(t.Context(), run, testLogger(t)))
	cfg = VerifyConfig{Database: run.Database, Sources: run.Sources, Verify: config.Verify{All: true}}
	cfg.Network = true
	return database, run, cfg
}

// unusual puts values that jsonb can't hold into payloads, and events of unknown kinds beside the others. What an
// element gets depends on its offset, so that a snapshot and the updates say the same.
func unusual(e sandbox.Element) []byte {
	raw := string(e.Raw)
	if e.Offset%3 == 0 {
		raw = strings.ReplaceAll(raw, `"createArgument":{"`, `"createArgument":{"strange":"a\u0000b","`)
		raw = strings.ReplaceAll(raw, `"create_arguments":{"`, `"create_arguments":{"strange":"a\u0000b","`)
	}
	if e.Offset%5 == 0 && !strings.Contains(e.Path, "active-contracts") {
		raw = eventList.ReplaceAllString(raw, `"$1":{"value":$2"events":[{"Odd":{"value":{"nodeId":99,"a":1}}},{`)
	}
	if e.Offset%5 == 0 && e.Path == "/v2/updates" {
		raw = strings.Replace(strings.Replace(raw, `"root_event_ids":[`, `"root_event_ids":["odd",`, 1), `"events_by_id":{`, `"events_by_id":{"odd":{"event_type":"odd_event"},`, 1)
	}
	return []byte(raw)
}
