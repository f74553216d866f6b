package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// indexed is the environment of a ledger and a database that holds all of it, and the truth about it. A ledger that is
// served without options is indexed once in the process.
func indexed(t *testing.T, l *sandbox.Ledger, options sandbox.ServerOptions, more map[string]string) (environ map[string]string, truth map[string][]sandbox.Row) {
	t.Helper()
	environ = map[string]string{"INDEXER_LISTEN": "", "INDEXER_SHAPE": "ledger-effects"}
	maps.Copy(environ, more)
	delete(environ, "INDEXER_SCAN_URL")
	world := fmt.Sprint(l.UpdateID(0), l.Len(), environ)
	environ["INDEXER_LEDGER_URL"] = participantOf(t, l, options)
	maps.Copy(environ, more)
	index := func(ctx context.Context, database string) error {
		of := maps.Clone(environ)
		of["INDEXER_DATABASE_URL"] = database
		code, _, stderr, err := execute(ctx, of, "run", "--until-current")
		if code != config.ExitDone {
			err = errors.Join(err, errors.New(stderr))
		}
		return err
	}
	if reflect.ValueOf(options).IsZero() {
		environ["INDEXER_DATABASE_URL"] = throwaway.Prepared(t, migrate, world, index)
	} else {
		environ["INDEXER_DATABASE_URL"] = throwaway.Migrated(t, migrate)
		require.NoError(t, index(t.Context(), environ["INDEXER_DATABASE_URL"]))
	}
	return environ, l.Truth(sandbox.Scope{Shape: sandbox.LedgerEffects}, l.End())
}

// printed runs a command whose exit code is known, and requires that it prints nothing a terminal would obey.
func printed(t *testing.T, want int, environ map[string]string, args ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := command(t, environ, args...)
	require.Equal(t, want, code, "%s\n%s", stdout, stderr)
	for _, text := range []string{stdout, stderr} {
		at := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
		require.Negative(t, at, "%q", text[max(0, at):])
	}
	return stdout, stderr
}

func jsonOf(t *testing.T, want int, environ map[string]string, args ...string) map[string]any {
	t.Helper()
	stdout, _ := printed(t, want, environ, slices.Insert(args, 1, "--json")...)
	var report map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &report), stdout)
	return report
}

// at walks down a report.
func at(t *testing.T, report any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			require.Contains(t, report, step)
			report = report.(map[string]any)[step]
		case int:
			require.Greater(t, len(report.([]any)), step)
			report = report.([]any)[step]
		}
	}
	return report
}

// pick is the first row that a condition is true of.
func pick(t *testing.T, rows []sandbox.Row, condition func(sandbox.Row) bool) sandbox.Row {
	t.Helper()
	for _, row := range rows {
		if condition(row) {
			return row
		}
	}
	t.Fatal("the ledger has no such row")
	return nil
}

func has(rows []sandbox.Row, column string, value any) bool {
	for _, row := range rows {
		if row[column] == value {
			return true
		}
	}
	return false
}

func TestContract(t *testing.T) {
	t.Parallel()
	l := grown(300)
	environ, truth := indexed(t, l, sandbox.ServerOptions{}, nil)
	idOf := func(row sandbox.Row) string { return row["contract_id"].(string) }

	active := pick(t, truth["active_contracts"], func(sandbox.Row) bool { return true })
	report := jsonOf(t, config.ExitDone, environ, "contract", idOf(active))
	require.Equal(t, idOf(active), at(t, report, "contract_id"))
	require.Equal(t, true, at(t, report, "ledger", "found"))
	require.Equal(t, active["template_id"], at(t, report, "ledger", "contract", "template_id"))
	require.Equal(t, active["payload"], at(t, report, "ledger", "contract", "payload"))
	require.Equal(t, active["payload"], at(t, report, "database", "contract", "payload"))
	require.Equal(t, active["synchronizer_id"], at(t, report, "database", "active_on", 0, "synchronizer_id"))
	require.Equal(t, fmt.Sprint(active["activated_offset"]), fmt.Sprint(at(t, report, "database", "active_on", 0, "activated_offset")))
	require.EqualValues(t, l.End(), at(t, report, "database", "watermark"))
	stdout, _ := printed(t, config.ExitDone, environ, "contract", idOf(active))
	for _, text := range []string{"\nactive ", "since offset ", "knows it, asked as any party", "returns no offset, node id, blob", "\npayload, as the ledger shows it\n{\n  \""} {
		require.Contains(t, stdout, text)
	}

	archived := pick(t, truth["archived_events"], func(r sandbox.Row) bool {
		return r["acs_delta"] == true && !has(truth["reassignments"], "contract_id", r["contract_id"])
	})
	report = jsonOf(t, config.ExitDone, environ, "contract", idOf(archived))
	require.Empty(t, at(t, report, "database", "active_on"))
	require.Len(t, at(t, report, "database", "lifetimes"), 1)
	events := at(t, report, "database", "events").([]any)
	require.Equal(t, "created", at(t, events, 0, "kind"))
	require.Equal(t, "transaction", at(t, events, 0, "origin"))
	last := events[len(events)-1]
	require.Equal(t, "archived", at(t, last, "kind"))
	require.Equal(t, archived["update_id"], at(t, last, "update_id"))
	require.Equal(t, "exercised", at(t, events, len(events)-2, "kind"))
	require.Equal(t, true, at(t, events, len(events)-2, "consuming"))
	stdout, _ = printed(t, config.ExitDone, environ, "contract", idOf(archived))
	require.Contains(t, stdout, fmt.Sprintf("no: archived at offset %v\n", archived["ledger_offset"]))

	moved := pick(t, truth["active_contracts"], func(r sandbox.Row) bool { return fmt.Sprint(r["reassignment_counter"]) != "0" })
	report = jsonOf(t, config.ExitDone, environ, "contract", idOf(moved))
	require.NotEmpty(t, at(t, report, "database", "lifetimes"))
	require.Equal(t, fmt.Sprint(moved["reassignment_counter"]), fmt.Sprint(at(t, report, "database", "active_on", 0, "reassignment_counter")))
	stdout, _ = printed(t, config.ExitDone, environ, "contract", idOf(moved))
	for _, text := range []string{"unassigned ", "assigned ", "origin assignment", "was active ", ", counter "} {
		require.Contains(t, stdout, text)
	}

	transient := pick(t, truth["created_events"], func(r sandbox.Row) bool { return r["acs_delta"] == false })
	stdout, _ = printed(t, config.ExitDone, environ, "contract", idOf(transient))
	require.Contains(t, stdout, "only witnessed")

	// Well-formed, and of no contract.
	unknown := strings.Repeat("0", len(idOf(active)))
	_, stderr := printed(t, config.ExitFailed, environ, "contract", unknown)
	require.Equal(t, "indexer: neither the ledger nor the database knows contract "+unknown+"\n", stderr)
	require.Equal(t, false, at(t, jsonOf(t, config.ExitFailed, environ, "contract", unknown), "database", "known"))

	// The ledger shows a contract to its stakeholders only.
	report = jsonOf(t, config.ExitDone, environ, "contract", idOf(active), "--parties=nobody::1220")
	require.Equal(t, false, at(t, report, "ledger", "found"))
	require.Equal(t, []any{"nobody::1220"}, at(t, report, "ledger", "querying_parties"))
	stdout, _ = printed(t, config.ExitDone, environ, "contract", idOf(active), "--parties=nobody::1220")
	require.Contains(t, stdout, "does not know it, or none of its stakeholders is among those who asked; asked as nobody::1220")
	require.Contains(t, stdout, "\npayload, as it is stored\n")

	// Without the ledger.
	environ["INDEXER_LEDGER_URL"] = ""
	report = jsonOf(t, config.ExitDone, environ, "contract", idOf(active))
	require.Equal(t, "not asked: --ledger-url is not given", at(t, report, "ledger", "error"))
	require.Equal(t, false, at(t, report, "ledger", "asked"))
	_, stderr = printed(t, config.ExitFailed, environ, "contract", unknown)
	require.Contains(t, stderr, "the database does not know contract "+unknown+", and the ledger was not asked\n")
}

// Synchronizers have no common order, and a participant that was restored shows assignments before unassignments, even before
// the creation: whether a contract has arrived follows from the counters of its reassignments.
func TestWhyAContractIsNotActive(t *testing.T) {
	t.Parallel()
	event := func(kind string, n int64) store.ContractEvent {
		return store.ContractEvent{Kind: kind, ReassignmentCounter: &n, Target: new("sync::2")}
	}
	created, archived := store.ContractEvent{Kind: store.EventCreated}, store.ContractEvent{Kind: store.EventArchived}
	witnessed := store.ContractEvent{Kind: store.EventCreated, ACSDelta: new(false)}
	away, there := event(store.EventUnassigned, 1), event(store.EventAssigned, 1)
	back, home := event(store.EventUnassigned, 2), event(store.EventAssigned, 2)
	floor := ledger.Offset(0)
	for name, c := range map[string]struct {
		events []store.ContractEvent
		says   string
	}{
		"on its way":                                 {[]store.ContractEvent{created, away}, "unassigned at offset 2 to sync::2, and not seen to arrive there"},
		"on its way back, seen before it left":       {[]store.ContractEvent{back, there, created, away}, "unassigned at offset 1 to sync::2, and not seen"},
		"arrived before it left and before creation": {[]store.ContractEvent{there, created, away}, "its end was not seen"},
		"back home, in the wrong order":              {[]store.ContractEvent{home, back, there, away, created}, "its end was not seen"},
		"arrived before it left, and archived there": {[]store.ContractEvent{created, there, archived, away}, "archived at offset 3"},
		"active until the scope was changed":         {[]store.ContractEvent{created}, "its end was not seen"},
		"only witnessed":                             {[]store.ContractEvent{witnessed}, "its creation was only witnessed"},
		"never seen":                                 {nil, "its creation was never seen"},
	} {
		for i := range c.events {
			c.events[i].Offset = ledger.Offset(i + 1)
		}
		require.Contains(t, (&contractStored{Events: c.events, StateFloor: &floor}).whyNotActive(), c.says, name)
	}
}

// Parties that are not given are those of the database.
func TestContractAsksAsThePartiesOfTheDatabase(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l := grown(200)
	party := l.Parties()[0]
	environ, _ := indexed(t, l, sandbox.ServerOptions{}, map[string]string{"INDEXER_PARTIES": party})
	truth := l.Truth(sandbox.Scope{Shape: sandbox.LedgerEffects, Parties: []string{party}}, l.End())
	seen := pick(t, truth["created_events"], func(r sandbox.Row) bool {
		return r["acs_delta"] == false && !has(truth["archived_events"], "contract_id", r["contract_id"])
	})
	active := pick(t, truth["active_contracts"], func(sandbox.Row) bool { return true })
	environ["INDEXER_PARTIES"] = ""
	report := jsonOf(t, config.ExitDone, environ, "contract", active["contract_id"].(string))
	require.Equal(t, []any{party}, at(t, report, "ledger", "querying_parties"))
	require.Equal(t, true, at(t, report, "ledger", "found"))
	stdout, _ := printed(t, config.ExitDone, environ, "contract", seen["contract_id"].(string))
	require.Contains(t, stdout, "does not know it, or none of its stakeholders is among those who asked; asked as "+party)
	require.Contains(t, stdout, "no: its creation was only witnessed (acs_delta is false)")
}

// A ledger that can't answer is part of the report, and of the exit code.
func TestWhenTheLedgerFails(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	slow.Long(t, "runs command after command")
	l := grown(120)
	environ, truth := indexed(t, l, sandbox.ServerOptions{}, nil)
	contract, update := truth["active_contracts"][0]["contract_id"].(string), truth["updates"][20]["update_id"].(string)
	serve := func(path string, options sandbox.ServerOptions, answer func(w http.ResponseWriter, r *http.Request, next http.Handler)) {
		next := sandbox.NewServer(l, options)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				answer(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		environ["INDEXER_LEDGER_URL"] = server.URL
	}
	check := func(command, id string, want int, says string) {
		t.Helper()
		report := jsonOf(t, want, environ, command, id)
		stdout, _ := printed(t, want, environ, command, id)
		require.Contains(t, at(t, report, "ledger", "error"), says)
		if want != config.ExitDone {
			require.NotContains(t, stdout, says, "it is the command's error")
		}
		if command == "update" {
			require.Equal(t, "not_compared", at(t, report, "result"))
			require.Equal(t, id, at(t, report, "database", "rows", "updates", 0, "update_id"))
			require.Contains(t, stdout, "not compared: the ledger could not answer\n")
			return
		}
		require.Equal(t, true, at(t, report, "database", "known"))
		require.Len(t, at(t, report, "database", "active_on"), 1)
		require.Contains(t, stdout, "since offset ")
	}
	for url, c := range map[string]struct {
		want int
		says string
	}{
		"http://127.0.0.1:1": {config.ExitFailed, "connection refused"},
		participantOf(t, grownFrom(6, 5), sandbox.ServerOptions{}): {config.ExitProblem, "the ledger URL leads to participant "},
	} {
		environ["INDEXER_LEDGER_URL"] = url
		check("contract", contract, c.want, c.says)
		check("update", update, c.want, c.says)
	}
	const contractPath, updatePath = "/v2/contracts/contract-by-id", "/v2/updates/update-by-id"
	absent := func(w http.ResponseWriter, r *http.Request, _ http.Handler) { http.NotFound(w, r) }
	serve(contractPath, sandbox.ServerOptions{}, absent)
	check("contract", contract, config.ExitDone, "does not offer to look contracts up")
	_, stderr := printed(t, config.ExitFailed, environ, "contract", "unknown")
	require.Contains(t, stderr, "and the ledger was not asked")
	serve(updatePath, sandbox.ServerOptions{}, absent)
	check("update", update, config.ExitProblem, "does not offer to look updates up")
	serve(contractPath, sandbox.ServerOptions{}, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"code":"PERMISSION_DENIED","cause":"\u001b[2J\u009b no"}`)
	})
	check("contract", contract, config.ExitProblem, "what to do: ")
	serve(contractPath, sandbox.ServerOptions{}, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		other := truth["active_contracts"][1]["contract_id"].(string)
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(body, []byte(contract), []byte(other))))
		next.ServeHTTP(w, r)
	})
	check("contract", contract, config.ExitFailed, "another contract")
	serve("/v2/state/latest-pruned-offsets", sandbox.ServerOptions{Rewrite: func(sandbox.Element) []byte { return nil }},
		func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.WriteHeader(http.StatusServiceUnavailable)
		})
	check("update", update, config.ExitFailed, "503 Service Unavailable")
	environ["INDEXER_LEDGER_URL"] = ""
	_, stderr = printed(t, config.ExitUsage, environ, "update", update)
	require.Contains(t, stderr, "--ledger-url is missing")
	printed(t, config.ExitUsage, environ, "update", "", "--ledger-url=http://127.0.0.1:1")
}

func grownFrom(seed uint64, updates int) *sandbox.Ledger {
	l := sandbox.NewLedger(sandbox.Options{Seed: seed})
	l.Grow(updates)
	return l
}

// Whatever the id, it is asked for and printed, and does nothing to a terminal.
func TestContractWithAStrangeID(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	slow.Long(t, "runs the command for each id")
	environ, _ := indexed(t, grown(120), sandbox.ServerOptions{}, nil)
	for _, id := range []string{"'; DROP TABLE x; --\x1b[2J\u009b\u202ea\tb\nc", "\x00", "--x", strings.Repeat("0", 1<<20)} {
		want, says := config.ExitProblem, "What to do: check the contract's id and --parties.\n"
		if len(id) > 1000 { // the server repeats it in its error, which is not read that far
			want, says = config.ExitFailed, "HTTP status 400"
		}
		report := jsonOf(t, want, environ, "contract", "--", id)
		require.Equal(t, id, at(t, report, "contract_id"))
		stdout, stderr := printed(t, want, environ, "contract", "--", id)
		require.Contains(t, stderr, says)
		require.Less(t, len(stdout)+len(stderr), 10_000)
		_, stderr = printed(t, config.ExitFailed, environ, "contract", "--ledger-url=", "--", id)
		require.Contains(t, stderr, "the database does not know contract ")
	}
	_, stderr := printed(t, config.ExitUsage, environ, "contract", "")
	require.Contains(t, stderr, "the contract's id is empty")
	for _, args := range [][]string{{"contract"}, {"contract", "a", "b"}, {"contract", "a", "--ledger-url=ftp://x"}, {"contract", "a", "--parties=a,,b"}, {"contract", "a", "--database-url="}} {
		printed(t, config.ExitUsage, environ, args...)
	}
}

// What the ledger says of a contract does nothing to a terminal either.
func TestContractWithStrangeText(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l := grown(50)
	strange := func(e sandbox.Element) []byte {
		raw := bytes.ReplaceAll(e.Raw, []byte(`"packageName":"`), []byte(`"packageName":"\u001b[2J`+"\u009b\u202e\u00e9"))
		return bytes.ReplaceAll(raw, []byte(`"createArgument":{`), []byte(`"createArgument":{"\u001b`+"\u009b\U000e0001"+`":"\u0000\ud800 1 < 2","n":1.50,`))
	}
	environ, truth := indexed(t, l, sandbox.ServerOptions{Rewrite: strange}, nil)
	id := truth["active_contracts"][0]["contract_id"].(string)
	stdout, _ := printed(t, config.ExitDone, environ, "contract", id)
	for _, text := range []string{`package \x1b[2J\u009b\u202eé`, `"\u001b\u009b\udb40\udc01": "\u0000\ud800 1 < 2"`, `"n": 1.50`} {
		require.Contains(t, stdout, text)
	}
	report := jsonOf(t, config.ExitDone, environ, "contract", id)
	require.Contains(t, at(t, report, "ledger", "contract", "package_name"), "\x1b[2J\u009b\u202eé")
	require.Contains(t, at(t, report, "ledger", "contract", "payload"), "\x1b\u009b\U000e0001")
	require.Equal(t, map[string]any{"$exact": "a lone surrogate"}, at(t, report, "database", "contract", "payload"))
}
