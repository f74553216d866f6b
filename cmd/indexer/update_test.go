package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/sandbox"
)

func TestUpdate(t *testing.T) {
	t.Parallel()
	l := grown(120)
	environ, truth := indexed(t, l, sandbox.ServerOptions{}, nil)
	kinds := map[any]bool{}
	for _, row := range truth["updates"] {
		if kinds[row["kind"]] {
			continue
		}
		kinds[row["kind"]] = true
		id := row["update_id"].(string)
		report := jsonOf(t, config.ExitDone, environ, "update", id)
		require.Equal(t, "equal", at(t, report, "result"))
		require.Equal(t, []any{}, at(t, report, "differences"))
		require.Equal(t, id, at(t, report, "database", "rows", "updates", 0, "update_id"))
		require.Equal(t, fmt.Sprint(row["ledger_offset"]), fmt.Sprint(at(t, report, "database", "stored_at", 0)))
		require.Len(t, at(t, report, "ledger", "raw", "update"), 1)
		stdout, _ := printed(t, config.ExitDone, environ, "update", id)
		require.Contains(t, stdout, "stored as the ledger shows it\n")
		require.NotContains(t, stdout, "RELATION")
		require.Contains(t, stdout, "\nin the ledger\n{\n")
		require.Contains(t, stdout, "\nstored\n{\n")
	}
	require.Len(t, kinds, 3)
}

// Every place that differs is named, beside what is the same.
func TestUpdateThatDiffers(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l := grown(120)
	environ, truth := indexed(t, l, sandbox.ServerOptions{}, nil)
	exercised := truth["exercised_events"][0]
	id, offset := exercised["update_id"].(string), exercised["ledger_offset"]
	db := connect(t, environ["INDEXER_DATABASE_URL"])
	exec := func(statement string) {
		t.Helper()
		changed, err := db.Exec(t.Context(), statement, fmt.Sprint(offset))
		require.NoError(t, err)
		require.Positive(t, changed.RowsAffected())
	}
	exec(`UPDATE indexer.exercised SET choice = E'\x1b[2J', choice_argument = '{"a": "\u202e"}' WHERE ledger_offset = $1::text::bigint AND node_id = (SELECT min(node_id) FROM indexer.exercised WHERE ledger_offset = $1::text::bigint)`)
	exec(`INSERT INTO indexer.topology_events (ledger_offset, node_id, kind) VALUES ($1::text::bigint, 77, 'odd')`)
	report := jsonOf(t, config.ExitFailed, environ, "update", id)
	require.Equal(t, "different", at(t, report, "result"))
	differences := at(t, report, "differences")
	require.Len(t, differences, 3)
	require.Equal(t, map[string]any{
		"kind": "altered", "relation": "exercised", "ledger_offset": at(t, report, "database", "stored_at", 0), "column": "choice",
		"node_id": at(t, differences, 0, "node_id"), "row": fmt.Sprint("node_id ", at(t, differences, 0, "node_id")),
		"ledger": exercised["choice"], "stored": "\x1b[2J",
	}, at(t, differences, 0))
	require.Equal(t, "choice_argument", at(t, differences, 1, "column"))
	require.Equal(t, "extra", at(t, differences, 2, "kind"))
	require.EqualValues(t, 77, at(t, differences, 2, "node_id"))
	require.Equal(t, "odd", at(t, report, "database", "rows", "topology_events", 0, "kind"))

	stdout, stderr := printed(t, config.ExitFailed, environ, "update", id)
	require.Equal(t, "indexer: update "+id+": the database differs from the ledger in 3 places\n", stderr)
	lines := strings.Join(strings.Fields(stdout), " ")
	for _, text := range []string{
		fmt.Sprintf(`%v node_id %v choice "%s" "\x1b[2J"`, offset, at(t, differences, 0, "node_id"), exercised["choice"]),
		`{"a": "\u202e"}`, fmt.Sprintf("topology_events %v node_id 77 - no row a row", offset), " in the ledger { ", ` stored { "`, `"kind": "odd"`,
	} {
		require.Contains(t, lines, text)
	}

	exec(`DELETE FROM indexer.topology_events WHERE ledger_offset = $1::text::bigint`)
	exec(`DELETE FROM indexer.updates WHERE ledger_offset = $1::text::bigint`)
	report = jsonOf(t, config.ExitFailed, environ, "update", id)
	require.Equal(t, "missing", at(t, report, "differences", 0, "kind"))
	require.Empty(t, at(t, report, "database", "stored_at"))
	require.NotEmpty(t, at(t, report, "database", "rows", "exercised"), "the rest stands at the ledger's offset")
}

// What lies outside of what is indexed does not differ.
func TestUpdateOutsideOfWhatIsIndexed(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l := grown(100)
	environ, _ := indexed(t, l, sandbox.ServerOptions{}, map[string]string{"INDEXER_START": fmt.Sprint(l.Offset(50))})
	before, after := l.UpdateID(50), l.UpdateID(51)
	require.Equal(t, "below_history_floor", at(t, jsonOf(t, config.ExitDone, environ, "update", before), "result"))
	stdout, _ := printed(t, config.ExitDone, environ, "update", before)
	require.Contains(t, stdout, fmt.Sprintf("its offset %d is not above %[1]d, the offset after which events are complete\n", l.Offset(50)))
	require.Equal(t, "equal", at(t, jsonOf(t, config.ExitDone, environ, "update", after), "result"))
	watermark := l.End()
	l.Grow(1)
	report := jsonOf(t, config.ExitDone, environ, "update", l.UpdateID(l.Len()-1))
	require.Equal(t, "beyond_watermark", at(t, report, "result"))
	require.Equal(t, fmt.Sprintf("not stored yet: its offset %d is beyond the watermark %d", l.Offset(l.Len()-1), watermark), at(t, report, "explanation"))
}

// An update is looked up in the scope in which it is, or would be, stored.
func TestUpdateOfAnEarlierScope(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l := grown(120)
	names := sandbox.TemplateNames()
	before, now := names[0], names[1]
	environ, _ := indexed(t, l, sandbox.ServerOptions{}, map[string]string{"INDEXER_TEMPLATES": before, "INDEXER_TOPOLOGY": "false"})
	environ["INDEXER_TEMPLATES"] = now
	printed(t, config.ExitDone, environ, "run", "--until-current", "--change-scope")
	ids := func(template string) map[any]bool {
		shown := map[any]bool{}
		for _, row := range l.Truth(sandbox.Scope{Shape: sandbox.LedgerEffects, Templates: []string{template}, NoTopology: true}, l.End())["updates"] {
			shown[row["update_id"]] = true
		}
		return shown
	}
	onlyIn := func(one, other map[any]bool) string {
		t.Helper()
		for id := range one {
			if !other[id] {
				return id.(string)
			}
		}
		t.Fatal("there is none")
		return ""
	}
	then, later := ids(before), ids(now)
	report := jsonOf(t, config.ExitDone, environ, "update", onlyIn(then, later))
	require.Equal(t, "equal", at(t, report, "result"))
	report = jsonOf(t, config.ExitFailed, environ, "update", onlyIn(later, then))
	require.Equal(t, "unknown", at(t, report, "result"), "it was not shown then")
}

func TestUpdateThatTheLedgerDoesNotShow(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	slow.Long(t, "runs command after command")
	l := grown(100)
	hidden := ""
	environ, truth := indexed(t, l, sandbox.ServerOptions{Rewrite: func(e sandbox.Element) []byte {
		if hidden != "" && strings.HasSuffix(e.Path, "update-by-id") && bytes.Contains(e.Raw, []byte(hidden)) {
			return nil
		}
		return e.Raw
	}}, nil)
	update := truth["updates"][10]
	id, offset := update["update_id"].(string), update["ledger_offset"]
	unknown := id[:4] + strings.Repeat("0", len(id)-4) // well-formed
	_, stderr := printed(t, config.ExitFailed, environ, "update", unknown)
	require.Equal(t, "indexer: update "+unknown+": neither the ledger nor the database knows it\n", stderr)
	require.Equal(t, "unknown", at(t, jsonOf(t, config.ExitFailed, environ, "update", unknown), "result"))

	hidden = id
	report := jsonOf(t, config.ExitFailed, environ, "update", id)
	require.Equal(t, "different", at(t, report, "result"))
	require.Equal(t, "extra", at(t, report, "differences", 0, "kind"))
	require.Equal(t, false, at(t, report, "ledger", "found"))
	_, stderr = printed(t, config.ExitFailed, environ, "update", id)
	require.Contains(t, stderr, fmt.Sprintf("it is stored at offset %v, and the ledger does not show it\n", offset))

	// A participant that has pruned an update can't show it, and nothing is wrong.
	hidden = ""
	require.NoError(t, l.Prune(l.Offset(50)))
	report = jsonOf(t, config.ExitDone, environ, "update", id)
	require.Equal(t, "pruned", at(t, report, "result"))
	require.EqualValues(t, l.Offset(50), at(t, report, "ledger", "pruned_offset"))
	require.Equal(t, id, at(t, report, "database", "rows", "updates", 0, "update_id"))
	stdout, _ := printed(t, config.ExitDone, environ, "update", id)
	require.Contains(t, stdout, "the participant can't show it because it is pruned up to offset ")
}

// The ledger is asked in the scope of the database, whatever the environment says.
func TestUpdateIsOfTheScopeOfTheDatabase(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	slow.Long(t, "runs command after command")
	l := grown(150)
	party := l.Parties()[1]
	environ, _ := indexed(t, l, sandbox.ServerOptions{}, map[string]string{
		"INDEXER_PARTIES": party, "INDEXER_INTERFACES": strings.Join(sandbox.InterfaceNames(), ","), "INDEXER_BLOBS": "true", "INDEXER_TOPOLOGY": "false",
	})
	truth := l.Truth(sandbox.Scope{
		Shape: sandbox.LedgerEffects, Parties: []string{party}, Interfaces: sandbox.InterfaceNames(), Blobs: true, NoTopology: true,
	}, l.End())
	for _, name := range []string{"INDEXER_PARTIES", "INDEXER_INTERFACES"} {
		environ[name] = ""
	}
	environ["INDEXER_BLOBS"], environ["INDEXER_TOPOLOGY"], environ["INDEXER_SHAPE"] = "false", "true", "acs-delta"
	views := 0
	for _, row := range truth["updates"][:6] {
		report := jsonOf(t, config.ExitDone, environ, "update", row["update_id"].(string))
		require.Equal(t, "equal", at(t, report, "result"))
		if rows, ok := at(t, report, "database", "rows").(map[string]any)["interface_views"]; ok {
			views += len(rows.([]any))
		}
	}
	require.Positive(t, views)
	topology := pick(t, l.Truth(sandbox.Scope{}, l.End())["updates"], func(r sandbox.Row) bool { return r["kind"] == "topology" })
	require.Equal(t, "unknown", at(t, jsonOf(t, config.ExitFailed, environ, "update", topology["update_id"].(string)), "result"))
}

// While the daemon writes an update is stored or not yet, and never half.
func TestUpdateWhileTheDaemonWrites(t *testing.T) {
	t.Parallel()
	slow.Long(t, "runs the daemon, and command after command beside it")
	l := grown(120)
	environ, _ := indexed(t, l, sandbox.ServerOptions{}, nil)
	release := holdBack(t, environ["INDEXER_DATABASE_URL"])
	done := make(chan int)
	l.Grow(3)
	go func() {
		var out, errs bytes.Buffer
		done <- run(t.Context(), []string{"run", "--until-current"}, listOf(environ), &out, &errs)
	}()
	untilHeldBack(t, environ["INDEXER_DATABASE_URL"])
	id := l.UpdateID(l.Len() - 1)
	require.Equal(t, "beyond_watermark", at(t, jsonOf(t, config.ExitDone, environ, "update", id), "result"))
	release()
	require.Equal(t, config.ExitDone, <-done)
	require.Equal(t, "equal", at(t, jsonOf(t, config.ExitDone, environ, "update", id), "result"))
}

// Text of the ledger does nothing to a terminal, in whichever column it stands.
func TestUpdateWithStrangeText(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	slow.Long(t, "runs command after command")
	l := grown(60)
	strange := func(e sandbox.Element) []byte {
		raw := e.Raw
		for _, member := range []string{"choice", "contractId", "workflowId", "commandId", "packageName"} {
			raw = bytes.ReplaceAll(raw, []byte(`"`+member+`":"`), []byte(`"`+member+`":"\u001b[2J`+"\u009b\u202e\u00e9"))
		}
		raw = bytes.ReplaceAll(raw, []byte(`{"CreatedEvent"`), []byte(`{"Odd\u001bEvent":{"nodeId":99,"a":"\u0000"}},{"CreatedEvent"`))
		return bytes.ReplaceAll(raw, []byte(`"createArgument":{`), []byte(`"createArgument":{"\u001b`+"\u009b\U000e0001"+`":"\u0000\ud800 1 < 2","n":1.50,`))
	}
	environ, truth := indexed(t, l, sandbox.ServerOptions{Rewrite: strange}, nil)
	created := pick(t, truth["exercised_events"], func(r sandbox.Row) bool { return has(truth["created_events"], "update_id", r["update_id"]) })
	id := created["update_id"].(string)
	report := jsonOf(t, config.ExitDone, environ, "update", id)
	require.Equal(t, "equal", at(t, report, "result"))
	require.Equal(t, "Odd\x1bEvent", at(t, report, "database", "rows", "unknown_elements", 0, "kind"))
	require.NotEmpty(t, at(t, report, "database", "rows", "unknown_elements", 0, "exact"))
	stdout, _ := printed(t, config.ExitDone, environ, "update", id)
	require.Contains(t, stdout, `"kind": "Odd\u001bEvent"`)
	require.Contains(t, stdout, `\u001b[2J\u009b\u202eé`)

	changed, err := connect(t, environ["INDEXER_DATABASE_URL"]).Exec(t.Context(), `UPDATE indexer.created SET exact = exact || '{"payload": "!"}'`)
	require.NoError(t, err)
	require.Positive(t, changed.RowsAffected())
	stdout, _ = printed(t, config.ExitFailed, environ, "update", id)
	require.Contains(t, stdout, "exact ")

	for _, odd := range []string{"'", "\x1b[2J\u009b"} {
		report := jsonOf(t, config.ExitProblem, environ, "update", odd)
		require.Equal(t, odd, at(t, report, "update_id"))
		_, stderr := printed(t, config.ExitProblem, environ, "update", odd)
		require.Contains(t, stderr, "What to do: check the update's id; ")
		require.NotContains(t, stderr, "--parties")
	}
	stdout, stderr := printed(t, config.ExitFailed, environ, "update", strings.Repeat("0", 1<<20))
	require.Less(t, len(stdout)+len(stderr), 10_000)
}

func TestExcerpts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	for _, c := range []struct{ a, b, left, right string }{
		{"a", "b", `"a"`, `"b"`},
		{"", "b", `""`, `"b"`},
		{long + "1", long + "2", "…\"" + strings.Repeat("x", 20) + `1"`, "…\"" + strings.Repeat("x", 20) + `2"`},
		{"1" + long, "2", `"1` + strings.Repeat("x", 79) + `"…`, `"2"`},
		{long, long + "2", "…\"" + strings.Repeat("x", 20) + `"`, "…\"" + strings.Repeat("x", 20) + `2"`},
	} {
		left, right := excerpts(&c.a, &c.b)
		require.Equal(t, c.left, left)
		require.Equal(t, c.right, right)
	}
	left, right := excerpts(nil, &long)
	require.Equal(t, "NULL", left)
	require.Equal(t, `"`+long[:100]+`"…`, right)
}
