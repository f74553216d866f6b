package app

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/sandbox"
)

// strangeEdits put members that nobody knows in at every level where an element can have some. V is replaced by a
// value, which jsonb can hold or not.
var strangeEdits = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`^\{"update":\{"`), `{"beside":V,"update":{"`},
	{regexp.MustCompile(`^(\{.*"update":\{"\w+":\{)"value":\{`), `${1}"beside":[{"a":null},V],"value":{"new":{"a":null,"b":V},`},
	{regexp.MustCompile(`"(\w+Event)":\{"([^v])`), `"$1":{"new in $1":{"a":[1,2],"b":V},"$2`}, // but for the next one, which has a value
	{regexp.MustCompile(`"JsUnassignedEvent":\{"value":\{`), `"JsUnassignedEvent":{"beside":V,"value":{"fee":"1","more":V,`},
	{regexp.MustCompile(`\{"interfaceId"`), `{"cached":V,"interfaceId"`},
	{regexp.MustCompile(`"viewStatus":\{`), `"viewStatus":{"reason":V,`},
	{regexp.MustCompile(`"traceContext":\{`), `"traceContext":{"baggage":V,`},
	{regexp.MustCompile(`\{"event":\{"(ParticipantAuthorization\w+)":\{"value":\{`), `{"index":V,"event":{"$1":{"beside":V,"value":{"new":V,`},
	{regexp.MustCompile(`"synchronizerTimes":\[\{`), `"synchronizerTimes":[{"lag":V,`},
	{regexp.MustCompile(`\{"workflowId":`), `{"page":V,"workflowId":`},
	{regexp.MustCompile(`"(JsActiveContract|JsIncompleteUnassigned|JsIncompleteAssigned|JsEmpty)":\{"`), `"$1":{"new":V,"`},
	{regexp.MustCompile(`"JsEmpty":\{\}`), `"JsEmpty":{"why":V}`},
	{regexp.MustCompile(`"(createArgument|contractKey|choiceArgument|exerciseResult|viewValue)":\{"`), `"$1":{"strange":V,"`},
	{regexp.MustCompile(`"details":\[\]`), `"details":[V]`},
	{regexp.MustCompile(`"reason":null`), `"reason":V`},
}

// strangeValues are what V stands for.
var strangeValues = []string{
	`{"a":null}`, `"a\u0000b"`, `"\ud800"`, `[1e2, -0, 1.50, 12345678901234567890.10e-3]`, `1e200000`, `{"$exact":"a NUL"}`,
	strings.Repeat("[", 1001) + strings.Repeat("]", 1001), `"\u00e4\/\ud83d\ude00"`, `""`,
}

var (
	absent       = regexp.MustCompile(`,"(acsDelta|representativePackageId)":(true|false|"[^"]*")`)
	null         = regexp.MustCompile(`"(observers|contractKeyHash|createdEventBlob|commandId|workflowId|submitter)":(\[[^\]]*\]|"[^"]*")`)
	anyTime      = regexp.MustCompile(`("(?:recordTime|effectiveAt|createdAt|assignmentExclusivity)":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)[.\d]*Z"`)
	eventList    = regexp.MustCompile(`"(Transaction|Reassignment)":\{"value":(.*)"events":\[\{`)
	placeOfValue = regexp.MustCompile(`[:\[,]V[,}\]]`)
	topology     = regexp.MustCompile(`"TopologyTransaction":\{"value":(.*)"events":\[`)
)

// strange makes of an element what no participant has sent yet. Which strangeness it gets depends on its offset.
func strange(e sandbox.Element) [][]byte {
	raw := string(e.Raw)
	snapshot := strings.Contains(e.Path, "active-contracts")
	checkpoint := strings.HasPrefix(raw, `{"update":{"OffsetCheckpoint"`) // can have the offset of the update before it
	if e.Offset%9 == 0 && !snapshot && !checkpoint {
		return [][]byte{[]byte(withValues(fmt.Sprintf(`{"update":{"NewKind":{"value":{"offset":%d,"updateId":"new-%[1]d","synchronizerId":"sync::new",`+
			`"recordTime":"2025-10-14T11:30:00.123456789Z","x":V}}},"seq":V}`, e.Offset), int(e.Offset), 1))}
	}
	raw = eventList.ReplaceAllString(raw, `"$1":{"value":$2"events":[{"Rekeyed":{"nodeId":98,"key":null}},{"Odd":{"value":{"nodeId":99,"a":V}}},`+
		`{"Odder":V},{"Odder":"te\u0000xt"},{"Odder":"b\ud800"},{`)
	raw = topology.ReplaceAllString(raw, `"TopologyTransaction":{"value":$1"events":[{"event":{"ParticipantRetired":{"value":V}},"index":6},{"event":{"Empty":{}}},`)
	elements := []string{raw}
	if e.Offset%5 == 0 && !snapshot {
		elements = append(elements, strangeCheckpoint(e.Offset, 20, "a", "b"), strangeCheckpoint(e.Offset, 10, "c", "a"), strangeCheckpoint(e.Offset, 30, "b"))
	}
	var all [][]byte
	for i, text := range elements {
		for n, edit := range strangeEdits {
			text = edit.pattern.ReplaceAllString(text, edit.with)
			if snapshot { // a creation event that two entries have is the same in both
				text = withValues(text, int(e.Offset)+n, 0)
			}
		}
		if e.Offset%3 == 0 {
			text = anyTime.ReplaceAllString(text, `${1}.123456789Z"`)
		}
		if e.Offset%8 == 1 {
			text = absent.ReplaceAllString(text, "")
			text = null.ReplaceAllString(text, `"$1":null`)
			text = strings.ReplaceAll(text, `"traceContext":null`, `"traceContext":{}`)
		}
		if e.Offset%4 == 0 {
			text = strings.ReplaceAll(text, `"reassignmentId":`, `"unassignId":`)
		}
		if e.Offset%7 == 0 && !snapshot {
			text = strings.ReplaceAll(text, fmt.Sprintf(`"offset":%d,"nodeId"`, e.Offset), `"offset":0,"nodeId"`)
		}
		all = append(all, []byte(withValues(text, int(e.Offset)+i, 1)))
	}
	return all
}

func strangeCheckpoint(offset, second int64, synchronizers ...string) string {
	var entries []string
	for i, s := range synchronizers {
		entries = append(entries, fmt.Sprintf(`{"synchronizerId":"%s","recordTime":"2025-10-14T11:30:%02d.5Z","place":[%d,V]}`, s, second, i))
	}
	return fmt.Sprintf(`{"update":{"OffsetCheckpoint":{"value":{"offset":%d,"synchronizerTimes":[%s]}}}}`, offset, strings.Join(entries, ","))
}

// withValues puts strange values in, the next but so many at each place.
func withValues(text string, n, step int) string {
	return placeOfValue.ReplaceAllStringFunc(text, func(match string) string {
		n += step
		return match[:1] + strangeValues[n%len(strangeValues)] + match[2:]
	})
}

// The same of elements that hold what no version knows, and values that no column can hold.
func TestRowsOfStrangeElementsAreComplete(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	for version, shape := range map[string]string{"3.5": "acs-delta", "3.6": "ledger-effects"} {
		t.Run("updates of "+version, func(t *testing.T) {
			t.Parallel()
			if version != "3.6" {
				brief.Skip(t)
			}
			l := sandbox.NewLedger(sandbox.Options{Seed: 19})
			l.Grow(150)
			var s served
			options := sandbox.ServerOptions{Version: version}
			database := s.index(t, l, options, everything(shape), strange)
			s.requireStrange(t, "Transaction Reassignment TopologyTransaction NewKind Odder ParticipantRetired JsUnassignedEvent JsAssignmentEvent unassignId")
			require.NotEmpty(t, s.checkpoints)
			s.requireRebuilt(t, database)
			var again served
			options.Rewrite = again.rewrite(strange)
			requireUpdatesEqual(t, database, serve(t, l, options), everything(shape))
		})
	}
	t.Run("snapshot", func(t *testing.T) {
		t.Parallel()
		var s served
		database := s.backfill(t, ledgerInFlight(), sandbox.ServerOptions{ExtraEntries: true}, everything("acs-delta"), strange)
		requireEntryKinds(t, &s)
		s.requireRebuilt(t, database)
	})
}

func (s *served) requireStrange(t *testing.T, kinds string) {
	t.Helper()
	var all []byte
	for _, raw := range s.updates {
		all = append(all, raw...)
	}
	for _, kind := range names(kinds) {
		require.Contains(t, string(all), `"`+kind+`":`)
	}
	require.NotContains(t, string(all), `:V`)
	require.True(t, bytes.Contains(all, []byte(`"new in CreatedEvent"`)) && bytes.Contains(all, []byte(`"reason"`)))
}

// notServed reports whether rebuilding does not need a column: it copies what other rows say, or says what only we say.
// No world here has a resync.
func notServed(column string) bool {
	table, name, _ := strings.Cut(column, ".")
	if strings.HasPrefix(table, "resync") || strings.HasPrefix(name, "served_") {
		return true
	}
	switch name {
	case "record_time":
		return table != "updates" && table != "offset_checkpoints"
	case "synchronizer_ref":
		return table != "updates" && table != "created"
	case "stakeholders_ref", "seen_by_ref", "seen_also_by_ref", "seen_by_others_ref":
		return true
	}
	return slices.Contains(names(`
		interface_views.contract_id unknown_elements.kind
		templates.package_id templates.module_name templates.entity_name`), column)
}

// columnsToLose lists every column outside of primary keys of the dictionaries and of all tables whose rows lie at an
// offset, with a statement that spoils it; but not of the answers to look-ups, and of the records, which
// TestHistoryIsRebuiltFromItsRows rebuilds. The catalog says which these are: a table that is added is one of them.
const columnsToLose = `
SELECT c.table_name || '.' || c.column_name, format('UPDATE indexer.%I SET %I = %s WHERE %2$I IS NOT NULL', c.table_name, c.column_name,
	CASE WHEN c.is_nullable = 'YES' AND c.table_name <> 'templates' THEN 'NULL'
	WHEN c.column_name = 'template_id' THEN 'template_id || ''?'', entity_name = entity_name || ''?'''
	WHEN c.data_type = 'text' THEN format('%I || ''?''', c.column_name)
	WHEN c.data_type = 'boolean' THEN format('NOT %I', c.column_name)
	WHEN c.data_type = 'timestamp with time zone' THEN format('%I + interval ''1 hour''', c.column_name)
	WHEN c.data_type IN ('jsonb', 'bytea') THEN '''{}'''
	WHEN c.data_type = 'ARRAY' THEN format('%I || ''{mallory}''', c.column_name)
	ELSE format('%I + 1000', c.column_name) END)
FROM information_schema.columns c
WHERE c.table_schema = 'indexer' AND (c.table_name IN ('templates', 'synchronizers', 'party_lists')
	OR c.table_name NOT IN ('lookups', 'transactions', 'checkpoints') AND c.table_name IN (
		SELECT t.relname FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = 'ledger_offset'
		WHERE t.relnamespace = 'indexer'::regnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition))
AND NOT EXISTS (SELECT FROM information_schema.key_column_usage k JOIN information_schema.table_constraints p USING (constraint_schema, constraint_name)
	WHERE p.constraint_type = 'PRIMARY KEY' AND k.table_schema = c.table_schema AND k.table_name = c.table_name AND k.column_name = c.column_name)
ORDER BY 1`

// Rebuilding proves nothing unless it notices a loss: whichever column is spoilt, it must find a difference.
func TestRebuildingNoticesALostColumn(t *testing.T) {
	t.Parallel()
	brief.Skip(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 20})
	l.Grow(20)
	var effects, deltas, snapshot served
	noticed := map[string]bool{}
	all := effects.noticeLosses(t, effects.index(t, l, sandbox.ServerOptions{Version: "3.6"}, everything("ledger-effects"), strange), noticed)
	deltas.noticeLosses(t, deltas.index(t, l, sandbox.ServerOptions{}, everything("acs-delta"), strange), noticed)
	snapshot.noticeLosses(t, snapshot.backfill(t, growInFlight(sandbox.Options{Seed: 5, ActiveShare: 0.05}), sandbox.ServerOptions{ExtraEntries: true}, everything("acs-delta"), strange), noticed)
	for _, column := range all {
		require.True(t, noticed[column] || notServed(column), "nothing differs without column %s", column)
	}
}

// noticeLosses spoils the columns that are not noticed yet, one at a time, and returns the names of all.
func (s *served) noticeLosses(t *testing.T, database string, noticed map[string]bool) []string {
	t.Helper()
	s.requireRebuilt(t, database)
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), columnsToLose)
	require.NoError(t, err)
	type column struct{ Name, Spoil string }
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	require.NoError(t, err)
	require.Greater(t, len(columns), 100)
	var all []string
	for _, c := range columns {
		all = append(all, c.Name)
		if noticed[c.Name] || notServed(c.Name) {
			continue
		}
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		spoilt, err := tx.Exec(t.Context(), c.Spoil)
		require.NoError(t, err, c.Spoil)
		if spoilt.RowsAffected() > 0 {
			found, err := s.compare(t.Context(), tx)
			require.NoError(t, err, c.Spoil)
			noticed[c.Name] = len(found) > 0
		}
		require.NoError(t, tx.Rollback(t.Context()))
	}
	return all
}
