package store

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
	"ledgerindexer/store/internal/tables"
)

// Every table of facts and of a snapshot, and the lifetimes, are shown by a relation that is exported, which reads
// them. The documents name its folder: those of events are the relations that docs/relations.md has.
func TestEveryFactIsExported(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	document, err := os.ReadFile("../docs/export.md")
	require.NoError(t, err)
	reference, err := os.ReadFile("../docs/relations.md")
	require.NoError(t, err)
	var of []string
	for _, exported := range tables.InExport() {
		require.True(t, strings.Contains(string(document), " "+exported.Relation+"/") ||
			strings.Contains(string(reference), "## "+exported.Relation+"\n"), "no document names the folder of %s", exported.Relation)
		of = append(of, exported.Of...)
		for _, table := range exported.Of {
			require.Equal(t, []string{"true"}, d.Rows(`WITH RECURSIVE uses (oid) AS (
				SELECT ('ledger.' || $1::text)::regclass::oid
				UNION SELECT p.refobjid FROM uses u JOIN pg_rewrite r ON r.ev_class = u.oid
					JOIN pg_depend p ON p.classid = 'pg_rewrite'::regclass AND p.objid = r.oid AND p.refclassid = 'pg_class'::regclass
			) SELECT bool_or(u.oid = ('indexer.' || $2::text)::regclass) FROM uses u`, exported.Relation, table), "%s reads %s", exported.Relation, table)
		}
	}
	slices.Sort(of)
	want := append(tables.Names(tables.In(tables.Facts)), "lifetimes")
	slices.Sort(want)
	require.Equal(t, want, slices.Compact(of))
}

// Every table of records is shown by a relation that is exported with them, and that docs/export.md names.
func TestEveryRecordIsExported(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	document, err := os.ReadFile("../docs/export.md")
	require.NoError(t, err)
	var of []string
	for _, exported := range tables.ExportedRecords() {
		require.Contains(t, string(document), "`"+exported.Relation+"`")
		of = append(of, exported.Of...)
	}
	slices.Sort(of)
	require.ElementsMatch(t, tables.Names(tables.In(tables.Records)), slices.Compact(of))
}

// An export that begins while pruning holds the floors and the tables sees the database as it is afterwards, and not
// the floors from before.
func TestAnExportSeesWhatItWaitedFor(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	d.started()
	floor := func() (at ledger.Offset, err error) {
		err = d.store().Export(ctx, func(e *ExportSnapshot) error {
			state, err := e.State(ctx)
			at = state.HistoryFloor
			return err
		})
		return at, err
	}
	before, err := floor()
	require.NoError(t, err)
	pruning := d.Begin("LOCK TABLE ONLY indexer.floors, ONLY indexer.checkpoints IN ACCESS EXCLUSIVE MODE")
	_, err = pruning.Exec(ctx, "UPDATE indexer.floors SET history_floor = history_floor + 7, state_floor = state_floor + 7 WHERE stream = 'updates'")
	require.NoError(t, err)
	var after ledger.Offset
	ended := make(chan error, 1)
	go func() {
		var err error
		after, err = floor()
		ended <- err
	}()
	d.WaitFor(storetest.Waiting, 1)
	require.NoError(t, pruning.Commit(ctx))
	require.NoError(t, <-ended)
	require.Equal(t, before+7, after)
}

// Two relations would have the same files where a typed view is called as another one.
func TestNamesOfExportedViews(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	for _, name := range [][2]string{{"created", "events"}, {"topology", "events"}} {
		d.Exec(fmt.Sprintf("CREATE SCHEMA %s; CREATE VIEW %[1]s.%s AS SELECT 1::bigint AS ledger_offset, 0 AS node_id", name[0], name[1]))
		d.Exec(fmt.Sprintf(`INSERT INTO indexer.typed_views (view_schema, view_name, kind, package_name, module_name, entity_name, choice, columns)
			VALUES ('%s', '%s', 'template', 'p', 'm', 'e', '', '[]')`, name[0], name[1]))
		err := d.store().Export(t.Context(), func(e *ExportSnapshot) error {
			_, err := e.Relations(t.Context())
			return err
		})
		require.ErrorContains(t, err, "view "+name[0]+"."+name[1]+" would be exported as "+name[0]+"_"+name[1]+", as something else is")
		d.Exec("DELETE FROM indexer.typed_views")
	}
}

// One export of a database writes to a place at a time. One whose session has ended is told, and another one may begin.
func TestOneExportWritesToAPlace(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.store()
	first, unlock, err := s.LockExport(t.Context(), "s3://there/x")
	require.NoError(t, err)
	_, _, err = s.LockExport(t.Context(), "s3://there/x")
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.Contains(t, problem.What, "writes to s3://there/x")
	_, elsewhere, err := s.LockExport(t.Context(), "s3://there/y")
	require.NoError(t, err)
	elsewhere()
	unlock()
	require.Error(t, first.Err())

	lost, unlock, err := s.LockExport(t.Context(), "s3://there/x")
	require.NoError(t, err)
	defer unlock()
	d.Exec("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE '% export lock'")
	<-lost.Done()
	require.ErrorContains(t, context.Cause(lost), "the lock of the export to s3://there/x was lost")
	_, again, err := s.LockExport(t.Context(), "s3://there/x")
	require.NoError(t, err)
	again()
}
