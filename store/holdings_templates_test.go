package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/storetest"
)

func (d *testDB) templateInterfaces() []string {
	d.T.Helper()
	return d.Rows(`SELECT t.template_id, t.representative_package_id, i.interface_id FROM indexer.template_interfaces i
		JOIN indexer.templates t USING (template_ref) ORDER BY 1, 2, 3`)
}

// Which templates show which interface is noted wherever creations come from, and once.
func TestHoldingsTemplates(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	ctx := t.Context()
	l := d.leadUpdates(d.store())
	active := storetest.ActiveEntry(1, 0, "active", "sync::1", 0)
	active.Active.Created.InterfaceViews = []ledger.InterfaceView{view(storetest.HoldingV1, valueV1("alice", "1", "null"))}
	left := storetest.UnassignedEntry(3, 2, "left", "sync::1", "sync::2")
	left.Unassigned.Created.RepresentativePackageID = new("left")
	left.Unassigned.Created.InterfaceViews = []ledger.InterfaceView{view(holdingV2, valueV2(`"alice"`, "1"))}
	came := storetest.AssignedEntry(4, "came", "sync::1", "sync::2")
	came.Assigned.Created.RepresentativePackageID = new("came")
	came.Assigned.Created.InterfaceViews = []ledger.InterfaceView{view(holdingV2, valueV2(`"alice"`, "1"))}
	d.snapshot(l, 10, active, left, came)
	want := []string{
		storetest.Template + " came " + holdingV2, storetest.Template + " left " + holdingV2, storetest.Template + " <nil> " + storetest.HoldingV1,
	}
	require.Equal(t, want, d.templateInterfaces())

	// A template that is known shows another interface, by a creation and by an assignment.
	created := storetest.NewUpdate(11, "sync::1")
	created.Created = []ledger.CreatedEvent{tokenCreation(0, "created", view(storetest.HoldingV1, `{}`), view("pkg:I:Other", `{}`), view(storetest.HoldingV1, `{}`))}
	assigned := storetest.NewUpdate(12, "sync::2")
	storetest.Assign(&assigned, 0, "left", "sync::1", "sync::2", 1)
	assigned.Created[0].RepresentativePackageID = new("left")
	assigned.Created[0].InterfaceViews = []ledger.InterfaceView{view(storetest.HoldingV1, valueV1("alice", "1", "null"))}
	d.append(l, 10, created, assigned)
	want = []string{
		storetest.Template + " came " + holdingV2, storetest.Template + " left " + storetest.HoldingV1, storetest.Template + " left " + holdingV2,
		storetest.Template + " <nil> " + storetest.HoldingV1, storetest.Template + " <nil> pkg:I:Other",
	}
	require.Equal(t, want, d.templateInterfaces())
	require.Equal(t, []string{"active", "created", "left"}, d.Rows("SELECT contract_id FROM ledger.holdings ORDER BY 1"))

	// Another leader knows them, and an older one does not mind what another added.
	l.Close()
	first := d.leadUpdates(d.store())
	wanted := names.NewReferences()
	wanted.Created(&created.Created[0], nil)
	require.NoError(t, first.term.Dictionary.Resolve(ctx, wanted))
	require.Equal(t, want, d.templateInterfaces())
	d.Exec("INSERT INTO indexer.template_interfaces SELECT template_ref, 'pkg:I:Late' FROM indexer.templates WHERE representative_package_id IS NULL")
	late := tokenCreation(0, "late", view("pkg:I:Late", `{}`))
	wanted.Created(&late, nil)
	require.NoError(t, first.term.Dictionary.Resolve(ctx, wanted))
	require.Len(t, d.templateInterfaces(), len(want)+1)
}

// A contract that is active on two synchronizers is held once, as of each offset.
func TestHoldingsOnTwoSynchronizers(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	token := func(u ledger.Update) ledger.Update {
		for i := range u.Created {
			u.Created[i].InterfaceViews = []ledger.InterfaceView{view(storetest.HoldingV1, valueV1("alice", "1.5", "null"))}
		}
		return u
	}
	created := storetest.NewUpdate(1, "sync::1")
	created.Created = []ledger.CreatedEvent{storetest.Creation(0, "c")}
	assigned := storetest.NewUpdate(2, "sync::2")
	storetest.Assign(&assigned, 0, "c", "sync::1", "sync::2", 1)
	unassigned := storetest.NewUpdate(3, "sync::2")
	storetest.Unassign(&unassigned, 0, "c", "sync::2", "sync::1", 2)
	archived := storetest.NewUpdate(4, "sync::1")
	archived.Archived = []ledger.ArchivedEvent{storetest.Archival(0, "c")}
	created, assigned = token(created), token(assigned)
	d.append(l, 0, created, assigned)
	require.Equal(t, "2", d.Row("SELECT count(*) FROM ledger.active_contracts"))
	require.Equal(t, "c sync::2 2 1.5", d.Row("SELECT contract_id, synchronizer_id, activated_offset, amount::text FROM ledger.holdings"))
	require.Equal(t, "alice 1.5 1", d.Row("SELECT owner, amount::text, contracts FROM ledger.holding_totals"))
	d.append(l, 2, unassigned)
	require.Equal(t, "c sync::1 1 1.5", d.Row("SELECT contract_id, synchronizer_id, activated_offset, amount::text FROM ledger.holdings"))
	d.append(l, 3, archived)
	require.Empty(t, d.holdings("ledger.holdings"))
	atOnce := newDatabase(t)
	page := ledger.Page{To: 4, Updates: []ledger.Update{created, assigned, unassigned, archived}}
	require.NoError(t, atOnce.started().Append(t.Context(), storetest.Scope, []ledger.Page{page}))
	for _, d := range []*testDB{d, atOnce} {
		for offset, want := range []string{"", "c sync::1 1", "c sync::2 2", "c sync::1 1", ""} {
			got := d.Row("SELECT coalesce(string_agg(concat_ws(' ', contract_id, synchronizer_id, activated_offset), ','), '') FROM ledger.holdings_at($1)", offset)
			require.Equal(t, want, got, offset)
			totals := []string{}
			if want != "" {
				totals = append(totals, "alice 1.5 1")
			}
			require.Equal(t, totals, d.Rows("SELECT owner, amount::text, contracts FROM ledger.holding_totals_at($1)", offset), offset)
		}
		require.Equal(t, []string{"sync::1 0 4", "sync::2 1 3"}, d.Rows("SELECT synchronizer_id, reassignment_counter, active_until FROM ledger.holding_lifetimes ORDER BY 1"))
	}
}
