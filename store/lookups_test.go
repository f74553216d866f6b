package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/storetest"
)

// queue lists what stands in the queue, whether or not the creation turns out to be known.
func (d *testDB) queue() []string {
	d.T.Helper()
	return d.Rows("SELECT contract_id, ledger_offset, node_id FROM indexer.lookups WHERE status = 'wanted' ORDER BY 2, 3")
}

// randomID is a text that no btree takes where it is long.
func randomID(length int) string {
	id := make([]byte, length)
	for i := range id {
		id[i] = byte('!' + rand.IntN(90))
	}
	return string(id)
}

func wantedLookups(t *testing.T, l *UpdatesWriter) []string {
	t.Helper()
	wanted, err := l.WantedLookups(t.Context(), 100)
	require.NoError(t, err)
	return wanted
}

// An archival or exercise of a contract whose creation was never seen asks for the contract, at its first event. Which
// contracts these are is tried in TestLookupsOfAnyHistory.
func TestLookupsAreWanted(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "takes a database for each of many histories")
	longID := randomID(60_000)
	// What each update of a history does, in which contracts c, d, … are unseen unless it creates them.
	archive := func(nodeID int32, contractID string) func(*ledger.Update) {
		return func(u *ledger.Update) { u.Archived = append(u.Archived, storetest.Archival(nodeID, contractID)) }
	}
	create := func(nodeID int32, contractID string, acsDelta *bool) func(*ledger.Update) {
		return func(u *ledger.Update) {
			c := storetest.Creation(nodeID, contractID)
			c.ACSDelta = acsDelta
			u.Created = append(u.Created, c)
		}
	}
	use := func(nodeID int32, contractID string, consuming bool, acsDelta *bool) func(*ledger.Update) {
		return func(u *ledger.Update) {
			u.Exercised = append(u.Exercised, storetest.Exercise(nodeID, contractID, consuming, acsDelta))
		}
	}
	leave := func(nodeID int32, contractID, source, target string) func(*ledger.Update) {
		return func(u *ledger.Update) { storetest.Unassign(u, nodeID, contractID, source, target, 1) }
	}
	arrive := func(nodeID int32, contractID, source, target string) func(*ledger.Update) {
		return func(u *ledger.Update) { storetest.Assign(u, nodeID, contractID, source, target, 1) }
	}
	type step = func(*ledger.Update)
	d := newDatabase(t)
	l := d.started()
	for name, test := range map[string]struct {
		updates [][]step
		queued  []string // contract, offset, node: written with the batches, however these are cut
		wanted  []string // of those, the contracts whose creation is really nowhere
	}{
		"archived":                          {[][]step{{archive(3, "c")}}, []string{"c 1 3"}, []string{"c"}},
		"used and archived":                 {[][]step{{use(3, "c", false, nil)}, {archive(0, "c")}}, []string{"c 1 3"}, []string{"c"}},
		"witnessed and archived":            {[][]step{{use(3, "c", true, new(false))}, {archive(4, "c")}}, []string{"c 2 4"}, []string{"c"}},
		"several, in their order":           {[][]step{{archive(3, "e"), archive(4, "c")}, {archive(0, "d")}}, []string{"e 1 3", "c 1 4", "d 2 0"}, []string{"e", "c", "d"}},
		"archived twice":                    {[][]step{{archive(3, "c")}, {archive(0, "c")}}, []string{"c 1 3"}, []string{"c"}},
		"an id of any length":               {[][]step{{archive(3, longID)}}, []string{longID + " 1 3"}, []string{longID}},
		"created and used with one node id": {[][]step{{create(0, "c", nil), use(0, "c", false, nil)}}, nil, nil},
		"left and archived":                 {[][]step{{leave(0, "c", "sync::1", "sync::2")}, {archive(1, "c")}}, []string{"c 2 1"}, []string{"c"}},
		"created elsewhere":                 {[][]step{{arrive(0, "c", "sync::3", "sync::2")}, {archive(1, "c")}}, []string{"c 2 1"}, nil},
		"created, left and archived":        {[][]step{{create(0, "c", nil)}, {leave(0, "c", "sync::1", "sync::2")}, {archive(1, "c")}}, []string{"c 3 1"}, nil},
		"created when merely witnessed":     {[][]step{{create(0, "c", new(false))}, {archive(1, "c")}}, []string{"c 2 1"}, nil},
	} {
		for _, cut := range []string{"in one page", "in one batch", "in batches"} {
			d.ForgetUpdates()
			var pages []ledger.Page
			for i, steps := range test.updates {
				at := ledger.Offset(i)
				u := storetest.NewUpdate(at+1, "sync::1")
				for _, step := range steps {
					step(&u)
				}
				if cut == "in one page" && i > 0 {
					pages[0].To, pages[0].Updates = at+1, append(pages[0].Updates, u)
					continue
				}
				pages = append(pages, ledger.Page{From: at, To: at + 1, Updates: []ledger.Update{u}})
			}
			for _, batch := range batchesOf(pages, cut == "in batches") {
				require.NoError(t, l.Append(t.Context(), storetest.Scope, batch), "%s, %s", name, cut)
			}
			if cut == "in batches" || len(test.queued) == len(test.wanted) {
				require.ElementsMatch(t, test.queued, d.queue(), "%s, %s", name, cut)
			}
			require.Equal(t, test.wanted, wantedLookups(t, l), "%s, %s", name, cut)
			require.Len(t, d.queue(), len(test.wanted), "%s, %s: what is known stays wanted", name, cut)
		}
	}
}

// batchesOf makes one batch of pages, or one of each.
func batchesOf(pages []ledger.Page, each bool) [][]ledger.Page {
	if !each {
		return [][]ledger.Page{pages}
	}
	var batches [][]ledger.Page
	for _, page := range pages {
		batches = append(batches, []ledger.Page{page})
	}
	return batches
}

func TestLookupsAfterTheStart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	later := storetest.NewUpdate(110, "sync::1")
	for i, contract := range []string{"plain", "out", "in", "older"} {
		later.Archived = append(later.Archived, storetest.Archival(int32(i), contract))
	}
	page := []ledger.Page{{From: 100, To: 110, Updates: []ledger.Update{later}}}

	t.Run("in the middle", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.leadUpdates(d.store())
		require.NoError(t, l.Start(ctx, "", storetest.Scope, 100, false))
		require.NoError(t, l.Append(ctx, storetest.Scope, page))
		require.Equal(t, []string{"plain", "out", "in", "older"}, wantedLookups(t, l))
	})
	t.Run("from a snapshot", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.leadUpdates(d.store())
		d.snapshot(l, 100, storetest.ActiveEntry(10, 0, "plain", "sync::1", 0),
			storetest.UnassignedEntry(30, 20, "out", "sync::1", "sync::2"), storetest.AssignedEntry(40, "in", "sync::2", "sync::1"))
		require.NoError(t, l.Append(ctx, storetest.Scope, page))
		require.Equal(t, []string{"out 110 1", "in 110 2", "older 110 3"}, d.queue(), "what is not active")
		require.Equal(t, []string{"older"}, wantedLookups(t, l), "whose creation the snapshot did not name either")
		require.Equal(t, []string{"older 110 3"}, d.queue())
	})
}

// What is wanted commits with its batch, or not at all.
func TestLookupsAreWantedWithTheirBatch(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	wire := d.wire()
	l := d.leadUpdates(d.open(wire.URL(), nil))
	ctx := t.Context()
	require.NoError(t, l.Start(ctx, "", storetest.Scope, 0, true))

	refused := storetest.EveryKind(0)
	refused[0].Updates[3].CommandID = new("\x00")
	require.Error(t, l.Append(ctx, storetest.Scope, refused))
	require.Empty(t, d.queue())

	cut := wire.Order(throwaway.CutBeforeCommit)
	require.ErrorContains(t, l.Append(ctx, storetest.Scope, storetest.EveryKind(0)), "outcome is unknown")
	require.True(t, cut(ctx))
	d.WaitForEnds()
	require.Empty(t, d.queue())

	cut = wire.Order(throwaway.CutAfterCommit)
	require.ErrorContains(t, l.Append(ctx, storetest.Scope, storetest.EveryKind(0)), "outcome is unknown")
	require.True(t, cut(ctx))
	d.WaitFor("SELECT EXISTS (SELECT FROM indexer.lookups)")
	require.ErrorIs(t, l.Append(ctx, storetest.Scope, storetest.EveryKind(0)), ErrCovered)
	require.Equal(t, []string{"unseen 1 3"}, d.queue())
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.EveryKind(4)))
	require.Equal(t, []string{"unseen 1 3"}, d.queue())
}

// However a history is cut into batches, those contracts are wanted that were archived or exercised and never created.
// Whether there is anything to want makes no difference to what else is stored.
func TestLookupsOfAnyHistory(t *testing.T) {
	t.Parallel()
	brief.Long(t, "tries many random histories")
	d, other := newDatabase(t), newDatabase(t) // in the other everything is in the queue already
	l, l2 := d.started(), other.started()
	for _, l := range []*UpdatesWriter{l, l2} { // each name gets the same number in both
		for i, template := range []string{storetest.Template, "pkg-2:Main:Asset"} {
			wanted := names.NewReferences()
			wanted.Template(template, "asset", nil)
			wanted.Synchronizer(fmt.Sprint("sync::", i+1))
			require.NoError(t, l.term.Dictionary.Resolve(t.Context(), wanted))
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		d.ForgetUpdates()
		other.ForgetUpdates()
		var h storetest.History
		h.Draw(rt)
		other.Exec("INSERT INTO indexer.lookups (contract_id, ledger_offset, node_id) SELECT 'unseen' || n, -1, n FROM generate_series(0, 1) n")
		other.Exec("INSERT INTO indexer.lookups (contract_id, ledger_offset, node_id) SELECT 'c' || n, 0, n FROM generate_series(0, $1::int) n", h.Created)
		queued := other.queue()
		for _, batch := range h.Batches(rt) {
			require.NoError(rt, l.Append(t.Context(), storetest.Scope, batch))
			require.NoError(rt, l2.Append(t.Context(), storetest.Scope, batch))
		}
		require.Equal(rt, queued, other.queue())
		for _, table := range slices.Concat(storetest.FactTables, storetest.ProjectedTables) {
			require.Equal(rt, storetest.Sorted(other.Rows("SELECT * FROM indexer."+table)), storetest.Sorted(d.Rows("SELECT * FROM indexer."+table)), table)
		}

		created, acted := map[string]bool{}, map[string]bool{}
		for _, u := range h.Updates {
			for _, c := range u.Created {
				created[c.ContractID] = true
			}
			for _, a := range u.Archived {
				acted[a.ContractID] = true
			}
			for _, e := range u.Exercised {
				acted[e.ContractID] = acted[e.ContractID] || e.ACSDelta == nil || *e.ACSDelta
			}
		}
		want := []string{}
		for contract, did := range acted {
			if did && !created[contract] {
				want = append(want, contract)
			}
		}
		require.ElementsMatch(rt, want, wantedLookups(t, l))
	})
}

func TestWantedLookupsAreTheOldestThatAreUnknown(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	wanted, err := l.WantedLookups(ctx, 10)
	require.NoError(t, err)
	require.Empty(t, wanted)

	// Every second one was created on another synchronizer.
	const contracts = 50
	elsewhere, here := storetest.NewUpdate(1, "sync::2"), storetest.NewUpdate(2, "sync::1")
	for i := range int32(contracts) {
		contract := fmt.Sprint("contract-", i)
		if i%2 == 0 {
			elsewhere.Created = append(elsewhere.Created, storetest.Creation(i, contract))
		}
		here.Archived = append(here.Archived, storetest.Archival(i, contract))
	}
	require.NoError(t, l.Append(ctx, storetest.Scope, []ledger.Page{{From: 0, To: 2, Updates: []ledger.Update{elsewhere, here}}}))
	require.Len(t, d.queue(), contracts)

	wanted, err = l.WantedLookups(ctx, 3)
	require.NoError(t, err)
	require.Equal(t, []string{"contract-1", "contract-3", "contract-5"}, wanted)
	require.NoError(t, l.SaveLookups(ctx, []ledger.Lookup{{ContractID: "contract-3", At: time.Now(), Status: ledger.LookupNotFound}}))
	wanted, err = l.WantedLookups(ctx, 1000)
	require.NoError(t, err)
	require.Len(t, wanted, contracts/2-1)
	require.Equal(t, []string{"contract-1", "contract-5"}, wanted[:2])
	require.Len(t, d.queue(), contracts/2-1)
}

// everyOutcome is a queue of contracts a, b and c, and what came of each.
func everyOutcome(t *testing.T, d *testDB, l *UpdatesWriter) []ledger.Lookup {
	t.Helper()
	u := storetest.NewUpdate(1, "sync::1")
	for i, contract := range []string{"a", "b", "c"} {
		u.Archived = append(u.Archived, storetest.Archival(int32(i), contract))
	}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: 0, To: 1, Updates: []ledger.Update{u}}}))
	at := storetest.Time("2025-02-03T04:05:06.789Z").Time
	return []ledger.Lookup{
		{ContractID: "a", At: at, Status: ledger.LookupFound, Contract: &ledger.Contract{
			ContractID: "a", TemplateID: "pkg-9:Main.Sub:Asset", PackageName: "asset", Argument: ledger.JSON(`{"amount": "1.50"}`),
			ContractKey: ledger.JSON(`"k"`), ContractKeyHash: []byte{1, 2}, Signatories: []string{"alice"}, Observers: []string{},
			WitnessParties: []string{"bob"}, CreatedAt: storetest.Time("2025-01-01T00:00:00.000001Z"),
		}},
		{ContractID: "b", At: at, Status: ledger.LookupNotFound},
		{ContractID: "c", At: at, Status: ledger.LookupUnusable, Reason: "no template id"},
	}
}

func TestLookupOutcomes(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	wrote := map[string]int{}
	l := d.leadUpdates(d.open(d.URL, func(c *Config) { c.Wrote = func(relation string, n int) { wrote[relation] += n } }))
	ctx := t.Context()
	require.NoError(t, l.Start(ctx, "", storetest.Scope, 0, true))
	outcomes := everyOutcome(t, d, l)
	require.Empty(t, d.Rows("SELECT FROM ledger.looked_up_contracts"), "what nobody asked yet")

	stored := func() []string {
		return d.Rows(`SELECT contract_id, status, looked_up_at::text, ledger_offset, node_id, reason, template_id, package_id, package_name,
			module_name, entity_name, payload::text, contract_key::text, contract_key_hash::text, signatories, observers, witness_parties, created_at::text
			FROM ledger.looked_up_contracts ORDER BY 1`)
	}
	const at = "2025-02-03 04:05:06.789+00"
	nothing := strings.Repeat(" <nil>", 12)
	want := []string{
		"a found " + at + ` 1 0 <nil> pkg-9:Main.Sub:Asset pkg-9 asset Main.Sub Asset {"amount": "1.50"} "k" \x0102 [alice] [] [bob] 2025-01-01 00:00:00.000001+00`,
		"b not_found " + at + " 1 1 <nil>" + nothing,
		"c unusable " + at + " 1 2 no template id" + nothing,
	}
	require.NoError(t, l.SaveLookups(ctx, outcomes))
	require.Equal(t, want, stored())
	require.Equal(t, 3, wrote["lookups"])
	require.Empty(t, wantedLookups(t, l))
	require.Equal(t, "3", d.Row("SELECT count(*) FROM ledger.archived_events JOIN ledger.looked_up_contracts USING (contract_id, ledger_offset, node_id)"))
	require.Empty(t, d.Rows("SELECT FROM ledger.created_events"), "a look-up is no creation event")

	t.Run("the first outcome stays", func(t *testing.T) {
		require.NoError(t, l.SaveLookups(ctx, outcomes))
		for i := range outcomes {
			again := ledger.Lookup{ContractID: outcomes[i].ContractID, At: time.Now(), Status: ledger.LookupUnusable, Reason: "later"}
			require.NoError(t, l.SaveLookups(ctx, []ledger.Lookup{again, again}))
		}
		require.NoError(t, l.SaveLookups(ctx, []ledger.Lookup{{ContractID: "nobody asked for", At: time.Now(), Status: ledger.LookupNotFound}}))
		require.NoError(t, l.SaveLookups(ctx, nil))
		require.NoError(t, queries.LookupsForget(ctx, l.term.Pool, []string{"a", "b", "c"}), "of what was wanted a moment ago")
		require.Equal(t, want, stored())
		require.Equal(t, 3, wrote["lookups"])
	})
	t.Run("it is not asked for again", func(t *testing.T) {
		u := storetest.NewUpdate(2, "sync::1")
		u.Archived = []ledger.ArchivedEvent{storetest.Archival(0, "b"), storetest.Archival(1, "c")}
		u.Exercised = []ledger.ExercisedEvent{storetest.Exercise(2, "a", false, nil)}
		require.NoError(t, l.Append(ctx, storetest.Scope, []ledger.Page{{From: 1, To: 2, Updates: []ledger.Update{u}}}))
		require.Empty(t, d.queue())
		require.Equal(t, want, stored())
	})
}

// All outcomes of a call are stored, or none.
func TestLookupOutcomesAreOneTransaction(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	outcomes := everyOutcome(t, d, l)
	outcomes[2].Status = "guessed"
	storetest.RequireProblem(t, l.SaveLookups(t.Context(), outcomes), "refuses the rows")
	require.Len(t, d.queue(), 3)
	require.Empty(t, d.Rows("SELECT FROM ledger.looked_up_contracts"))
}

func TestLookupsOfStrangeValues(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	found := *everyOutcome(t, d, l)[0].Contract

	t.Run("what jsonb and timestamptz refuse is kept exactly", func(t *testing.T) {
		u := storetest.NewUpdate(2, "sync::1")
		outcomes := make([]ledger.Lookup, len(refusable))
		for i, c := range refusable {
			contract := found
			contract.Argument, contract.ContractKey = ledger.JSON(c.value), ledger.JSON(c.value)
			contract.CreatedAt = storetest.Time("2025-01-02T03:04:05.123456789Z")
			id := fmt.Sprint("json-", i)
			u.Archived = append(u.Archived, storetest.Archival(int32(i), id))
			outcomes[i] = ledger.Lookup{ContractID: id, At: time.Now(), Status: ledger.LookupFound, Contract: &contract}
		}
		require.NoError(t, l.Append(ctx, storetest.Scope, []ledger.Page{{From: 1, To: 2, Updates: []ledger.Update{u}}}))
		require.NoError(t, l.SaveLookups(ctx, outcomes))
		require.NoError(t, l.SaveLookups(ctx, outcomes), "again, without doubling the exact values")
		for i, c := range refusable {
			for _, column := range []string{"payload", "contract_key"} {
				var marked bool
				var exact []byte
				err := d.Conn.QueryRow(ctx, "SELECT "+column+` ? '$exact', (SELECT x.exact FROM ledger.exact_payloads x
					WHERE x.stream = 'lookups' AND x.ledger_offset = c.ledger_offset AND x.node_id = c.node_id AND x.field = $2)
					FROM ledger.looked_up_contracts c WHERE contract_id = $1`, outcomes[i].ContractID, column).Scan(&marked, &exact)
				require.NoError(t, err, c.name)
				require.Equal(t, c.refused, marked, c.name)
				require.Equal(t, c.refused, c.value == string(exact), c.name)
			}
		}
		require.Equal(t, []string{`2025-01-02 03:04:05.123456+00 "2025-01-02T03:04:05.123456789Z"`}, d.Rows(`
			SELECT DISTINCT c.created_at::text, convert_from(x.exact, 'UTF8') FROM ledger.looked_up_contracts c JOIN ledger.exact_payloads x
			USING (ledger_offset, node_id) WHERE x.field = 'createdAt'`))
		require.Equal(t, fmt.Sprint(len(refusable)), d.Row("SELECT count(*) FROM ledger.exact_payloads WHERE field = 'createdAt' AND stream = 'lookups'"))
	})
	t.Run("what text refuses can't be used", func(t *testing.T) {
		changes := map[string]func(*ledger.Contract){
			"template id: ":     func(c *ledger.Contract) { c.TemplateID = "pkg\x00:Main:Asset" },
			"its template id":   func(c *ledger.Contract) { c.TemplateID = "Main:Asset" },
			"template id: a ":   func(c *ledger.Contract) { c.PackageName = "\xff" },
			"signatories: ":     func(c *ledger.Contract) { c.Signatories = []string{"alice", "bob\x00"} },
			"observers: ":       func(c *ledger.Contract) { c.Observers = []string{"\x00"} },
			"witness parties: ": func(c *ledger.Contract) { c.WitnessParties = []string{"\xc3\x28"} },
		}
		u := storetest.NewUpdate(3, "sync::1")
		node := int32(0)
		var outcomes []ledger.Lookup
		for reason, change := range changes {
			contract := found
			change(&contract)
			u.Archived = append(u.Archived, storetest.Archival(node, reason))
			outcomes = append(outcomes, ledger.Lookup{ContractID: reason, At: time.Now(), Status: ledger.LookupFound, Contract: &contract})
			node++
		}
		u.Archived = append(u.Archived, storetest.Archival(node, "said badly"), storetest.Archival(node+1, "good"))
		outcomes = append(outcomes,
			ledger.Lookup{ContractID: "said badly", At: time.Now(), Status: ledger.LookupUnusable, Reason: "because\x00 of \xff"},
			ledger.Lookup{ContractID: "good", At: time.Now(), Status: ledger.LookupFound, Contract: &found})
		require.NoError(t, l.Append(ctx, storetest.Scope, []ledger.Page{{From: 2, To: 3, Updates: []ledger.Update{u}}}))
		require.NoError(t, l.SaveLookups(ctx, outcomes))
		for reason := range changes {
			require.Equal(t, "unusable true <nil>", d.Row(`SELECT status, starts_with(reason, contract_id), payload FROM ledger.looked_up_contracts
				WHERE contract_id = $1`, reason), reason)
		}
		require.Equal(t, "because? of ?", d.Row("SELECT reason FROM ledger.looked_up_contracts WHERE contract_id = 'said badly'"))
		require.Equal(t, "found", d.Row("SELECT status FROM ledger.looked_up_contracts WHERE contract_id = 'good'"))
	})
}
