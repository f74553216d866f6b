package app

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// replaceFirst replaces the first match of a pattern in an element.
func replaceFirst(raw []byte, pattern, with string) []byte {
	at := regexp.MustCompile(pattern).FindIndex(raw)
	if at == nil {
		return raw
	}
	return append(append(bytes.Clone(raw[:at[0]]), with...), raw[at[1]:]...)
}

// rewriteAt makes a participant that sends something else for the element at an offset.
func rewriteAt(offset int64, rewrite func(raw []byte) []byte) sandbox.ServerOptions {
	return sandbox.ServerOptions{Version: "3.4", ListLimit: 10, Rewrite: func(e sandbox.Element) []byte {
		if e.Offset != offset {
			return e.Raw
		}
		return rewrite(e.Raw)
	}}
}

// contractOffsets are those from the middle on whose updates create a contract.
func contractOffsets(t *testing.T, l *sandbox.Ledger) (offsets []int64) {
	t.Helper()
	for _, row := range l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End())["created_events"] {
		if at := int64Of(t, row["ledger_offset"]); row["origin"] == "transaction" && at > l.End()/2 {
			offsets = append(offsets, at)
		}
	}
	slices.Sort(offsets)
	offsets = slices.Compact(offsets)
	require.NotEmpty(t, offsets)
	return offsets
}

func int64Of(t *testing.T, v any) int64 {
	t.Helper()
	var n int64
	_, err := fmt.Sscan(fmt.Sprint(v), &n)
	require.NoError(t, err)
	return n
}

// What can't be understood stops the stream with an error that names the offset, and nothing of it is committed.
func TestBadInputStopsTheStream(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 11})
	l.Grow(200)
	bad, database := contractOffsets(t, l)[0], throwaway.Migrated(t, migrate)
	for name, c := range map[string]struct {
		rewrite func(raw []byte) []byte
		want    []string
	}{
		"two variants": {func(raw []byte) []byte {
			return replaceFirst(raw, `"Transaction"\s*:`, `"Brand_New":{},"Transaction":`)
		}, []string{"2 variants"}},
		"no variant":    {func([]byte) []byte { return []byte(`{"update":{}}`) }, []string{"variant"}},
		"missing field": {func(raw []byte) []byte { return replaceFirst(raw, `"contractId"\s*:\s*"[^"]*"\s*,`, ``) }, []string{"contractId"}},
		"duplicate key": {func(raw []byte) []byte {
			return replaceFirst(raw, `"createArgument"\s*:`, `"contractId":"twice","createArgument":`)
		}, []string{"contractId"}},
		"NUL in a workflow id":                {func(raw []byte) []byte { return replaceFirst(raw, `"workflowId"\s*:\s*"`, `"workflowId":"\u0000`) }, []string{"workflowId", "NUL"}},
		"NUL in a party":                      {func(raw []byte) []byte { return replaceFirst(raw, `"signatories"\s*:\s*\["`, `"signatories":["\u0000`) }, []string{"signatories", "NUL"}},
		"no offset":                           {func(raw []byte) []byte { return replaceFirst(raw, `"synchronizerId"`, `"noSynchronizerId"`) }, []string{"synchronizerId"}},
		"an unknown update without an offset": {func([]byte) []byte { return []byte(`{"update":{"Brand_New":{"value":{"updateId":"x"}}}}`) }, []string{"Brand_New", "offset"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := RunIndexer(t.Context(), indexerFor(database, serve(t, l, rewriteAt(bad, c.rewrite)), defaultScope()), testLogger(t))
			require.Error(t, err)
			for _, part := range c.want {
				require.Contains(t, err.Error(), part)
			}
			watermark := watermarkOf(t, database)
			require.Less(t, watermark, bad)
			want := l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta, Version: "3.4"}, watermark)
			require.Empty(t, sandbox.Diff(want, relations(t, database)), "what was committed is what came before")
		})
	}
}

// What is no JSON comes of the way and not of the ledger: it is read again, said and counted, and what is stored in the end
// is what there is.
func TestWhatIsNoJSONIsReadAgain(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(raw []byte) []byte{
		"not JSON":  func([]byte) []byte { return []byte(`{"update": nonsense}`) },
		"bad UTF-8": func(raw []byte) []byte { return replaceFirst(raw, `"commandId"\s*:\s*"`, "\"commandId\":\"\xff") },
		"a page":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			l := sandbox.NewLedger(sandbox.Options{Seed: 11})
			l.Grow(200)
			bad := contractOffsets(t, l)[0]
			var mended atomic.Bool
			options := rewriteAt(bad, func(raw []byte) []byte {
				if mended.Load() || damage == nil {
					return raw
				}
				return damage(raw)
			})
			options.Fault = func(r *http.Request) *sandbox.Fault {
				if damage == nil && !mended.Load() && strings.HasPrefix(r.URL.Path, "/v2/updates") {
					return &sandbox.Fault{Status: http.StatusOK, ContentType: "text/html", Body: "<html>back soon</html>"}
				}
				return nil
			}
			database := throwaway.Migrated(t, migrate)
			cfg := indexerFor(database, serve(t, l, options), defaultScope())
			cfg.Listen, cfg.UntilCurrent = "127.0.0.1:0", false
			var log journal
			daemon := startLogged(t, cfg, log.logger())
			eventuallyOf(t, daemon, "trying again", func() bool { return len(log.lines(t, "retrying"))+len(log.lines(t, "trying again")) >= 3 })
			_, metrics := ask(t, &log, "/metrics")
			require.Regexp(t, `(?m)^ledger_indexer_not_json_answers_total\{operation="(updates|discover)"\} [1-9]`, metrics)
			mended.Store(true)
			waitFor(t, database, lastUpdate(l))
			if damage != nil {
				_, metrics = ask(t, &log, "/metrics")
				for _, pattern := range []string{
					`decode_duration_seconds_count\{operation="updates(-tail)?"\} [1-9]`, `retries_total\{reason="unusable_answer",stream="updates"\} [1-9]`,
					`epoch\{stream="updates"\} 1`, `rows_total\{relation="unknown_elements"\} 0`, `queue_bytes `,
				} {
					require.Regexp(t, `(?m)^ledger_indexer_`+pattern, metrics)
				}
			}
			require.NoError(t, daemon.finish())
			require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta, Version: "3.4"}, l.End()), relations(t, database)))
		})
	}
}

// What is merely new, or more than a column can hold, is stored as the server sent it, and the stream continues.
func TestStrangeInputIsStoredExactly(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	var events strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&events, `,{"ArchivedEvent":{"offset":%%[1]d,"nodeId":%d,"contractId":"c%d","templateId":"p:M:T","witnessParties":[],"packageName":"n","implementedInterfaces":[]}}`, i+100, i)
	}
	payload := func(value string) func(raw []byte, offset int64) []byte {
		return func(raw []byte, _ int64) []byte {
			return replaceFirst(raw, `"createArgument"\s*:\s*\{`, `"createArgument":{"strange":`+value+`,`)
		}
	}
	exactly := func(part string) map[string]any {
		return map[string]any{
			"SELECT count(*) FROM ledger.exact_payloads WHERE ledger_offset = $1 AND field = 'payload' AND position(convert_to('" + part + "', 'UTF8') IN exact) > 0": 1,
			"SELECT count(*) FROM ledger.created_events WHERE ledger_offset = $1 AND payload ? '$exact'":                                                              1,
		}
	}
	strange := map[string]struct {
		rewrite func(raw []byte, offset int64) []byte
		want    map[string]any
	}{
		"NUL in a payload":            {payload(`"a\u0000b"`), exactly(`"a\u0000b"`)},
		"lone surrogate in a payload": {payload(`"a\ud800b"`), exactly(`"a\ud800b"`)},
		"payload nested 5,000 deep":   {payload(deep), exactly(strings.Repeat("[", 5000))},
		"unknown variant": {
			func(_ []byte, offset int64) []byte {
				return fmt.Appendf(nil, `{"update":{"BrandNew":{"value":{"offset":%d,"novelty":[1,2]}}}}`, offset)
			},
			map[string]any{
				"SELECT kind FROM ledger.updates WHERE ledger_offset = $1":                                         "unknown",
				"SELECT kind FROM ledger.unknown_updates WHERE ledger_offset = $1 AND node_id IS NULL":             "BrandNew",
				"SELECT raw #>> '{BrandNew,value,novelty,1}' FROM ledger.unknown_updates WHERE ledger_offset = $1": "2",
			},
		},
		"unknown event": {
			func(raw []byte, offset int64) []byte {
				return replaceFirst(raw, `"events"\s*:\s*\[`, fmt.Sprintf(`"events":[{"BrandNewEvent":{"offset":%d,"nodeId":99,"x":"y"}},`, offset))
			},
			map[string]any{"SELECT raw #>> '{BrandNewEvent,x}' FROM ledger.unknown_updates WHERE ledger_offset = $1 AND node_id = 99": "y"},
		},
		"unknown members": {
			func(raw []byte, _ int64) []byte {
				return replaceFirst(raw, `"createArgument"\s*:`, `"colour":"blue","createArgument":`)
			},
			map[string]any{"SELECT extra ->> 'colour' FROM ledger.created_events WHERE ledger_offset = $1 AND extra IS NOT NULL": "blue"},
		},
		"an update with 100,000 events": {
			func(raw []byte, offset int64) []byte {
				return replaceFirst(raw, `\}\s*\]\s*,\s*"offset"`, fmt.Sprintf("}"+events.String()+`],"offset"`, offset))
			},
			map[string]any{"SELECT count(*) FROM ledger.archived_events WHERE ledger_offset = $1 AND node_id >= 100": 100_000},
		},
		"times with nine digits": {
			func(raw []byte, _ int64) []byte {
				return replaceFirst(raw, `"recordTime"\s*:\s*"[^"]*"`, `"recordTime":"2025-01-02T03:04:05.123456789Z"`)
			},
			map[string]any{
				"SELECT to_char(record_time, 'SS.US') FROM ledger.updates WHERE ledger_offset = $1":                               "05.123456",
				"SELECT convert_from(exact, 'UTF8') FROM ledger.exact_payloads WHERE ledger_offset = $1 AND field = 'recordTime'": `"2025-01-02T03:04:05.123456789Z"`,
			},
		},
		"times without a fraction": {
			func(raw []byte, _ int64) []byte {
				return replaceFirst(raw, `"recordTime"\s*:\s*"[^"]*"`, `"recordTime":"2025-01-02T03:04:05Z"`)
			},
			map[string]any{"SELECT to_char(record_time, 'SS.US') FROM ledger.updates WHERE ledger_offset = $1": "05.000000"},
		},
	}
	if testing.Short() {
		delete(strange, "an update with 100,000 events") // which takes longer than all others
	}
	l := sandbox.NewLedger(sandbox.Options{Seed: 12})
	l.Grow(200)
	names, offsets := slices.Sorted(maps.Keys(strange)), contractOffsets(t, l)
	require.Greater(t, len(offsets), len(names), "each has an update of its own")
	database := throwaway.Migrated(t, migrate)
	server := serve(t, l, sandbox.ServerOptions{Version: "3.4", ListLimit: 10, Rewrite: func(e sandbox.Element) []byte {
		n := slices.Index(offsets, e.Offset)
		if n < 0 || n >= len(names) {
			return e.Raw
		}
		changed := strange[names[n]].rewrite(e.Raw, e.Offset)
		if bytes.Equal(changed, e.Raw) {
			t.Errorf("the element was not changed: %s", names[n])
		}
		return changed
	}})
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, server, defaultScope()), testLogger(t)))
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	for n, name := range names {
		t.Run(name, func(t *testing.T) {
			for query, want := range strange[name].want {
				var got any
				require.NoError(t, conn.QueryRow(t.Context(), query, offsets[n]).Scan(&got), query)
				require.EqualValues(t, want, got, query)
			}
		})
	}
	var watermark int64
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT ledger.latest_offset()").Scan(&watermark))
	require.GreaterOrEqual(t, watermark, l.Offset(l.Len()-1))
}
