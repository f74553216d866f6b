package audit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/internal/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/storetest"
	"ledgerindexer/store/internal/tables"
)

// twice is a database with rows in every table that is kept twice.
type twice struct {
	*testDB
	store    *opened
	repairer *Repairer
}

func newTwice(t *testing.T) *twice {
	t.Helper()
	d := everythingSealed(t)
	d.redact(Redaction{ContractID: "transient-100"})
	w := &twice{d, d.store(), d.repairs(d.store())}
	noted := dbsqlc.RedactionNoteRecordsParams{UpdateID: "update", Records: []byte(`[]`)}
	require.NoError(t, w.store.db.Queries.RedactionNoteRecords(t.Context(), w.store.db.Pool, noted))
	require.NoError(t, w.store.db.Queries.NetworkRecord(t.Context(), w.store.db.Pool, "network::1"))
	require.Empty(t, w.differences())
	for _, table := range tables.KeptTwice() {
		require.NotEqual(t, "0", w.Row("SELECT count(*) FROM "+table.Name), table.Name)
	}
	return w
}

func (w *twice) differences() (list []findings.Difference) {
	w.T.Helper()
	require.NoError(w.T, w.store.CompareCopies(w.T.Context(), storetest.Collect(&list)))
	return list
}

// stored is every row of the tables that are kept twice, and of the copies.
func (w *twice) stored() (list []string) {
	w.T.Helper()
	for _, table := range tables.KeptTwice() {
		list = append(list, w.Rows("SELECT '"+table.Name+"', x::text FROM indexer."+table.Both()+" x ORDER BY 2")...)
	}
	return list
}

// Whatever is altered, removed or added, in a table or in its copy: it is found, named, and put right from the other
// one.
func TestDamageIsPutRightFromTheCopy(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "alters columns and rows one after the other, and compares each time")
	w := newTwice(t)
	before := w.stored()
	damaged := 0
	damage := func(relation, statement string) {
		t.Helper()
		changed, err := w.Conn.Exec(t.Context(), statement)
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code[:2] == "23" || err == nil && changed.RowsAffected() == 0 {
			return // a constraint keeps it out, or it is so already
		}
		require.NoError(t, err, statement)
		damaged++
		list := w.differences()
		require.NotEmpty(t, list, statement)
		require.True(t, slices.ContainsFunc(list, func(d findings.Difference) bool { return d.Relation == relation }), "%s: %v", statement, list)
		require.NoError(t, w.repairer.RepairCopies(t.Context()), statement)
		require.Empty(t, w.differences(), statement)
		require.Equal(t, before, w.stored(), statement)
	}
	for _, table := range tables.KeptTwice() {
		for _, relation := range []string{table.Name, table.Copy()} {
			first := " WHERE ctid = (SELECT min(ctid) FROM indexer." + relation + ")"
			for column, typeName := range w.Columns(relation) {
				if column == "is_copy" || column == "only_row" || column == "recorded_at" {
					continue
				}
				other := fmt.Sprintf(spoils[typeName], column)
				damage(relation, "UPDATE indexer."+relation+" SET "+column+" = "+other+first)
				damage(relation, "UPDATE indexer."+relation+" SET "+column+" = NULL"+first+" AND "+column+" IS NOT NULL")
				if column == table.Key[len(table.Key)-1] {
					var values []string
					for name := range w.Columns(relation) {
						values = append(values, name)
					}
					list := strings.Join(values, ", ")
					damage(relation, fmt.Sprintf("INSERT INTO indexer.%s (%s) SELECT %s FROM indexer.%[1]s"+first, relation, list,
						strings.Join(replaced(values, column, other), ", ")))
				}
			}
			damage(relation, "DELETE FROM indexer."+relation+first)
			damage(relation, "DELETE FROM indexer."+relation)
		}
	}
	require.Greater(t, damaged, 150)
}

func replaced(list []string, one, by string) []string {
	list = slices.Clone(list)
	list[slices.Index(list, one)] = by
	return list
}

// Where neither of two rows is what was written, and where both may be, nothing is written, and the error says what to
// do.
func TestWhatBothCopiesLost(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "compares and repairs again and again")
	w := newTwice(t)
	refused := func(statement string, says ...string) {
		t.Helper()
		w.Exec("CREATE SCHEMA before")
		for _, table := range tables.KeptTwice() {
			w.Exec("CREATE TABLE before." + table.Name + " AS TABLE indexer." + table.Both())
		}
		w.Exec(statement)
		damaged := w.stored()
		storetest.RequireProblem(t, w.store.CompareCopies(t.Context(), func(findings.Difference) error { return nil }), says...)
		storetest.RequireProblem(t, w.repairer.RepairCopies(t.Context()), says...)
		require.Equal(t, damaged, w.stored())
		for _, table := range tables.KeptTwice() {
			w.Exec("DELETE FROM indexer." + table.Both())
			w.Exec("INSERT INTO indexer." + table.Both() + " SELECT * FROM before." + table.Name)
		}
		w.Exec("DROP SCHEMA before CASCADE")
		require.Empty(t, w.differences())
	}
	refused("UPDATE indexer.floors_both SET history_floor = history_floor + 1",
		"a row of table floors in database", "stream updates", "floors_copy were both altered", "restore one of the two from a backup")
	refused("UPDATE indexer.templates SET package_name = 'x' WHERE template_ref = 1; UPDATE indexer.templates_copy SET package_name = 'y' WHERE template_ref = 1",
		"template_ref 1", "templates_copy were both altered")
	refused("UPDATE indexer.checkpoints c SET ledger_offset = 7, digest = indexer.changed_digest(c, '{\"ledger_offset\": 7}') WHERE stream = 'updates'",
		"checkpoints_copy have their digests, and differ", "delete the one that is wrong", "`indexer verify --repair`")

	lost := func(relation, statement string) {
		t.Helper()
		tx := w.spoil(statement)
		_, err := w.store.extentOrLost(t.Context(), tx, nil)
		storetest.RequireProblem(t, err, "of the updates", "lost", "table "+relation+" lacks the row", relation+"_copy", "`indexer verify --repair`", "backup")
		require.NoError(t, tx.Rollback(t.Context()))
	}
	lost("checkpoints", "DELETE FROM indexer.checkpoints WHERE stream = 'updates'")
	lost("floors", "DELETE FROM indexer.floors")
	w.Exec("DELETE FROM indexer.transactions_position")
	position, _, err := w.store.TransactionsPosition(t.Context())
	require.NoError(t, err)
	require.Positive(t, position.LastSeq, "the copy says it")
	w.Exec("DELETE FROM indexer.transactions_position_copy")
	_, _, err = w.store.TransactionsPosition(t.Context())
	storetest.RequireProblem(t, err, "how far the transaction history was read is lost", "backup")
}

// A name, and a list of parties, keeps its number whatever happens to the row that says so, also for a writer that
// begins then; and so does one that comes new, where the damaged row says that it is that.
func TestDamagedNamesKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "compares and repairs again and again")
	for name, statement := range map[string]string{
		"altered": `UPDATE indexer.synchronizers SET synchronizer_id = 'sync::9' WHERE synchronizer_id = 'sync::1';
			UPDATE indexer.templates SET template_id = 'pkg-9:Main:New', package_id = 'pkg-9', entity_name = 'New' WHERE template_id = '` + storetest.Template + `';
			UPDATE indexer.party_lists SET parties = '{mallory}' WHERE parties = '{alice}'`,
		"removed":                 "DELETE FROM indexer.synchronizers; DELETE FROM indexer.templates; DELETE FROM indexer.party_lists",
		"renumbered":              `UPDATE indexer.synchronizers SET synchronizer_ref = 100 + synchronizer_ref; UPDATE indexer.templates SET template_ref = 100 + template_ref`,
		"removed from the copies": "DELETE FROM indexer.synchronizers_copy; DELETE FROM indexer.templates_copy; DELETE FROM indexer.party_lists_copy",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			l := d.started()
			require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.EveryKind(0)))
			l.Close()
			d.Exec(statement)
			page := storetest.EveryKind(4)
			u := storetest.NewUpdate(9, "sync::9")
			u.Created = []ledger.CreatedEvent{storetest.Creation(0, "new")}
			u.Created[0].TemplateID = "pkg-9:Main:New"
			page[0].Updates, page[0].To = append(page[0].Updates, u), 9
			l = d.leadUpdates(d.store())
			require.NoError(t, l.Append(t.Context(), storetest.Scope, page))
			r := d.repairs(l.store)
			require.NoError(t, r.RepairCopies(t.Context()))
			var list []findings.Difference
			require.NoError(t, l.store.CompareCopies(t.Context(), storetest.Collect(&list)))
			require.NoError(t, l.store.Compare(t.Context(), storetest.EveryKind(0)[0], storetest.Collect(&list)))
			require.NoError(t, l.store.Compare(t.Context(), page[0], storetest.Collect(&list)))
			require.Empty(t, list)
			require.NoError(t, l.store.CompareDerived(t.Context(), nil, storetest.Collect(&list)))
			require.Empty(t, list)
			require.Equal(t, "3", d.Row("SELECT count(*) FROM indexer.synchronizers"), "sync::1, sync::2 and sync::9")
		})
	}
}

// What is done to one row of each table that is kept twice is done to its copy.
func TestCopiesSurviveEveryWriter(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	w := &twice{testDB: d, store: d.store()}
	l := w.leadUpdates(w.store)
	require.NoError(t, l.Start(t.Context(), "participant::1", storetest.Scope, 100, true))
	same := func(what string) { t.Helper(); require.Empty(t, w.differences(), what) }
	require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.EveryKind(100)))
	require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.EveryKind(104)))
	same("append")
	require.NoError(t, l.WriteAhead(t.Context(), storetest.Scope, storetest.EveryKind(112)))
	require.NoError(t, l.WriteAhead(t.Context(), storetest.Scope, storetest.EveryKind(108)))
	same("write ahead")
	require.NoError(t, l.MoveWatermark(t.Context(), storetest.Scope, 108, 114))
	same("project up to the middle of what is covered")
	_, err := l.Reset(t.Context(), 110)
	require.NoError(t, err)
	same("reset")
	require.Equal(t, []string{"100 110"}, w.Coverage())
}
