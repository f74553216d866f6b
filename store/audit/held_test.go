package audit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// What says what is held, and can't be right, is named with what speaks against it.
func TestWhatIsHeldContradictsItself(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "indexes three ledgers")
	for start, cases := range map[string]map[string]string{
		fromGenesis: {
			"UPDATE floors SET state_floor = NULL":                       "floors, stream updates: the history floor is 0, and what is active is known nowhere",
			"UPDATE floors SET state_floor = 7":                          "floors, stream updates: the history floor is 0, and what is active is known from offset 7 on",
			"UPDATE floors SET history_floor = 1, state_floor = 1":       "coverage, from_exclusive 0, to_inclusive 1000: it begins before the history floor, 1",
			"UPDATE floors SET history_floor = 1001, state_floor = 1001": "checkpoints, stream updates: it is at offset 1000, before the history floor, 1001",
			"UPDATE floors SET changed_to = 'x'":                         "floors, stream updates: scope x is in force, and not stored",
			"UPDATE coverage SET scope = 'x'":                            "scopes, scope x: something was read in it, and it is not stored",
			"UPDATE scopes SET scope = 'x'":                              "scopes, scope HASH: something was read in it, and it is not stored",
			"INSERT INTO scopes VALUES ('x', '{}')":                      "scopes, scope x: nothing was read in it, and it is not in force",
			"DELETE FROM floors":                                         "floors, stream updates: it is not stored, and what is held of the updates is",
			"DELETE FROM checkpoints; DELETE FROM coverage":              "checkpoints, stream updates: it is not stored, and what is held of the updates is",
			"DELETE FROM scopes":                                         "scopes, scope HASH: something was read in it, and it is not stored",
			`UPDATE scopes SET definition = '{"shape": 7}'`:              "scopes, scope HASH: its definition does not have this hash",
			"UPDATE scopes SET definition = definition - 'shape'":        "scopes, scope HASH: its definition does not have this hash",
			"UPDATE redactions SET redaction = 4 WHERE redaction = 3":    "redactions, redaction 3: a later one is stored, and it is not",
			"DELETE FROM redactions WHERE redaction = 2":                 "redactions, redaction 2: a later one is stored, and it is not",
			"UPDATE redactions SET id = 'x' WHERE kind = 'update'":       "redactions, redaction 3: it came with update u, which is not redacted",
		},
		fromSnapshot: {
			"UPDATE floors SET state_floor = NULL":      "floors, stream updates: the history floor is 100, and what is active is known nowhere",
			"UPDATE floors SET history_floor = 99":      "snapshots, snapshot_offset 100: the history floor is 99",
			"UPDATE snapshots SET snapshot_offset = 99": "snapshots, snapshot_offset 99: the history floor is 100",
			"UPDATE snapshots SET finished_at = NULL":   "snapshots, snapshot_offset 100: it is not finished, and the updates after it are indexed",
			"DELETE FROM snapshots":                     "snapshots: its rows are stored, and which snapshot they are of is not",
			"UPDATE snapshots SET scope = 'x'":          "scopes, scope x: something was read in it, and it is not stored",
		},
		fromMiddle: {
			"UPDATE floors SET history_floor = 101":                    "coverage, from_exclusive 100, to_inclusive 1000: it begins before the history floor, 101",
			"INSERT INTO coverage VALUES ('updates', 'x', 1000, 1001)": "floors, stream updates: several scopes are covered, and it does not say which is in force",
		},
	} {
		t.Run(start, func(t *testing.T) {
			t.Parallel()
			i := heldGround(t, start)
			require.Empty(t, i.contradictions())
			i.Exec("SET search_path = indexer")
			i.Exec("CREATE SCHEMA before")
			state := []string{"floors", "checkpoints", "coverage", "scopes", "snapshots", "redactions"}
			for _, table := range state {
				i.Exec("CREATE TABLE before." + table + " AS TABLE indexer." + table)
			}
			for statement, says := range cases {
				i.Exec(statement)
				require.Contains(t, i.contradictions(), says, statement)
				for _, table := range state {
					i.Exec("DELETE FROM indexer." + table)
					i.Exec("INSERT INTO indexer." + table + " SELECT * FROM before." + table)
				}
			}
			require.Empty(t, i.contradictions())
		})
	}
}

// heldGround is a database that is covered up to offset 1000, from where a start begins: 0 or 100.
func heldGround(t *testing.T, start string) *itself {
	t.Helper()
	d := newDatabase(t)
	i := &itself{testDB: d, store: d.store(), scope: storetest.Scope}
	l := d.leadUpdates(i.store)
	defer l.Close()
	switch start {
	case fromGenesis:
		require.NoError(t, l.Start(t.Context(), "", storetest.Scope, 0, true))
		for _, values := range []string{"1, 'contract', 'a', NULL", "2, 'update', 'u', NULL", "3, 'contract', 'b', 'u'"} {
			i.Exec("INSERT INTO indexer.redactions (redaction, kind, id, of_update, redacted_at, redacted_by, reason, erased) SELECT " + values + ", now(), 'me', 'asked', '{}'")
		}
	case fromMiddle:
		i.from = 100
		require.NoError(t, l.Start(t.Context(), "", storetest.Scope, 100, false))
	case fromSnapshot:
		i.from = 100
		progress, err := l.BeginSnapshot(t.Context(), "", storetest.Scope, 100)
		require.NoError(t, err)
		_, err = l.WriteSnapshotPage(t.Context(), progress, nil, ledger.SnapshotPage{Last: true, Entries: []ledger.ContractEntry{storetest.ActiveEntry(1, 0, "a", "sync::1", 0)}})
		require.NoError(t, err)
	}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: i.from, To: 1000}}))
	return i
}

// contradictions are told as text, with HASH for that of the scope.
func (i *itself) contradictions() []string {
	i.T.Helper()
	var list []Difference
	require.NoError(i.T, i.store.CompareHeld(i.T.Context(), storetest.Collect(&list)))
	for n := range list {
		require.Equal(i.T, Contradictory, list[n].Kind)
		if list[n].Row == "scope "+storetest.Scope.Hash() {
			list[n].Row = "scope HASH"
		}
	}
	return texts(list)
}
