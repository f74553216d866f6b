package audit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
	"ledgerindexer/store/internal/tables"
)

const (
	marker = "m4rk3r-t0-er4s3" // in all that is to be erased
	keeper = "k33p3r-0f-c0nt3nt"
)

// planted is a creation with a text in all of its content; exactly: in JSON that jsonb can't hold.
func planted(nodeID int32, contractID, text string, exactly bool) ledger.CreatedEvent {
	c := storetest.Creation(nodeID, contractID)
	json := ledger.JSON(fmt.Sprintf(`{"note": "%s"}`, text))
	view := ledger.JSON(fmt.Sprintf(`{"owner": "%[1]s", "amount": "1.0", "instrumentId": {"id": "of %[1]s", "admin": "alice"}, "lock": null}`, text))
	if exactly {
		json = ledger.JSON(fmt.Sprintf(`{"note": "\u0000%s"}`, text))
		view = json
	}
	c.Argument, c.ContractKey, c.ContractKeyHash, c.Blob, c.Extra = json, json, []byte(text), []byte(text), json
	c.InterfaceViews = []ledger.InterfaceView{
		{InterfaceID: storetest.HoldingV1, Value: view, StatusCode: new(int32(0)), Extra: json},
		{InterfaceID: "pkg-v1:Other:Other", StatusCode: new(int32(3)), StatusMessage: &text, StatusDetails: ledger.JSON(`["` + text + `"]`)},
	}
	return c
}

// plantedPages are updates at the offsets from 11 to 16. Contracts and updates whose name has "doomed" have the marker
// in all of their content.
func plantedPages() []ledger.Page {
	json := func(text string) ledger.JSON { return ledger.JSON(`{"a": "` + text + `"}`) }
	made := storetest.NewUpdate(11, "sync::1")
	made.Created = []ledger.CreatedEvent{planted(0, "doomed", marker, false), planted(1, "doomed-too", marker, true), planted(2, "kept", keeper, false)}
	// Nobody but who witnessed another contract has the position of this one still, when it is redacted.
	same, witnessed := planted(3, "doomed-same", marker, false), planted(4, "witnessed", keeper+" too", false)
	same.InterfaceViews[0].Value, witnessed.ACSDelta = witnessed.InterfaceViews[0].Value, new(false)
	made.Created = append(made.Created, same, witnessed)
	used := storetest.NewUpdate(12, "sync::1")
	for i, contract := range []string{"doomed", "doomed-too", "kept"} {
		e := storetest.Exercise(int32(i), contract, false, new(true))
		e.Argument, e.Result, e.Extra = json(marker), ledger.JSON(`"\u0000`+marker+`"`), json(marker)
		if contract == "kept" {
			e.Argument, e.Result, e.Extra = json(keeper), json(keeper), nil
		}
		used.Exercised = append(used.Exercised, e)
	}
	used.Unknown = []ledger.UnknownElement{
		{NodeID: new(int32(7)), Kind: "New", Raw: ledger.JSON(`{"New": {"contractId": "d\u006fomed", "is": "` + marker + `"}}`)},
		{Kind: "New", Raw: ledger.JSON(`{"New": {"contractId": "kept", "is": "` + keeper + `"}}`)},
		{Kind: "New", Raw: ledger.JSON(`{"New": {"contractId": "doomed-too", "is": "\u0000` + marker + `"}}`)},
	}
	moved := storetest.NewUpdate(13, "sync::2")
	storetest.Assign(&moved, 0, "doomed", "sync::1", "sync::2", 1)
	moved.Created[0] = planted(0, "doomed", marker, false)
	moved.Created[0].Origin, moved.Assigned[0].Extra = ledger.OriginAssignment, json(marker)
	storetest.Unassign(&moved, 1, "doomed", "sync::2", "sync::1", 2)
	moved.Unassigned[0].Extra = json(marker)
	ended := storetest.NewUpdate(14, "sync::1")
	for i, contract := range []string{"doomed", "doomed-too", "doomed-older", "older", "doomed-same"} {
		a := storetest.Archival(int32(i), contract)
		a.Extra = json(marker)
		if contract == "older" {
			a.Extra = json(keeper)
		}
		ended.Archived = append(ended.Archived, a)
	}
	whole := storetest.NewUpdate(15, "sync::1")
	whole.ID, whole.Extra = "doomed-update", json(marker)
	whole.Created = []ledger.CreatedEvent{planted(0, "transient", marker, false)}
	end := storetest.Exercise(1, "transient", true, nil)
	end.Argument, end.Result = json(marker), json(marker)
	other := storetest.Exercise(2, "kept", false, new(true))
	other.Argument, other.Extra = ledger.JSON(`"\u0000`+marker+`"`), json(marker)
	whole.Exercised = []ledger.ExercisedEvent{end, other}
	whole.Unknown = []ledger.UnknownElement{{NodeID: new(int32(4)), Kind: "New", Raw: json(marker)}}
	storetest.Rest(&whole, storetest.Of{ContractID: "transient", Parties: []string{"alice"}, Text: "added", Content: json(marker)}, moved, ended)
	rest := storetest.NewUpdate(16, "sync::1")
	rest.Extra = json(keeper)
	return []ledger.Page{
		{From: 10, To: 12, Updates: []ledger.Update{made, used}}, {From: 12, To: 14, Updates: []ledger.Update{moved, ended}},
		{From: 14, To: 16, Updates: []ledger.Update{whole, rest}},
	}
}

// plantedRecords are of the update and a contract that are redacted, and of others.
func plantedRecords() []ledger.Record {
	text := func(text string) ledger.JSON { return ledger.JSON(`{"a": "` + text + `"}`) }
	exact := func(text string) ledger.JSON { return ledger.JSON(`{"a": "\u0000` + text + `"}`) }
	transfer := func(id, note, instruction string) ledger.Record {
		r := storetest.Payment(id, "01:00:00", "alice", nil, storetest.Receiver("bob", "001.50", nil))
		r.Extra, r.Transfer.Extra, r.Transfer.Sender.Extra, r.Transfer.Receivers[0].Extra = text(note), exact(note), exact(note), text(note)
		r.Transfer.Description, r.Transfer.DescriptionExact, r.Transfer.InstructionCID = &note, exact(note), &instruction
		r.Transfer.BalanceChanges[0].Extra = text(note)
		return r
	}
	mint := ledger.Record{
		EventID: "#doomed-update:3", Kind: ledger.RecordMint, Date: storetest.Time("2025-01-02T03:04:05Z"), Word: "amulet",
		Mint: &ledger.OwnedAmount{Owner: "alice", Amount: "1", Extra: text(marker)},
	}
	tap := storetest.Tap("#doomed-update:4")
	tap.Tap.Extra = text(marker)
	return []ledger.Record{
		transfer("#doomed-update:0", marker, "another"), transfer("#update:0", marker, "doomed"), transfer("#update:1", keeper, "kept"), mint, tap,
		{EventID: "#update:2", Kind: ledger.RecordAbort, Date: mint.Date, Abort: &ledger.AbortedInstruction{InstructionCID: "doomed", Extra: text(marker)}},
		{EventID: "#doomed-update:5", Kind: ledger.RecordUnknown, Raw: ledger.JSON(`{"a": "` + marker + `"}`)},
		{EventID: "#update:3", Kind: ledger.RecordUnknown, Raw: ledger.JSON(`{"of": "doomed-too", "a": "\u0000` + marker + `"}`)},
		{EventID: "#update:4", Kind: ledger.RecordUnknown, Raw: ledger.JSON(`{"of": "kept", "a": "` + keeper + `"}`)},
	}
}

// redactedThere are what the tests redact.
var redactedThere = []Redaction{
	{ContractID: "doomed"}, {ContractID: "doomed-too"}, {ContractID: "doomed-older"}, {UpdateID: "doomed-update"}, {ContractID: "doomed-same"},
}

// holds lists the relations of both schemas, and the planner's statistics, in which there is something to redact, and
// something to keep, as such or as bytes. Partitions are read as parts of their tables.
func (d *testDB) holds() (marked, kept []string) {
	d.T.Helper()
	has := func(text string) string {
		return fmt.Sprintf("coalesce(bool_or(x::text LIKE '%%%s%%' OR x::text LIKE '%%%x%%'), false)", text, text)
	}
	for _, relation := range d.Rows(`SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind IN ('r', 'p', 'v', 'm') AND NOT c.relispartition
		AND (c.relnamespace IN ('indexer'::regnamespace, 'ledger'::regnamespace) OR c.oid = 'pg_catalog.pg_stats'::regclass) ORDER BY 1`) {
		switch d.Row("SELECT " + has(marker) + ", " + has(keeper) + " FROM " + relation + " x") {
		case "true true":
			marked, kept = append(marked, relation), append(kept, relation)
		case "true false":
			marked = append(marked, relation)
		case "false true":
			kept = append(kept, relation)
		}
	}
	return marked, kept
}

// redact redacts, as another process does.
func (d *testDB) redact(what ...Redaction) (reports []RedactionReport) {
	d.T.Helper()
	for _, one := range what {
		plan, err := New(d.store().Store).PlanRedaction(d.T.Context(), one)
		require.NoError(d.T, err)
		r := d.repairs(d.store())
		report, err := r.Redact(d.T.Context(), one, "erasure was requested")
		require.NoError(d.T, err)
		r.Close()
		require.NoError(d.T, report.VacuumFailed)
		require.Equal(d.T, plan.Rows, slices.DeleteFunc(slices.Clone(report.Rows), func(r RedactedRows) bool { return r.Relation == "positions" }))
		reports = append(reports, report)
	}
	return reports
}

// world is a database that is written in every way.
type redactedWorld struct {
	*testDB
	pages   []ledger.Page
	records []ledger.Record
}

func (w *redactedWorld) lookups() []ledger.Lookup {
	var list []ledger.Lookup
	for id, text := range map[string]string{"doomed-older": marker, "older": keeper} {
		list = append(list, ledger.Lookup{ContractID: id, Status: ledger.LookupFound, At: storetest.Time("2025-01-02T03:04:05Z").Time, Contract: &ledger.Contract{
			ContractID: id, TemplateID: storetest.Template, PackageName: "asset", CreatedAt: storetest.Time("2025-01-02T03:04:05Z"), Signatories: []string{"alice"},
			Argument: ledger.JSON(`{"a": "` + text + `"}`), ContractKey: ledger.JSON(`"\u0000` + text + `"`), ContractKeyHash: []byte(text),
		}})
	}
	return list
}

// requireErased requires that nothing is left of what was redacted, that all else is there, and that verifying finds
// everything right.
func (w *redactedWorld) requireErased(way string) {
	w.T.Helper()
	marked, held := w.holds()
	require.Empty(w.T, marked, way)
	for _, relation := range []string{"created", "exercised", "lookups", "interface_views", "unknown_elements", "positions", "transfers"} {
		require.True(w.T, slices.ContainsFunc(held, func(name string) bool { return strings.HasSuffix(name, relation) }), "%s: %s", way, relation)
	}
	w.requireVerified(way)
}

func (w *redactedWorld) requireVerified(way string) {
	w.T.Helper()
	var list []Difference
	s, ctx := w.store(), w.T.Context()
	require.NoError(w.T, s.CompareHeld(ctx, storetest.Collect(&list)))
	for _, page := range w.pages {
		require.NoError(w.T, s.Compare(ctx, page, storetest.Collect(&list)))
	}
	require.NoError(w.T, s.CompareDerived(ctx, nil, storetest.Collect(&list)))
	for _, lookup := range w.lookups() {
		require.NoError(w.T, s.CompareLookup(ctx, *lookup.Contract, storetest.Collect(&list)))
	}
	require.NoError(w.T, s.CompareRecords(ctx, 0, w.records, storetest.Collect(&list)))
	require.Empty(w.T, list, way)
	require.NoError(w.T, s.CompareSeals(ctx, func(int64, int64) {}, storetest.Collect(&list)))
	require.Empty(w.T, list, way)
}

// stored is every row of facts and of what follows from them.
func (w *redactedWorld) stored() map[string][]string {
	w.T.Helper()
	return w.Dump(append(tables.Names(tables.In(tables.Facts)), "active_contracts", "lifetimes", "lookups", "positions", "position_stakeholders")...)
}

// What was redacted is nowhere any more, whoever writes it again: a reset and the loop after it, ranges ahead of the
// watermark, repairs, look-ups, and another reading of the transaction history. All else stays, verifying finds
// nothing, and what is written then is what erasing left.
func TestWhatWasRedactedDoesNotComeBack(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	ctx := t.Context()
	w := &redactedWorld{testDB: d, pages: plantedPages(), records: plantedRecords()}
	l := d.leadUpdates(d.store())
	require.NoError(t, l.Start(ctx, "participant::1", storetest.Scope, 10, true))
	require.NoError(t, l.Append(ctx, storetest.Scope, w.pages))
	wanted, err := l.WantedLookups(ctx, 10)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"doomed-older", "older"}, wanted)
	require.NoError(t, l.SaveLookups(ctx, w.lookups()))
	for _, page := range w.pages {
		_, err := l.SealUpdates(ctx, page)
		require.NoError(t, err)
	}
	h := d.leadTransactions(d.store())
	_, err = h.AppendTransactions(ctx, ledger.TransactionsPosition{}, nil, w.records)
	require.NoError(t, err)
	d.Exec("ANALYZE")
	before, _ := d.holds()
	for _, relation := range slices.Concat(tables.Names(tables.In(tables.Facts, tables.Records)),
		[]string{"lookups", "positions", "created_events", "pg_stats"}) {
		require.True(t, slices.ContainsFunc(before, func(name string) bool { return strings.HasSuffix(name, relation) }), relation)
	}
	w.requireVerified("before")

	reports := d.redact(redactedThere...)
	require.Equal(t, []string{"transient"}, reports[3].Contracts)
	require.ErrorContains(t, l.Append(ctx, storetest.Scope, []ledger.Page{{From: 16, To: 17}}), "does not lead any more", "it may remember what was erased")
	h.Close()
	l.Close()
	w.requireErased("redacted")
	after := w.stored()
	require.Equal(t, []string{
		"contract doomed <nil>", "contract doomed-too <nil>", "contract doomed-older <nil>", "update doomed-update <nil>", "contract transient doomed-update",
		"contract doomed-same <nil>",
	}, d.Rows("SELECT kind, id, of_update FROM ledger.redactions WHERE redacted_by = session_user AND reason = 'erasure was requested' ORDER BY redaction"))
	require.Equal(t, "0", d.Row("SELECT count(*) FROM ledger.verifications"), "something of each window was redacted")
	require.Equal(t, "updates 10 15", d.Row("SELECT stream, min(from_exclusive), max(to_inclusive) FROM ledger.rewrites WHERE reason = 'redacted' AND stream = 'updates' GROUP BY 1"))

	for way, write := range map[string]func(*updatesWriter) error{
		"appended again": func(l *updatesWriter) error { return l.Append(ctx, storetest.Scope, w.pages) },
		"written ahead": func(l *updatesWriter) error {
			for _, page := range slices.Backward(w.pages) {
				if err := l.WriteAhead(ctx, storetest.Scope, []ledger.Page{page}); err != nil {
					return err
				}
			}
			return l.MoveWatermark(ctx, storetest.Scope, 10, 16)
		},
	} {
		l := d.leadUpdates(d.store())
		_, err := l.Reset(ctx, 10)
		require.NoError(t, err)
		require.NoError(t, write(l))
		require.NoError(t, l.SaveLookups(ctx, w.lookups()))
		l.Close()
		w.requireErased(way)
		require.Equal(t, without(after, "lookups"), without(w.stored(), "lookups"), way) // which have the time at which they were asked for
	}

	r := d.repairs(d.store())
	for _, page := range w.pages {
		d.Exec("DELETE FROM indexer.created; DELETE FROM indexer.exercised; DELETE FROM indexer.unknown_elements; UPDATE indexer.interface_views SET view_value = '{}'; UPDATE indexer.updates SET extra = '{\"damaged\": 1}'")
		require.NoError(t, r.RepairUpdates(ctx, storetest.Scope, page))
	}
	for _, page := range w.pages {
		require.NoError(t, r.RepairUpdates(ctx, storetest.Scope, page))
	}
	for _, lookup := range w.lookups() {
		require.NoError(t, r.RepairLookup(ctx, lookup))
	}
	require.NoError(t, r.RepairDerived(ctx, nil))
	require.NoError(t, r.RestartTransactions(ctx))
	position, _, err := d.store().TransactionsPosition(ctx)
	require.NoError(t, err)
	position, err = r.History().AppendTransactions(ctx, position, nil, w.records)
	require.NoError(t, err)
	_, err = r.History().CompleteTransactions(ctx, position)
	require.NoError(t, err)
	r.Close()
	w.requireErased("repaired")
	require.Equal(t, without(after, "lookups"), without(w.stored(), "lookups"))

	for _, what := range redactedThere {
		again := d.redact(what)[0]
		require.Empty(t, again.Rows, what)
		require.Equal(t, "erasure was requested", again.Before.Reason)
	}
}

// A redaction that fails leaves everything as it was.
func TestARedactionThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	ctx := t.Context()
	l := d.leadUpdates(d.store())
	require.NoError(t, l.Start(ctx, "participant::1", storetest.Scope, 10, true))
	require.NoError(t, l.Append(ctx, storetest.Scope, plantedPages()))
	_, err := l.SealUpdates(ctx, ledger.Page{From: 10, To: 16, Updates: slices.Concat(plantedPages()[0].Updates, plantedPages()[1].Updates, plantedPages()[2].Updates)})
	require.NoError(t, err)
	stored := func() map[string][]string {
		return d.Dump(append(slices.Clone(storetest.FactTables), "lifetimes", "positions", "verifications", "redactions", "leadership", "rewrites")...)
	}
	for _, failing := range []string{"redactions", "lifetimes", "rewrites", "leadership"} {
		r := d.repairs(d.store())
		before := stored()
		d.Exec("CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no room' USING ERRCODE = 'disk_full'; END $$")
		d.Exec("CREATE TRIGGER fails BEFORE INSERT OR UPDATE ON indexer." + failing + " FOR EACH ROW EXECUTE FUNCTION fails()")
		_, err := r.Redact(ctx, Redaction{ContractID: "doomed"}, "requested")
		require.ErrorContains(t, err, "no room", failing)
		r.Close()
		d.Exec("DROP FUNCTION fails CASCADE")
		require.Equal(t, before, stored(), failing)
	}
}

func without(all map[string][]string, table string) map[string][]string {
	rest := map[string][]string{}
	for name, rows := range all {
		if name != table {
			rest[name] = rows
		}
	}
	return rest
}

// The same holds of what snapshots brought, of repairs of that, and of what pruning makes of it.
func TestWhatWasRedactedDoesNotComeBackWithASnapshot(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	ctx := t.Context()
	entries := func() []ledger.ContractEntry {
		list := []ledger.ContractEntry{
			storetest.ActiveEntry(5, 0, "doomed", "sync::1", 0), storetest.ActiveEntry(6, 0, "kept", "sync::1", 0), storetest.UnassignedEntry(8, 7, "doomed-leaving", "sync::1", "sync::2"),
			{Unknown: &ledger.UnknownElement{Kind: "New", Raw: ledger.JSON(`{"of": "doomed", "a": "` + marker + `"}`)}, Extra: ledger.JSON(`"` + marker + `"`)},
			{Unknown: &ledger.UnknownElement{Kind: "New", Raw: ledger.JSON(`{"of": "doomed-leaving", "a": "\u0000` + marker + `"}`)}},
		}
		for i, text := range []string{marker, keeper, marker} {
			e := &list[i]
			e.Extra = ledger.JSON(`{"entry": "` + text + `"}`)
			c := planted(0, "", text, i == 2)
			created := &ledger.CreatedEvent{}
			if e.Active != nil {
				e.Active.Extra, created = e.Extra, &e.Active.Created
			} else {
				e.Unassigned.Extra, e.Unassigned.Unassigned.Extra, created = ledger.JSON(`"\u0000`+text+`"`), e.Extra, &e.Unassigned.Created
			}
			created.Argument, created.ContractKey, created.ContractKeyHash, created.Blob, created.Extra, created.InterfaceViews =
				c.Argument, c.ContractKey, c.ContractKeyHash, c.Blob, c.Extra, c.InterfaceViews
		}
		return list
	}
	l := d.leadUpdates(d.store())
	progress, err := l.BeginSnapshot(ctx, "participant::1", storetest.Scope, 10)
	require.NoError(t, err)
	_, err = l.WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{Last: true, Entries: entries()})
	require.NoError(t, err)
	arrived, ended := storetest.NewUpdate(11, "sync::2"), storetest.NewUpdate(12, "sync::1")
	storetest.Assign(&arrived, 0, "doomed-leaving", "sync::1", "sync::2", 1)
	ended.Archived = []ledger.ArchivedEvent{storetest.Archival(0, "doomed")}
	away := storetest.NewUpdate(13, "sync::2")
	away.Archived = []ledger.ArchivedEvent{storetest.Archival(0, "doomed-leaving")}
	require.NoError(t, l.Append(ctx, storetest.Scope, []ledger.Page{{From: 10, To: 14, Updates: []ledger.Update{arrived, ended, away}}}))
	digest, err := l.store.SnapshotRows(ctx, 10)
	require.NoError(t, err)
	ok, err := l.SealSnapshot(ctx, 10, digest, Comparison{})
	require.NoError(t, err)
	require.True(t, ok)
	l.Close()
	before, _ := d.holds()
	for _, table := range tables.OfSnapshot() {
		require.Contains(t, before, table.Name)
	}
	check := func(way string) {
		t.Helper()
		marked, kept := d.holds()
		require.Empty(t, marked, way)
		require.NotEmpty(t, kept, way)
		var list []Difference
		s := d.store()
		require.NoError(t, s.CompareHeld(ctx, storetest.Collect(&list)))
		require.NoError(t, s.CompareDerived(ctx, nil, storetest.Collect(&list)))
		require.NoError(t, s.CompareSeals(ctx, func(int64, int64) {}, storetest.Collect(&list)))
		require.Empty(t, list, way)
	}
	compareCarried := func() (list []Difference) {
		_, err := d.store().CompareCarried(ctx, 10, 0, entries(), storetest.Collect(&list))
		require.NoError(t, err)
		return list
	}
	d.redact(Redaction{ContractID: "doomed"}, Redaction{ContractID: "doomed-leaving"})
	check("redacted")
	require.Empty(t, compareCarried())
	require.Equal(t, []string{"4 5", "6 8", "9 10"}, d.Rows("SELECT from_exclusive, to_inclusive FROM ledger.rewrites WHERE stream = 'snapshot' ORDER BY 1"),
		"the creations, a reassignment, and what is unknown, which lies at the offset of the snapshot")

	d.Exec("UPDATE indexer.created SET payload = '{}'; DELETE FROM indexer.interface_views; UPDATE indexer.unknown_elements SET raw = '{}'")
	require.NotEmpty(t, compareCarried())
	r := d.repairs(d.store())
	require.NoError(t, r.RepairCarried(ctx, 10, 0, entries()))
	r.Close()
	require.Empty(t, compareCarried())
	check("repaired")

	b := d.leadPruning(d.store())
	require.NoError(t, b.Prune(ctx, 11))
	require.Equal(t, "doomed doomed-leaving doomed-leaving kept", d.Row("SELECT string_agg(contract_id, ' ' ORDER BY contract_id) FROM indexer.created WHERE origin = 'snapshot'"),
		"where it left, and where it is active")
	check("pruned")
}

// Nor does it come back with a resync: one that is under way begins again, and what shows a contract as active that had
// ended, such as a restored participant, has nothing of it.
func TestWhatWasRedactedDoesNotComeBackWithAResync(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	l := d.started()
	made, ended := storetest.NewUpdate(11, "sync::1"), storetest.NewUpdate(12, "sync::1")
	made.Created = []ledger.CreatedEvent{planted(0, "doomed", marker, false), planted(1, "kept", keeper, false)}
	ended.Archived = []ledger.ArchivedEvent{storetest.Archival(0, "doomed")}
	require.NoError(t, l.Append(ctx, storetest.Scope, []ledger.Page{{To: 12, Updates: []ledger.Update{made, ended}}}))
	scope := storetest.Scope
	scope.Parties = []string{"alice"}
	entry := func(nodeID int32, contractID, mark string) ledger.ContractEntry {
		e := storetest.ActiveEntry(11, nodeID, contractID, "sync::1", 0)
		e.Active.Created = planted(nodeID, contractID, mark, true)
		e.Active.Created.Offset, e.Active.Created.Origin = 11, ledger.OriginSnapshot
		return e
	}
	page := func() ledger.SnapshotPage {
		return ledger.SnapshotPage{Next: storetest.Token("t1"), Entries: []ledger.ContractEntry{entry(0, "doomed", marker), entry(1, "kept", keeper)}}
	}
	write := func(page ledger.SnapshotPage) {
		resync := l.Resync(false)
		progress, err := resync.BeginSnapshot(ctx, "", scope, 12)
		require.NoError(t, err)
		require.Zero(t, progress.Entries)
		_, err = resync.WriteSnapshotPage(ctx, progress, nil, page)
		require.NoError(t, err)
	}
	write(page())
	require.Equal(t, "1", d.Row("SELECT count(*) FROM indexer.resync_created"))
	d.redact(Redaction{ContractID: "doomed"})
	marked, _ := d.holds()
	require.Empty(t, marked)
	l.Close()
	l = d.leadUpdates(d.store())
	last := page()
	last.Last = true
	write(last)
	marked, _ = d.holds()
	require.Empty(t, marked)
	require.Equal(t, []string{"doomed 12", "kept 11"}, d.Rows("SELECT contract_id, activated_offset FROM indexer.active_contracts ORDER BY 1"))
	var list []Difference
	require.NoError(t, d.store().CompareDerived(ctx, nil, storetest.Collect(&list)))
	_, err := d.store().CompareActive(ctx, 12, last.Entries, storetest.Collect(&list))
	require.NoError(t, err)
	require.Empty(t, list)
}

// Where it is not known what was active before the database began, a contract of which only its use is stored may be
// active.
func TestWhatMayBeActiveIsNotRedacted(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	require.NoError(t, l.Start(t.Context(), "participant::1", storetest.Scope, 10, false))
	used := storetest.NewUpdate(11, "sync::1")
	used.Exercised = []ledger.ExercisedEvent{storetest.Exercise(0, "older", false, new(true))}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: 10, To: 11, Updates: []ledger.Update{used}}}))
	_, err := New(d.store().Store).PlanRedaction(t.Context(), Redaction{ContractID: "older"})
	require.ErrorContains(t, err, "may be active")
}

// An update of two synchronizers is redacted in both places, also in one that is not shown yet.
func TestAnUpdateIsRedactedWhereverItIsStored(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	var parts []ledger.Update
	for i, at := range []ledger.Offset{1, 3} {
		u := storetest.NewUpdate(at, fmt.Sprint("sync::", i+1))
		u.ID, u.Extra = "both", ledger.JSON(`{"a": "`+marker+`"}`)
		parts = append(parts, u)
	}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: 0, To: 1, Updates: parts[:1]}}))
	require.NoError(t, l.WriteAhead(t.Context(), storetest.Scope, []ledger.Page{{From: 2, To: 3, Updates: parts[1:]}}))
	l.Close()
	d.redact(Redaction{UpdateID: "both"})
	require.Equal(t, []string{"1 <nil>", "3 <nil>"}, d.Rows("SELECT ledger_offset, extra FROM indexer.updates ORDER BY 1"))
}
