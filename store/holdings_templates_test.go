package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
)

func (d *testDB) templateInterfaces() []string {
	d.t.Helper()
	return d.rows(`SELECT t.template_id, t.representative_package_id, i.interface_id FROM indexer.template_interfaces i
		JOIN indexer.templates t USING (template_ref) ORDER BY 1, 2, 3`)
}

// Which templates show which interface is noted wherever creations come from, and once.
func TestHoldingsTemplates(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	l := d.leadUpdates(d.store())
	active := activeEntry(1, 0, "active", "sync::1", 0)
	active.Active.Created.InterfaceViews = []ledger.InterfaceView{view(holdingV1, valueV1("alice", "1", "null"))}
	left := unassignedEntry(3, 2, "left", "sync::1", "sync::2")
	left.Unassigned.Created.RepresentativePackageID = ptr("left")
	left.Unassigned.Created.InterfaceViews = []ledger.InterfaceView{view(holdingV2, valueV2(`"alice"`, "1"))}
	came := assignedEntry(4, "came", "sync::1", "sync::2")
	came.Assigned.Created.RepresentativePackageID = ptr("came")
	came.Assigned.Created.InterfaceViews = []ledger.InterfaceView{view(holdingV2, valueV2(`"alice"`, "1"))}
	d.snapshot(l, 10, active, left, came)
	want := []string{
		testTemplate + " came " + holdingV2, testTemplate + " left " + holdingV2, testTemplate + " <nil> " + holdingV1,
	}
	require.Equal(t, want, d.templateInterfaces())

	// A template that is known shows another interface, by a creation and by an assignment.
	created := newUpdate(11, "sync::1")
	created.Created = []ledger.CreatedEvent{tokenCreation(0, "created", view(holdingV1, `{}`), view("pkg:I:Other", `{}`), view(holdingV1, `{}`))}
	assigned := newUpdate(12, "sync::2")
	assign(&assigned, 0, "left", "sync::1", "sync::2", 1)
	assigned.Created[0].RepresentativePackageID = ptr("left")
	assigned.Created[0].InterfaceViews = []ledger.InterfaceView{view(holdingV1, valueV1("alice", "1", "null"))}
	d.append(l, 10, created, assigned)
	want = []string{
		testTemplate + " came " + holdingV2, testTemplate + " left " + holdingV1, testTemplate + " left " + holdingV2,
		testTemplate + " <nil> " + holdingV1, testTemplate + " <nil> pkg:I:Other",
	}
	require.Equal(t, want, d.templateInterfaces())
	require.Equal(t, []string{"active", "created", "left"}, d.rows("SELECT contract_id FROM ledger.holdings ORDER BY 1"))

	// Another leader knows them, and an older one does not mind what another added.
	l.Close()
	first := d.leadUpdates(d.store())
	wanted := names.NewWanted()
	wanted.Created(&created.Created[0])
	_, err := first.dictionary.Resolve(ctx, wanted)
	require.NoError(t, err)
	require.Equal(t, want, d.templateInterfaces())
	d.exec("INSERT INTO indexer.template_interfaces SELECT template_ref, 'pkg:I:Late' FROM indexer.templates WHERE representative_package_id IS NULL")
	late := tokenCreation(0, "late", view("pkg:I:Late", `{}`))
	wanted.Created(&late)
	_, err = first.dictionary.Resolve(ctx, wanted)
	require.NoError(t, err)
	require.Len(t, d.templateInterfaces(), len(want)+1)
}

// A contract that is active on two synchronizers is held once, as of each offset.
func TestHoldingsOnTwoSynchronizers(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	token := func(u ledger.Update) ledger.Update {
		for i := range u.Created {
			u.Created[i].InterfaceViews = []ledger.InterfaceView{view(holdingV1, valueV1("alice", "1.5", "null"))}
		}
		return u
	}
	created := newUpdate(1, "sync::1")
	created.Created = []ledger.CreatedEvent{creation(0, "c")}
	assigned := newUpdate(2, "sync::2")
	assign(&assigned, 0, "c", "sync::1", "sync::2", 1)
	unassigned := newUpdate(3, "sync::2")
	unassign(&unassigned, 0, "c", "sync::2", "sync::1", 2)
	archived := newUpdate(4, "sync::1")
	archived.Archived = []ledger.ArchivedEvent{archival(0, "c")}
	d.append(l, 0, token(created), token(assigned))
	require.Equal(t, "2", d.row("SELECT count(*) FROM ledger.active_contracts"))
	require.Equal(t, "c sync::2 2 1.5", d.row("SELECT contract_id, synchronizer_id, activated_offset, amount::text FROM ledger.holdings"))
	require.Equal(t, "alice 1.5 1", d.row("SELECT owner, amount::text, contracts FROM ledger.holding_totals"))
	d.append(l, 2, unassigned)
	require.Equal(t, "c sync::1 1 1.5", d.row("SELECT contract_id, synchronizer_id, activated_offset, amount::text FROM ledger.holdings"))
	d.append(l, 3, archived)
	require.Empty(t, d.holdings("ledger.holdings"))
	for offset, want := range []string{"", "c sync::1 1", "c sync::2 2", "c sync::1 1", ""} {
		got := d.row("SELECT coalesce(string_agg(concat_ws(' ', contract_id, synchronizer_id, activated_offset), ','), '') FROM ledger.holdings_at($1)", offset)
		require.Equal(t, want, got, offset)
	}
}

// A holding that is not found, because its template's interface was not noted, is a difference.
func TestCompareTemplateInterfaces(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	pages := everyKind(0)
	require.NoError(t, l.Append(t.Context(), testScope, pages))
	c := &compared{testDB: d, store: l.store, page: pages[0]}
	require.Empty(t, c.spoilt("SELECT 1"))
	list := c.spoilt("DELETE FROM indexer.template_interfaces")
	require.Len(t, list, 1)
	ref := d.row("SELECT template_ref FROM indexer.templates JOIN indexer.created USING (template_ref) WHERE contract_id = 'contract-0'")
	require.Equal(t, "template_interfaces, template_ref "+ref+", interface_id "+holdingV1+": the row is not stored", list[0].String())
}
