package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/brief"
	"ledgerindexer/ledger"
)

// shown is what analysts see, but for when things were written, and names that are kept although nothing has them any more.
func (i *itself) shown() map[string][]string {
	i.t.Helper()
	all := map[string][]string{}
	for _, view := range i.rows("SELECT table_name FROM information_schema.views WHERE table_schema = 'ledger' AND table_name <> 'packages'") {
		all[view] = sorted(i.rows("SELECT (to_jsonb(r) - 'updated_at')::text FROM ledger." + view + " r"))
	}
	all["lifetimes"] = sorted(i.rows(`SELECT contract_id, synchronizer_id, template_id, activated_offset, activated_node_id, deactivated_offset
		FROM indexer.lifetimes JOIN indexer.synchronizers USING (synchronizer_ref) JOIN indexer.templates USING (template_ref)`))
	return all
}

func (i *itself) requireShown(want map[string][]string, message string) {
	i.t.Helper()
	got := i.shown()
	require.Len(i.t, got, len(want))
	for relation, rows := range want {
		require.Equal(i.t, rows, got[relation], "%s: %s", message, relation)
	}
}

// upTo is what of the pages lies up to an offset.
func upTo(pages []ledger.Page, to ledger.Offset) (cut []ledger.Page) {
	for _, page := range pages {
		if page.From >= to {
			break
		}
		page.To = min(page.To, to)
		for n := range page.Updates {
			if page.Updates[n].Offset > to {
				page.Updates = page.Updates[:n]
				break
			}
		}
		cut = append(cut, page)
	}
	return cut
}

// after is what of the pages lies after an offset.
func after(pages []ledger.Page, from ledger.Offset) (rest []ledger.Page) {
	for _, page := range pages {
		if page.To <= from {
			continue
		}
		page.From = max(page.From, from)
		for len(page.Updates) > 0 && page.Updates[0].Offset <= from {
			page.Updates = page.Updates[1:]
		}
		rest = append(rest, page)
	}
	return rest
}

// Set back to any offset, a database is as one that was indexed just so far, and from there it goes on to what it was.
func TestReset(t *testing.T) {
	t.Parallel()
	for n, start := range []string{fromGenesis, fromSnapshot, fromMiddle} {
		t.Run(start, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			i := newItself(t, uint64(300+n), start, ledger.ShapeLedgerEffects, 15)
			other, _, _ := newGround(t, uint64(300+n), start, ledger.ShapeLedgerEffects)
			first, end := i.pages[0].From, i.pages[len(i.pages)-1].To
			whole := i.shown()
			random := rand.New(rand.NewPCG(4, uint64(n)))
			offsets := []ledger.Offset{end, first}
			for range 4 {
				offsets = append(offsets, first+ledger.Offset(random.Int64N(int64(end-first))))
			}
			l := i.leadUpdates(i.store)
			l2 := other.leadUpdates(other.store)
			at := first
			slices.Sort(offsets)
			for _, to := range offsets {
				for _, page := range after(upTo(i.pages, to), at) {
					require.NoError(t, l2.Append(t.Context(), i.scope, []ledger.Page{page}))
				}
				at = to
				_, err := l.Reset(t.Context(), to)
				require.NoError(t, err)
				i.requireShown(other.shown(), fmt.Sprint("reset to ", to))
				require.Empty(t, i.differences(nil))
				for _, page := range after(i.pages, to) {
					require.NoError(t, l.Append(t.Context(), i.scope, []ledger.Page{page}))
				}
				i.requireShown(whole, fmt.Sprint("resumed from ", to))
				require.Empty(t, i.differences(nil))
			}
		})
	}
}

// What a reset removes is counted, relation by relation; what it does not concern stays.
func TestResetReport(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	require.NoError(t, l.Append(t.Context(), testScope, everyKind(0)))
	later := everyKind(4)
	later[0].Updates[0].Archived[0].ContractID = "unseen too"
	later[0].Checkpoints = []ledger.OffsetCheckpoint{{Offset: 8, Times: []ledger.SynchronizerTime{{SynchronizerID: "sync::1", RecordTime: testTime("2025-01-02T03:04:05Z")}}}}
	ends := newUpdate(9, "sync::1")
	ends.Archived = []ledger.ArchivedEvent{archival(0, "contract-0")}
	later = append(later, ledger.Page{From: 8, To: 9, Updates: []ledger.Update{ends}})
	require.NoError(t, l.Append(t.Context(), testScope, later))
	require.NoError(t, l.SaveLookups(t.Context(), []ledger.Lookup{
		{ContractID: "unseen", At: time.Now(), Status: ledger.LookupNotFound},
		{ContractID: "unseen too", At: time.Now(), Status: ledger.LookupFound, Contract: &ledger.Contract{
			ContractID: "unseen too", TemplateID: testTemplate, PackageName: "asset", Argument: ledger.JSON(`"\u0000"`),
		}},
	}))
	d.exec(`INSERT INTO indexer.verifications (stream, from_exclusive, to_inclusive, verified_at, result, differences, digest)
		SELECT s, n, n + 3, now(), 'equal', 0, sha256('') FROM unnest('{updates,transactions}'::text[]) s, unnest('{0,3}'::int[]) n`)
	d.exec("INSERT INTO indexer.record_exact_payloads (seq, field, exact) VALUES (9, 'raw', '')")
	d.exec("INSERT INTO indexer.checkpoints (stream, event_id) VALUES ('transactions', 'e')")

	report, err := l.Reset(t.Context(), 4)
	require.NoError(t, err)
	require.Equal(t, ResetReport{From: 9, Removed: []RemovedRows{
		{"updates", 5}, {"created", 3}, {"archived", 2}, {"exercised", 1}, {"interface_views", 1}, {"reassignments", 1}, {"topology_events", 1},
		{"unknown_elements", 1}, {"exact_payloads", 1}, {"offset_checkpoints", 1}, {"lookup_exact_payloads", 1}, {"active_contracts", 2}, {"lifetimes", 3}, {"lookups", 1}, {"verifications", 1},
	}}, report)
	require.Equal(t, []string{"0 4"}, d.coverage())
	require.Equal(t, "4", d.watermark())
	require.Equal(t, []string{"arrived", "contract-0"}, d.rows("SELECT contract_id FROM ledger.active_contracts ORDER BY 1"))
	require.Equal(t, "not_found", d.row("SELECT status FROM indexer.lookups"))
	require.Equal(t, []string{"transactions 0", "transactions 3", "updates 0"}, d.rows("SELECT stream, from_exclusive FROM indexer.verifications ORDER BY 1, 2"))
	require.Equal(t, "9", d.row("SELECT seq FROM indexer.record_exact_payloads"))
	require.Equal(t, "e", d.row("SELECT event_id FROM indexer.checkpoints WHERE stream = 'transactions'"))
	report, err = l.Reset(t.Context(), 4)
	require.NoError(t, err)
	require.Equal(t, ResetReport{From: 4}, report, "again")
}

// A contract whose creation goes with the reset is looked up after all.
func TestResetForgetsWhatMadeALookupNeedless(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	archived, arrived := newUpdate(1, "sync::1"), newUpdate(2, "sync::2")
	archived.Archived = []ledger.ArchivedEvent{archival(0, "c")}
	assign(&arrived, 0, "c", "sync::3", "sync::2", 1)
	require.NoError(t, l.Append(t.Context(), testScope, []ledger.Page{{To: 2, Updates: []ledger.Update{archived, arrived}}}))
	require.Empty(t, wantedLookups(t, l))
	require.Empty(t, d.queue())
	_, err := l.Reset(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, []string{"c 1 0"}, d.queue())
}

func TestResetRefusals(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	_, err := l.Reset(t.Context(), 0)
	requireProblem(t, err, "nothing has been indexed", "indexer run")
	require.NoError(t, l.Start(t.Context(), "", testScope, 100, false))
	require.NoError(t, l.Append(t.Context(), testScope, everyKind(100)))
	_, err = l.Reset(t.Context(), 99)
	requireProblem(t, err, "its events begin after offset 100", "at least 100", "backfill --at-offset 99", "--start 99")
	_, err = l.Reset(t.Context(), 105)
	requireProblem(t, err, "holds nothing after offset 104", "from 100 up to 104")
	require.Equal(t, []string{"100 104"}, d.coverage())
	d.exec("UPDATE indexer.leadership SET epoch = epoch + 1 WHERE role = 'updates'")
	_, err = l.Reset(t.Context(), 102)
	require.ErrorIs(t, err, ErrNotLeader)
	require.Equal(t, "104", d.watermark())
}
