package audit

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/storetest"
	"ledgerindexer/store/internal/tables"
)

// simulated is what a simulated participant shows of its ledger after an offset, as one page.
func simulated(t *testing.T, l *sandbox.Ledger, shape string, after ledger.Offset) ledger.Page {
	t.Helper()
	server := httptest.NewServer(sandbox.NewServer(l, sandbox.ServerOptions{Version: "3.6"}))
	defer server.Close()
	scope := sandbox.Scope{Shape: shape, Interfaces: sandbox.InterfaceNames(), Blobs: true, Version: "3.6"}
	response, err := http.Post(server.URL+"/v2/updates/get-updates-page", "application/json", strings.NewReader(fmt.Sprintf(
		`{"beginOffsetExclusive":%d,"endOffsetInclusive":%d,"maxPageSize":2000,"updateFormat":%s}`, after, l.End(), scope.UpdateFormat())))
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(body))
	page, err := ledger.DecodeUpdatePage(body, after)
	require.NoError(t, err)
	require.NotEmpty(t, page.Updates)
	return ledger.Page{From: after, To: ledger.Offset(l.End()), Updates: page.Updates}
}

// compared is a database that holds a page with rows in every fact table.
type compared struct {
	*testDB
	store *opened
	page  ledger.Page
}

// newCompared indexes ledger effects, ACS deltas behind them, and what no participant has sent yet. Behind the last
// update some offsets are free.
func newCompared(t *testing.T) *compared {
	t.Helper()
	l := sandbox.NewLedger(sandbox.Options{Seed: 23})
	l.Grow(60)
	effects := simulated(t, l, sandbox.LedgerEffects, 0)
	l.Grow(60)
	deltas := simulated(t, l, sandbox.ACSDelta, effects.To)
	odd := storetest.EveryKind(deltas.To)[0]
	page := ledger.Page{To: odd.To + 10, Updates: slices.Concat(effects.Updates, deltas.Updates, odd.Updates)}
	d := newDatabase(t)
	leader := d.started()
	require.NoError(t, leader.Append(t.Context(), storetest.Scope, []ledger.Page{page}))
	return &compared{testDB: d, store: leader.store, page: page}
}

// spoilt runs statements, compares, and takes the statements back.
func (c *compared) spoilt(statements ...string) []Difference {
	c.T.Helper()
	var list []Difference
	tx := c.spoil(statements...)
	require.NoError(c.T, c.store.compare(c.T.Context(), tx, c.page, storetest.Collect(&list)))
	require.NoError(c.T, tx.Rollback(c.T.Context()))
	return list
}

// spoil runs statements, each of which has to find something, in a transaction.
func (d *testDB) spoil(statements ...string) pgx.Tx {
	d.T.Helper()
	tx, err := d.Conn.Begin(d.T.Context())
	require.NoError(d.T, err)
	for _, statement := range statements {
		changed, err := tx.Exec(d.T.Context(), statement)
		require.NoError(d.T, err, statement)
		require.Positive(d.T, changed.RowsAffected(), statement)
	}
	return tx
}

// spoils is, by type, what is made of a value, which may be NULL.
var spoils = map[string]string{
	"int8": "coalesce(%s, 0) + 1", "int4": "coalesce(%s, 0) + 1", "text": "coalesce(%s, '') || '?'", "bool": "NOT coalesce(%s, false)",
	"numeric": "coalesce(%s, 0) + 1", "uuid": "md5(coalesce(%s::text, ''))::uuid",
	"timestamptz": "coalesce(%s, now()) + interval '1 microsecond'", "jsonb": "jsonb_build_array(%s)", "bytea": `coalesce(%s, '') || '\x00'`,
	"_text": "coalesce(%s, '{}') || '{another}'::text[]",
}

func kinds(list []Difference) []string {
	texts := []string{}
	for _, d := range list {
		texts = append(texts, fmt.Sprintf("%s %s", d.Kind, d.Relation))
	}
	return storetest.Sorted(texts)
}

// What jsonb, arrays and NULL tell apart is told apart, but not what only renders the same JSON in another way.
func TestCompareIsExact(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	u := storetest.NewUpdate(1, "sync::1")
	u.CommandID, u.Extra = new(""), ledger.JSON(`{"b": [1.50, 1e2, -0, 0.10e-3, 12345678901234567890], "a": "\u00e4\/😀", "n": null, "a2": {}}`)
	u.EffectiveAt = storetest.Time("2025-01-02T03:04:05.123456789Z")
	c := storetest.Creation(0, "c'\"\\{}, \n\x01NULL")
	c.Signatories, c.Observers, c.WitnessParties = []string{"b", "a", "NULL", "", `x"\,{}`}, []string{}, nil
	c.Blob, c.ContractKeyHash = make([]byte, digestAbove+1), []byte{}
	u.Created = []ledger.CreatedEvent{c}
	page := ledger.Page{To: 1, Updates: []ledger.Update{u}}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{page}))
	x := &compared{testDB: d, store: l.store, page: page}
	require.Empty(t, x.spoilt("SELECT 1"))
	d.Exec(`CREATE FUNCTION pg_temp.listed(list text[]) RETURNS integer LANGUAGE sql AS
		'INSERT INTO indexer.party_lists SELECT max(party_list_ref) + 1, list FROM indexer.party_lists RETURNING party_list_ref'`)
	listed := func(list string) string { return "pg_temp.listed(" + list + ")" }
	for _, spoil := range []struct{ column, value string }{
		{"updates.extra", `jsonb_set(extra, '{b,0}', '1.51')`},
		{"updates.extra", `extra - 'a2'`},
		{"updates.extra", `jsonb_set(extra, '{b,4}', '12345678901234567891')`},
		{"updates.command_id", "NULL"},
		{"updates.effective_at", "effective_at + interval '1 microsecond'"},
		{"created.signatories_ref", listed(`ARRAY['a', 'b', 'NULL', '', 'x"\,{}']`)},
		{"created.signatories_ref", listed(`ARRAY['b', 'a', NULL, '', 'x"\,{}']`)},
		{"created.signatories_ref", listed(`'[2:6]={b,a,"NULL","",x\"\\\,\{\}}'::text[]`)},
		{"created.signatories_ref", "observers_ref"},
		{"created.observers_ref", "NULL"},
		{"created.witness_parties_ref", "observers_ref"},
		{"created.contract_id", `replace(contract_id, E'\n', ' ')`},
		{"created.contract_key_hash", "NULL"},
		{"created.created_event_blob", "set_byte(created_event_blob, 64, 1)"},
		{"updates.exact", `'{"effectiveAt": "\"2025-01-02T03:04:05.123456788Z\""}'`},
	} {
		relation, column, _ := strings.Cut(spoil.column, ".")
		list := x.spoilt(fmt.Sprintf("UPDATE indexer.%s SET %s = %s", relation, column, spoil.value))
		require.Len(t, list, 1, spoil)
		require.Equal(t, spoil.column, list[0].Relation+"."+list[0].Column)
		require.NotEqual(t, list[0].Wanted, list[0].Stored)
	}
	for _, alike := range []string{`jsonb_set(extra, '{b,0}', '1.5')`, `extra - 'n'`, `extra || '{"never sent": null}'`} {
		require.Empty(t, x.spoilt("UPDATE indexer.updates SET extra = "+alike), alike)
	}
	blob := x.spoilt("UPDATE indexer.created SET created_event_blob = NULL")[0]
	require.Equal(t, "65 bytes, SHA-256 98ce42deef51d40269d542f5314bef2c7468d401ad5d85168bfab4c0108f75f7", *blob.Wanted)
	require.Nil(t, blob.Stored)
	require.Equal(t, `created at offset 1, node_id 0: created_event_blob is NULL, and "`+*blob.Wanted+`" in the ledger`, blob.String())
	text := x.spoilt(`UPDATE indexer.created SET contract_id = E'\x1b[2J'`)[0]
	require.Equal(t, `created at offset 1, node_id 0: contract_id is "\x1b[2J", and "c'\"\\{}, \n\x01NULL" in the ledger`, text.String())
}

// Numbers that refer to a name are compared, and shown, as what they refer to.
func TestCompareDictionaries(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	pages := storetest.EveryKind(0)
	pages[0].Updates[0].Created[1].RepresentativePackageID = new("pkg-3")
	require.NoError(t, l.Append(t.Context(), storetest.Scope, pages))
	c := &compared{testDB: d, store: l.store, page: pages[0]}
	texts := func(list []Difference) (texts []string) {
		for _, d := range list {
			texts = append(texts, d.String())
		}
		return texts
	}
	require.Equal(t, []string{
		`created at offset 1, node_id 1: template_ref is "pkg-1:Main:Asset of asset, represented by pkg-4", and "pkg-1:Main:Asset of asset, represented by pkg-3" in the ledger`,
	}, texts(c.spoilt("UPDATE indexer.templates SET representative_package_id = 'pkg-4' WHERE representative_package_id = 'pkg-3'")))
	require.Equal(t, []string{
		`created at offset 1, node_id 1: template_ref is "77, which is not in the dictionary", and "pkg-1:Main:Asset of asset, represented by pkg-3" in the ledger`,
	}, texts(c.spoilt("UPDATE indexer.created SET template_ref = 77 WHERE node_id = 1")))
	require.Equal(t, []string{
		`reassignments at offset 2, node_id 0: source_ref is "sync::2", and "sync::1" in the ledger`,
	}, texts(c.spoilt("UPDATE indexer.reassignments SET source_ref = target_ref")))
	require.Contains(t, texts(c.spoilt("UPDATE indexer.synchronizers SET synchronizer_id = 'sync::\x1b' WHERE synchronizer_id = 'sync::1'")),
		`reassignments at offset 2, node_id 0: source_ref is "sync::\x1b", and "sync::1" in the ledger`)
	named := map[string]bool{}
	for _, difference := range c.spoilt("DELETE FROM indexer.synchronizers") {
		named[difference.Relation] = true
	}
	referring := d.Rows("SELECT table_name::text FROM information_schema.columns WHERE table_name = ANY ($1) AND column_name = 'synchronizer_ref'", storetest.FactTables)
	require.Greater(t, len(referring), 5)
	for _, table := range referring {
		require.True(t, named[table], table)
	}
}

// More rows than one statement takes are compared in pieces, of one update too.
func TestCompareInPieces(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "writes very many rows")
	d := newDatabase(t)
	l := d.started()
	u := storetest.NewUpdate(5, "sync::1")
	for i := range int32(2*pieceRows + 10) {
		u.Archived = append(u.Archived, storetest.Archival(i*2, "c"))
	}
	slices.Reverse(u.Archived) // nothing says that the server sends them in order
	page := ledger.Page{To: 10, Updates: []ledger.Update{storetest.NewUpdate(4, "sync::1"), u, storetest.NewUpdate(6, "sync::1")}}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{page}))
	c := &compared{testDB: d, store: l.store, page: page}
	require.Empty(t, c.spoilt("SELECT 1"))
	list := c.spoilt(
		fmt.Sprintf("UPDATE indexer.archived SET node_id = node_id + 1 WHERE node_id IN (0, %d, %d, %d)", 2*pieceRows-2, 2*pieceRows, 4*pieceRows+18),
		"UPDATE indexer.archived SET node_id = -1 WHERE node_id = 2", "UPDATE indexer.archived SET ledger_offset = 1 WHERE node_id = 4",
		"UPDATE indexer.archived SET ledger_offset = 10, node_id = 2147483647 WHERE node_id = 6", "UPDATE indexer.archived SET extra = '1' WHERE node_id = 8",
	)
	require.Len(t, list, 15)
	missing, extra := map[int32]bool{}, map[string]bool{}
	for _, d := range list {
		switch d.Kind {
		case Missing:
			missing[*d.NodeID] = true
		case Extra:
			extra[fmt.Sprint(d.Offset, " ", *d.NodeID)] = true
		}
	}
	require.Len(t, missing, 7)
	require.Equal(t, map[string]bool{
		"5 1": true, fmt.Sprint("5 ", 2*pieceRows-1): true, fmt.Sprint("5 ", 2*pieceRows+1): true, fmt.Sprint("5 ", 4*pieceRows+19): true,
		"5 -1": true, "1 4": true, "10 2147483647": true,
	}, extra)
}

func TestPieces(t *testing.T) {
	t.Parallel()
	row := func(offset int64, sub int32, bytes int) recordedRow {
		return recordedRow{at: rowPlace{offset, sub}, bytes: bytes}
	}
	rows := []recordedRow{row(1, 0, 10), row(1, 1, pieceBytes), row(1, 1, pieceBytes), row(2, 0, 1), row(2, 1, 1)}
	piece, rest := cutPiece(rows)
	require.Len(t, piece, 1)
	piece, rest = cutPiece(rest)
	require.Len(t, piece, 2, "rows at the same place stay together")
	piece, rest = cutPiece(rest)
	require.Len(t, piece, 2)
	require.Empty(t, rest)
	piece, rest = cutPiece(nil)
	require.Empty(t, piece)
	require.Empty(t, rest)
}

// A comparison sees one state of the database, whatever is committed meanwhile.
func TestCompareReadsOneSnapshot(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	pages := storetest.EveryKind(0)
	var list []Difference
	err := l.store.Compare(t.Context(), pages[0], func(d Difference) {
		if len(list) == 0 {
			require.NoError(t, l.Append(t.Context(), storetest.Scope, pages))
		}
		list = append(list, d)
	})
	require.NoError(t, err)
	relations := map[string]bool{}
	for _, d := range list {
		require.Equal(t, Missing, d.Kind)
		relations[d.Relation] = true
	}
	require.Len(t, relations, len(storetest.FactTables))
	list = nil
	require.NoError(t, l.store.Compare(t.Context(), pages[0], storetest.Collect(&list)))
	require.Empty(t, list)
}

func TestCompareOtherPages(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.EveryKind(0)))
	var list []Difference
	require.NoError(t, l.store.Compare(t.Context(), ledger.Page{From: 4, To: 4}, storetest.Collect(&list)))
	require.NoError(t, l.store.Compare(t.Context(), ledger.Page{From: 4, To: 9}, storetest.Collect(&list)))
	require.Empty(t, list)
	require.ErrorContains(t, l.store.Compare(t.Context(), ledger.Page{From: 4, To: 9, Updates: storetest.EveryKind(0)[0].Updates}, storetest.Collect(&list)), "offset 1 after offset 4")
	require.NoError(t, l.store.Compare(t.Context(), ledger.Page{To: 4}, storetest.Collect(&list)))
	for _, difference := range list {
		require.Equal(t, Extra, difference.Kind)
	}
	for _, table := range storetest.FactTables {
		rows := slices.DeleteFunc(slices.Clone(list), func(d Difference) bool { return d.Relation != table })
		require.Equal(t, d.Row("SELECT count(*) FROM indexer."+table), fmt.Sprint(len(rows)), table)
	}
}

// What is compared is every column that there is, so that a new one can't be forgotten.
func TestCompareCoversEveryColumn(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	s := d.store()
	require.NoError(t, s.db.ReadOnly(t.Context(), func(tx pgx.Tx) error {
		columns, err := s.factColumns(t.Context(), tx)
		require.NoError(t, err)
		for _, rows := range new(rows.Facts).Tables() {
			table, err := record(tx, tables.Get(tables.Facts, rows.Name), rows, columns[rows.Name])
			require.NoError(t, err)
			require.ElementsMatch(t, columns[rows.Name], table.columns, rows.Name)
			require.Contains(t, storetest.FactTables, rows.Name)
		}
		return nil
	}))
}

// factKey is the key of a table of facts; nil: it is none.
func factKey(relation string) []string {
	for _, table := range tables.In(tables.Facts) {
		if table.Name == relation {
			return table.Key
		}
	}
	return nil
}
