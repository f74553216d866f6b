package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/storetest"
)

// manyParties is a list that no index row could hold.
func manyParties(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("party-%d::1220%064d", i, i)
	}
	return list
}

// Lists come back as they were given: in their order, with what is repeated, empty, or none; long ones, and those whose
// hash is that of another; those that begin where another one does in memory. Each stands once.
func TestPartyListsAreStoredAsDecoded(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	alike := d.Rows(`SELECT min(x), max(x) FROM (SELECT i::text AS x FROM generate_series(1, 200000) i) y
		GROUP BY hash_array(ARRAY[x]) HAVING count(*) > 1 LIMIT 1`)
	require.Len(t, alike, 1, "two lists with the same hash")
	pair := strings.Fields(alike[0])
	huge := manyParties(5_000)
	other := slices.Clone(huge)
	other[4_999] += "?"
	lists := [][]string{
		{"a", "b"}, {"b", "a"}, {"a", "b", "a"}, {}, nil, {""}, {"", ""}, {"NULL", "null"}, {`"\,{} '` + "\n\t"}, {"a,b"}, {`{a}`}, {"ä", "😀"}, {"ab", ""}, {"a", "b"},
		huge, other, {pair[0]}, {pair[1]}, huge[:2], huge[:1], huge[:0], huge[1:2], huge[:2],
	}
	u := storetest.NewUpdate(1, "sync::1")
	for i, list := range lists {
		c, e := storetest.Creation(int32(2*i), fmt.Sprint("c", i)), storetest.Exercise(int32(2*i+1), fmt.Sprint("c", i), true, nil)
		c.Signatories, c.Observers, c.WitnessParties = list, []string{}, list
		e.ActingParties, e.WitnessParties = list, nil
		u.Created, u.Exercised = append(u.Created, c), append(u.Exercised, e)
	}
	page := ledger.Page{To: 1, Updates: []ledger.Update{u}}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{page}))
	read := func(query string) (stored [][]string) {
		rows, err := d.Conn.Query(t.Context(), query)
		require.NoError(t, err)
		defer rows.Close()
		for rows.Next() {
			var list []string
			require.NoError(t, rows.Scan(&list))
			stored = append(stored, list)
		}
		require.NoError(t, rows.Err())
		return stored
	}
	for _, query := range []string{
		"SELECT signatories FROM ledger.created_events ORDER BY node_id", "SELECT witness_parties FROM ledger.created_events ORDER BY node_id",
		"SELECT acting_parties FROM ledger.exercised_events ORDER BY node_id", "SELECT signatories FROM indexer.creations ORDER BY node_id",
	} {
		require.Equal(t, lists, read(query), query)
	}
	for _, list := range read("SELECT observers FROM ledger.created_events") {
		require.Equal(t, []string{}, list)
	}
	for _, list := range read("SELECT witness_parties FROM ledger.archived_events UNION ALL SELECT witness_parties FROM ledger.exercised_events") {
		require.Nil(t, list)
	}
	require.Equal(t, "20 1 20", d.Row("SELECT count(*), min(party_list_ref), max(party_list_ref) FROM indexer.party_lists"))
	list, err := Audit.Stored(l.store).Compare(t.Context(), page)
	require.NoError(t, err)
	require.Empty(t, list)
}

// A list's text is that which PostgreSQL writes, and reads as the list.
func TestArrayTextIsPostgreSQLs(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	rapid.Check(t, func(rt *rapid.T) {
		parties := rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("aNULnul{},\"\\ \t\n\v\f\r"))))).Draw(rt, "parties")
		for i := range parties {
			parties[i] = strings.ReplaceAll(strings.ToValidUTF8(parties[i], ""), "\x00", "")
		}
		var same, read bool
		err := d.Conn.QueryRow(t.Context(), "SELECT $1::text[]::text = $2, $1::text[] = $2::text::text[]", parties, names.ArrayText(parties)).Scan(&same, &read)
		require.NoError(rt, err)
		require.True(rt, same && read, names.ArrayText(parties))
	})
}

// Whoever adds lists, and at whatever time: each gets one number, and everybody the same.
func TestPartyListsAreNumberedOnce(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.store()
	leaders := []*Leader{d.lead(s, LeaseUpdates), d.lead(s, LeasePruning), d.lead(d.store(), LeaseRepair)}
	var mu sync.Mutex
	all, numbers := names.NewReferences(), map[string]int32{}
	var group errgroup.Group
	for writer := range 6 {
		group.Go(func() error {
			for batch := range 20 {
				wanted := names.NewReferences()
				for i := range 30 {
					wanted.Parties([]string{fmt.Sprint("party-", batch*10+i), fmt.Sprint("other-", writer%2*i)})
				}
				err := leaders[writer%len(leaders)].term.Dictionary.Resolve(t.Context(), wanted)
				if err != nil {
					return err
				}
				mu.Lock()
				for _, list := range wanted.Lists {
					ref, parties := *list.Number, strings.Join(list.Parties, " ")
					if before, known := numbers[parties]; known && before != ref {
						err = fmt.Errorf("%s have the numbers %d and %d", parties, before, ref)
					}
					numbers[parties] = ref
					all.Parties(list.Parties)
				}
				mu.Unlock()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, fmt.Sprint(len(numbers), len(numbers)), d.Row("SELECT count(*), max(party_list_ref) FROM indexer.party_lists"))
	for _, l := range leaders {
		require.NoError(t, l.term.Resolve(t.Context(), all))
		for parties, number := range numbers {
			require.Equal(t, number, *all.Parties(strings.Split(parties, " ")))
		}
	}
}

// Nothing is remembered of lists that were not committed.
func TestListsAreRememberedWhenTheyAreCommitted(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	wanted := names.NewReferences()
	wanted.Parties([]string{"alice"})
	d.Exec("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''not now''; END'")
	d.Exec("CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON indexer.party_lists DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()")
	require.ErrorContains(t, l.term.Dictionary.Resolve(t.Context(), wanted), "not now")
	d.Exec("DROP TRIGGER refuse ON indexer.party_lists")
	d.Exec("INSERT INTO indexer.party_lists VALUES (7, '{alice}')")
	require.NoError(t, l.term.Dictionary.Resolve(t.Context(), wanted))
	require.EqualValues(t, 7, *wanted.Lists[0].Number)

	d.Exec("DELETE FROM indexer.party_lists") // it is not asked for again
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	*wanted.Lists[0].Number = 0
	require.NoError(t, l.term.Dictionary.Resolve(ctx, wanted))
	require.EqualValues(t, 7, *wanted.Lists[0].Number)
}

// Lists that have no number yet are looked for by their parties, not among all numbers, in a table that was never analyzed.
func TestPartyListsAreLookedUpByIndex(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.Exec(`INSERT INTO indexer.party_lists (party_list_ref, parties)
		SELECT i, ARRAY['alice::1220' || repeat('0', 64), 'party-' || i || '::1220' || repeat('0', 64)] FROM generate_series(1, 5000) i`)
	plan := d.plan(queryWith(t, "dictionaries.sql", "PartyListsFind", map[string]string{"places": "ARRAY[1]", "lists": "ARRAY['{b}']"}))
	require.Contains(t, plan, "party_lists_once")
	require.NotContains(t, plan, "_pkey")
}
