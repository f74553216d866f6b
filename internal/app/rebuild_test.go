package app

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/recorded"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// Rows are complete: from the rows of an element the server's JSON can be rebuilt key by key. The tests of this file
// index what a server sends, rebuild every element of it from SQL, and compare. What may differ, and nothing else:
//
//   - a member that is null may be absent, and interfaceViews may be an empty list too,
//   - the order of an object's members, white space, and how a character is escaped,
//   - the text form of a time, not the time itself to the nanosecond,
//   - a number's form, not its value (1e2 is 100), as in jsonb,
//   - the order of events: that of their node ids, then unknown ones as they came (topology events: as they came),
//   - the order of interface views; the order of a list of parties or of interfaces, and how often it has each: such
//     lists are sets,
//   - an event's own offset where it was absent or zero: it is its update's,
//   - unassignId of 3.3 comes back as reassignmentId, its later name,
//   - of a checkpoint that repeats an offset, the latest record time of each synchronizer is kept with what came with
//     it; not the order of the synchronizers, and nothing of a checkpoint without any,
//   - of a snapshot: the order of its entries and their continuation tokens, which are bookmarks; a JsEmpty entry with
//     nothing in or around it; and a creation event that two entries have is kept once.

// served collects the elements that a server sent.
type served struct {
	mu          sync.Mutex
	ended       bool              // nothing is collected any more
	updates     map[string][]byte // by offset
	checkpoints [][]byte
	entries     map[string][]byte // by content, because a page may be read again
	want        *expected
}

var continuationToken = regexp.MustCompile(`,"streamContinuationToken":"[^"]*"`)

// rewrite collects what change makes of each element.
func (s *served) rewrite(change func(sandbox.Element) [][]byte) func(sandbox.Element) []byte {
	s.updates, s.entries = map[string][]byte{}, map[string][]byte{}
	return func(e sandbox.Element) []byte {
		elements := [][]byte{bytes.Clone(e.Raw)}
		if change != nil {
			elements = change(e)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, raw := range elements {
			switch {
			case s.ended:
			case strings.Contains(e.Path, "active-contracts"):
				raw := continuationToken.ReplaceAll(raw, nil)
				s.entries[string(raw)] = raw
			case bytes.Contains(raw, []byte(`{"OffsetCheckpoint":`)):
				s.checkpoints = append(s.checkpoints, raw)
			default:
				s.updates[strconv.FormatInt(e.Offset, 10)] = raw
			}
		}
		return bytes.Join(elements, []byte(","))
	}
}

// end ends collecting: the server may still be answering a request that nobody waits for any more.
func (s *served) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// compare rebuilds everything from the rows that db shows, and tells what differs from what was served.
func (s *served) compare(ctx context.Context, db pgx.Tx) ([]string, error) {
	x, err := readRows(ctx, db)
	if err != nil {
		return nil, err
	}
	updates, checkpoints, entries := map[string]any{}, map[string]any{}, map[string]any{}
	for offset, rows := range x.relations["updates"] {
		updates[offset] = comparable("", x.update(rows[0]), offset)
	}
	for _, rows := range x.relations["checkpoints"] {
		for _, r := range rows {
			checkpoints[string(r["ledger_offset"])+" "+r.text("synchronizer_id")] = comparable("", x.checkpoint(r), "")
		}
	}
	for _, e := range x.entries() {
		entry := comparable("", e, "").(map[string]any)
		addEntry(entries, entry)
	}
	want := s.expected()
	all := differences("updates", want.updates, updates)
	all = append(all, differences("checkpoints", beforeTheEnd(want.checkpoints, x), beforeTheEnd(checkpoints, x))...)
	all = append(all, differences("entries", want.entries, entries)...)
	return append(all, x.leftOver()...), nil
}

// beforeTheEnd leaves out the checkpoints at the watermark: the loop may stop with one more of them just read.
func beforeTheEnd(checkpoints map[string]any, x *rebuild) map[string]any {
	kept := maps.Clone(checkpoints)
	maps.DeleteFunc(kept, func(key string, _ any) bool { return strings.HasPrefix(key, x.watermark+" ") })
	return kept
}

// expected is what was served, without the exceptions.
type expected struct{ updates, checkpoints, entries map[string]any }

func (s *served) expected() *expected {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.want != nil {
		return s.want
	}
	s.want = &expected{updates: map[string]any{}, checkpoints: s.latest(), entries: map[string]any{}}
	for offset, raw := range s.updates {
		s.want.updates[offset] = comparable("", jsontext.Value(raw), offset)
	}
	alike := map[string]bool{} // read again, an entry has its sets in another order
	for _, raw := range s.entries {
		entry := comparable("", jsontext.Value(raw), "").(map[string]any)
		if text := fmt.Sprint(entry); !saysNothing(entry) && !alike[text] {
			alike[text] = true
			addEntry(s.want.entries, entry)
		}
	}
	return s.want
}

// saysNothing tells a JsEmpty entry with nothing in or around it.
func saysNothing(entry map[string]any) bool {
	empty, ok := entry["contractEntry"].(map[string]any)["JsEmpty"].(map[string]any)
	if !ok || len(empty) > 0 {
		return false
	}
	workflow, named := entry["workflowId"]
	return len(entry) == 1 || len(entry) == 2 && named && workflow == `""`
}

// addEntry puts an entry where its like can be found: under its variant, and its event's place and contract.
func addEntry(all map[string]any, entry map[string]any) {
	name := ""
	variant, _ := entry["contractEntry"].(map[string]any)
	for kind, value := range variant {
		name = kind
		level, _ := value.(map[string]any)
		if assigned, ok := level["assignedEvent"].(map[string]any); ok {
			level = assigned
		}
		for _, event := range []any{level["createdEvent"], level["unassignedEvent"]} {
			if event, ok := event.(map[string]any); ok {
				name += fmt.Sprintf(" %v/%v of %v", event["offset"], event["nodeId"], event["contractId"])
			}
		}
	}
	for all[name] != nil {
		name += " again"
	}
	all[name] = entry
}

// latest is what must be kept of the checkpoints: of each offset and synchronizer the one with the latest record time.
func (s *served) latest() map[string]any {
	kept, latest := map[string]any{}, map[string]time.Time{}
	for _, raw := range s.checkpoints {
		element := comparable("", jsontext.Value(raw), "").(map[string]any)
		value := element["update"].(map[string]any)["OffsetCheckpoint"].(map[string]any)["value"].(map[string]any)
		for i, item := range value["synchronizerTimes"].([]any) {
			entry := item.(map[string]any)
			key := fmt.Sprintf("%v %s", value["offset"], must(strconv.Unquote(entry["synchronizerId"].(string))))
			at := must(time.Parse(time.RFC3339Nano, entry["recordTime"].(string))).Truncate(time.Microsecond)
			if before, ok := latest[key]; ok && !before.Before(at) {
				continue
			}
			one := comparable("", jsontext.Value(raw), "").(map[string]any)
			value := one["update"].(map[string]any)["OffsetCheckpoint"].(map[string]any)["value"].(map[string]any)
			value["synchronizerTimes"] = value["synchronizerTimes"].([]any)[i : i+1]
			kept[key], latest[key] = one, at
		}
	}
	return kept
}

// requireRebuilt compares everything that was served with the database.
func (s *served) requireRebuilt(t *testing.T, database string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	all, err := s.compare(t.Context(), tx)
	require.NoError(t, err)
	const most = 20
	require.Empty(t, all[:min(most, len(all))], "%d differences", len(all))
}

func everything(shape string) config.Scope {
	scope := defaultScope()
	scope.Shape, scope.Interfaces, scope.Blobs = shape, sandbox.InterfaceNames(), true
	return scope
}

// index indexes a ledger and collects what was served.
func (s *served) index(t *testing.T, l sandbox.History, options sandbox.ServerOptions, scope config.Scope, change func(sandbox.Element) [][]byte) string {
	t.Helper()
	options.Rewrite = s.rewrite(change)
	database := throwaway.Migrated(t, migrate)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, serve(t, l, options), scope), testLogger(t)))
	s.end()
	return database
}

func (s *served) backfill(t *testing.T, l sandbox.History, options sandbox.ServerOptions, scope config.Scope, change func(sandbox.Element) [][]byte) string {
	t.Helper()
	options.Rewrite = s.rewrite(change)
	database := throwaway.Migrated(t, migrate)
	at := int64(-1)
	if l, ok := l.(*sandbox.Ledger); ok {
		at = l.End()
	}
	_, err := RunBackfill(t.Context(), backfillFor(database, serve(t, l, options), scope, at), testLogger(t), nil)
	require.NoError(t, err)
	s.end()
	s.updates = nil // which were read to find out what the server has
	return database
}

// What was indexed is what the ledger's own model says, can be rebuilt, and comparing it with the ledger finds nothing,
// whatever the server's version and the scope.
func TestRowsAreComplete(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	for version, c := range map[string]struct {
		shape   string
		options sandbox.ServerOptions
	}{
		"3.4":                  {"acs-delta", sandbox.ServerOptions{Version: "3.4", ListLimit: 2000}},
		"the interface's only": {"ledger-effects", sandbox.ServerOptions{StrictInterface: true, ListLimit: 2000}}, // with checkpoints of its own
	} {
		t.Run("updates of "+version, func(t *testing.T) {
			t.Parallel()
			if version != "3.4" {
				brief.Skip(t)
			}
			l, scope := sandbox.NewLedger(sandbox.Options{Seed: 17}), everything(c.shape)
			l.Grow(250)
			var s served
			database := s.index(t, l, c.options, scope, nil)
			require.Greater(t, len(s.updates), 160)
			truth := simulatedScope(scope)
			truth.Blobs, truth.Version = true, c.options.Version
			require.Empty(t, sandbox.Diff(l.Truth(truth, l.End()), relations(t, database)))
			s.requireRebuilt(t, database)
			requireVerified(t, database, serve(t, l, c.options))
		})
		t.Run("snapshot of "+version, func(t *testing.T) {
			t.Parallel()
			if version != "3.4" {
				brief.Skip(t)
			}
			options := c.options // the subtests beside this one read theirs
			options.ExtraEntries = true
			var s served
			database := s.backfill(t, ledgerInFlight(), options, everything("acs-delta"), nil)
			requireEntryKinds(t, &s)
			s.requireRebuilt(t, database)
		})
	}
	t.Run("updates matched by interfaces only", func(t *testing.T) {
		t.Parallel()
		brief.Long(t, "rebuilds a ledger in another scope")
		l := sandbox.NewLedger(sandbox.Options{Seed: 18})
		l.Grow(300)
		scope := everything("ledger-effects")
		scope.Templates = sandbox.TemplateNames()[:1]
		var s served
		database := s.index(t, l, sandbox.ServerOptions{}, scope, nil)
		require.NotEmpty(t, s.updates)
		s.requireRebuilt(t, database)
	})
	t.Run("recorded updates", func(t *testing.T) {
		t.Parallel()
		replay, err := sandbox.LoadReplay(recorded.Beside(t, "recorded/updates-ledger-effects-31.json"))
		require.NoError(t, err)
		var s served
		scope := defaultScope()
		scope.Shape = "ledger-effects"
		database := s.index(t, replay, sandbox.ServerOptions{}, scope, nil)
		require.Len(t, s.updates, 31)
		s.requireRebuilt(t, database)
		requireUpdatesEqual(t, database, serve(t, replay, sandbox.ServerOptions{}), scope)
		require.Equal(t, count(t, database, "ledger.active_contracts"), count(t, database,
			"ledger.created_events c WHERE acs_delta AND NOT EXISTS (SELECT FROM ledger.archived_events a WHERE a.contract_id = c.contract_id)"))
	})
	t.Run("recorded snapshot", func(t *testing.T) {
		t.Parallel()
		replay, err := sandbox.LoadReplay(recorded.Beside(t, "recorded/active-contracts-6.json"))
		require.NoError(t, err)
		var s served
		database := s.backfill(t, replay, sandbox.ServerOptions{}, defaultScope(), nil)
		require.Len(t, s.entries, 6)
		s.requireRebuilt(t, database)
		require.Equal(t, 6, count(t, database, "ledger.active_contracts WHERE payload IS NOT NULL"))
	})
}

// ledgerInFlight is a ledger at whose end both halves of reassignments are alone. To look for one takes long, and those
// who read it can share it.
var ledgerInFlight = sync.OnceValue(func() *sandbox.Ledger { return growInFlight(sandbox.Options{Seed: 5}) })

func growInFlight(options sandbox.Options) *sandbox.Ledger {
	l := sandbox.NewLedger(options)
	for range 500 {
		l.Grow(1)
		if !l.InFlight(l.End()) {
			continue
		}
		kinds := map[any]bool{}
		for _, r := range l.TruthFromSnapshot(sandbox.Scope{}, l.End(), l.End())["reassignments"] {
			kinds[r["kind"]] = true
		}
		if len(kinds) == 2 {
			return l
		}
	}
	panic("no moment with both kinds of incomplete reassignments")
}

func requireEntryKinds(t *testing.T, s *served) {
	t.Helper()
	for _, kind := range names("JsActiveContract JsIncompleteUnassigned JsIncompleteAssigned JsEmpty JsFromTheFuture") {
		found := false
		for raw := range s.entries {
			found = found || strings.Contains(raw, `"`+kind+`":`)
		}
		require.True(t, found, "no entry is %s", kind)
	}
}
