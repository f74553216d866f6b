package store

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// vettedOn is a vetting state with packages of which nothing but the id is known.
func vettedOn(synchronizer string, serial int32, packages ...string) ledger.VettedPackages {
	v := ledger.VettedPackages{ParticipantID: "participant::1", SynchronizerID: synchronizer, TopologySerial: serial}
	for _, id := range packages {
		v.Packages = append(v.Packages, ledger.VettedPackage{PackageID: id})
	}
	return v
}

func (d *testDB) vetted() []string {
	d.T.Helper()
	return d.Rows(`SELECT synchronizer_id, package_id, package_name, package_version, valid_from::text, valid_until::text, topology_serial
		FROM ledger.vetted_packages ORDER BY 1, 2`)
}

func (d *testDB) vettingChanges() []string {
	d.T.Helper()
	return d.Rows(`SELECT seq, synchronizer_id, package_id, change, topology_serial, valid_from_before::text, valid_until_before::text,
		valid_from::text, valid_until::text FROM ledger.vetting_changes ORDER BY 1, 2, 3`)
}

func TestVettedPackages(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	wrote := map[string]int{}
	l := d.leadUpdates(d.open(d.URL, func(c *Config) { c.Wrote = func(relation string, n int) { wrote[relation] += n } }))
	ctx := t.Context()
	require.NoError(t, l.Start(ctx, "participant::1", storetest.Scope, 0, true))
	save := func(list ...ledger.VettedPackages) int {
		t.Helper()
		changes, err := l.SaveVettedPackages(ctx, list)
		require.NoError(t, err)
		return changes
	}
	require.Zero(t, save())
	require.Empty(t, wrote)

	first := vettedOn("sync::1", 3, "p", "q")
	first.Packages[0] = ledger.VettedPackage{
		PackageID: "p", PackageName: "asset", PackageVersion: "1.0.0",
		ValidFrom: storetest.Time("2025-01-01T00:00:00.123456Z"), ValidUntil: storetest.Time("2026-01-01T00:00:00Z"),
	}
	require.Equal(t, 3, save(first, vettedOn("sync::2", 1, "p")))
	const from, until = "2025-01-01 00:00:00.123456+00", "2026-01-01 00:00:00+00"
	require.Equal(t, []string{
		"sync::1 p asset 1.0.0 " + from + " " + until + " 3", "sync::1 q   <nil> <nil> 3", "sync::2 p asset 1.0.0 <nil> <nil> 1",
	}, d.vetted())
	changes := []string{
		"1 sync::1 p vetted 3 <nil> <nil> " + from + " " + until, "1 sync::1 q vetted 3 <nil> <nil> <nil> <nil>",
		"1 sync::2 p vetted 1 <nil> <nil> <nil> <nil>",
	}
	require.Equal(t, changes, d.vettingChanges())
	require.Equal(t, map[string]int{"vetting_changes": 3}, wrote)

	// The same again, with another order, and with times that say the same in other words.
	again := first
	again.Packages = []ledger.VettedPackage{first.Packages[1], first.Packages[0]}
	again.Packages[1].ValidFrom = storetest.Time("2025-01-01T01:00:00.1234569+01:00")
	const versions = `SELECT v.xmin::text, v.ctid::text, s.xmin::text, p.xmin::text FROM indexer.vetted_packages v
		JOIN indexer.vetting_states s USING (synchronizer_ref) JOIN indexer.packages p USING (package_id) ORDER BY synchronizer_ref, package_id`
	before := d.Rows(versions)
	require.Zero(t, save(vettedOn("sync::2", 1, "p"), again))
	require.Equal(t, before, d.Rows(versions), "something was written")
	require.Equal(t, changes, d.vettingChanges())

	// Another serial alone is no change of a package, and a name that is told later neither. Names don't go with an upload
	// that is taken back.
	later := vettedOn("sync::1", 4, "p", "q")
	later.Packages[0].ValidFrom, later.Packages[0].ValidUntil = first.Packages[0].ValidFrom, first.Packages[0].ValidUntil
	later.Packages[1].PackageName = "bond"
	require.Zero(t, save(later, vettedOn("sync::2", 1, "p")))
	require.Equal(t, []string{
		"sync::1 p asset 1.0.0 " + from + " " + until + " 4", "sync::1 q bond  <nil> <nil> 4", "sync::2 p asset 1.0.0 <nil> <nil> 1",
	}, d.vetted())
	require.Equal(t, changes, d.vettingChanges())

	// Other bounds, one that is unvetted, one that is new, and a synchronizer that is not listed any more.
	last := vettedOn("sync::1", 5, "p", "r")
	last.Packages[0].ValidUntil = first.Packages[0].ValidUntil
	require.Equal(t, 4, save(last))
	require.Equal(t, []string{"sync::1 p asset 1.0.0 <nil> " + until + " 5", "sync::1 r   <nil> <nil> 5"}, d.vetted())
	changes = append(changes,
		"2 sync::1 p changed 5 "+from+" "+until+" <nil> "+until, "2 sync::1 q unvetted 5 <nil> <nil> <nil> <nil>",
		"2 sync::1 r vetted 5 <nil> <nil> <nil> <nil>", "2 sync::2 p unvetted <nil> <nil> <nil> <nil> <nil>")
	require.Equal(t, changes, d.vettingChanges())

	// Back again, whatever its serial, and listed with nothing.
	require.Equal(t, 2, save(vettedOn("sync::1", 6), vettedOn("sync::2", 1)))
	require.Empty(t, d.vetted())
	require.Equal(t, 1, save(vettedOn("sync::1", 6), vettedOn("sync::2", 2, "q")))
	require.Equal(t, []string{"sync::2 q bond  <nil> <nil> 2"}, d.vetted())
	require.Equal(t, 1, save())
	require.Equal(t, "0 0", d.Row("SELECT (SELECT count(*) FROM ledger.vetted_packages), (SELECT count(*) FROM indexer.vetting_states)"))
	require.Equal(t, "true true", d.Row("SELECT bool_and(seen_at <= now()), max(seen_at) FILTER (WHERE seq = 1) < max(seen_at) FROM ledger.vetting_changes"))
}

func TestVettedPackagesThatAreRefused(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	_, err := l.SaveVettedPackages(ctx, []ledger.VettedPackages{vettedOn("sync::1", 3, "p"), vettedOn("sync::2", 3, "p")})
	require.NoError(t, err)
	vetted, changes := d.vetted(), d.vettingChanges()

	of := func(participant string, v ledger.VettedPackages) ledger.VettedPackages {
		v.ParticipantID = participant
		return v
	}
	named := func(name, version string) ledger.VettedPackages {
		v := vettedOn("sync::1", 4, "p", "q")
		v.Packages[1].PackageName, v.Packages[1].PackageVersion = name, version
		return v
	}
	for _, test := range []struct {
		name string
		list []ledger.VettedPackages
		why  string
	}{
		{"a synchronizer twice", []ledger.VettedPackages{vettedOn("sync::1", 4), vettedOn("sync::2", 3), vettedOn("sync::1", 4)}, "synchronizer sync::1 twice"},
		{"a package twice", []ledger.VettedPackages{vettedOn("sync::1", 4, "p", "q", "p")}, "package p of synchronizer sync::1 twice"},
		{"older", []ledger.VettedPackages{vettedOn("sync::1", 4), vettedOn("sync::2", 2)}, "older than what is stored: on synchronizer sync::2 it has topology serial 2, and 3 was seen"},
		{"of two", []ledger.VettedPackages{vettedOn("sync::1", 4), of("participant::2", vettedOn("sync::2", 4))}, "several participants, participant::1 and participant::2"},
		{"of another", []ledger.VettedPackages{of("participant::2", vettedOn("sync::1", 4))}, "of participant participant::2, the database belongs to participant participant::1"},
		{"a NUL in an id", []ledger.VettedPackages{vettedOn("sync::1", 4, "p", "q\x00")}, `package "q\x00" of synchronizer sync::1: a text that PostgreSQL can't hold`},
		{"a NUL in a name", []ledger.VettedPackages{named("a\x00", "")}, `package "q" of synchronizer sync::1: a text that PostgreSQL can't hold: "a\x00"`},
		{"no UTF-8 in a version", []ledger.VettedPackages{named("", "\xff")}, `a text that PostgreSQL can't hold: "\xff"`},
		{"a NUL in a synchronizer", []ledger.VettedPackages{vettedOn("sync\x00", 4)}, "a synchronizer: a text"},
		{"an id that no index takes", []ledger.VettedPackages{vettedOn("sync::1", 4, randomID(100_000))}, "the database refuses the rows"},
	} {
		n, err := l.SaveVettedPackages(ctx, test.list)
		require.ErrorContains(t, err, test.why, test.name)
		require.Zero(t, n, test.name)
		require.Equal(t, vetted, d.vetted(), test.name)
		require.Equal(t, changes, d.vettingChanges(), test.name)
	}
}

// In whatever way the participant's state changes, what is stored is its last state, and the changes lead there.
func TestVettedPackagesFollowAnyState(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	synchronizers := []string{"sync::1", "sync::2", "sync::3"}
	times := []ledger.Time{{}, storetest.Time("2025-01-01T00:00:00Z"), storetest.Time("2025-06-01T00:00:00.000001Z")}
	texts := []string{"", "one", "two"}
	rapid.Check(t, func(rt *rapid.T) {
		d.Exec("TRUNCATE indexer.packages, indexer.vetting_states, indexer.vetted_packages, indexer.vetting_changes")
		serial, seen := int32(0), 0
		for range rapid.IntRange(1, 8).Draw(rt, "readings") {
			var list []ledger.VettedPackages
			for _, synchronizer := range synchronizers {
				if rapid.IntRange(0, 4).Draw(rt, "listed") == 0 {
					continue
				}
				serial++
				v := vettedOn(synchronizer, serial)
				for p := range 5 {
					if rapid.Bool().Draw(rt, "vetted") {
						v.Packages = append(v.Packages, ledger.VettedPackage{
							PackageID:   fmt.Sprint("p", p),
							PackageName: rapid.SampledFrom(texts).Draw(rt, "name"), PackageVersion: rapid.SampledFrom(texts).Draw(rt, "version"),
							ValidFrom: rapid.SampledFrom(times).Draw(rt, "from"), ValidUntil: rapid.SampledFrom(times).Draw(rt, "until"),
						})
					}
				}
				list = append(list, v)
			}
			changes, err := l.SaveVettedPackages(t.Context(), list)
			require.NoError(rt, err)
			again, err := l.SaveVettedPackages(t.Context(), list)
			require.NoError(rt, err)
			require.Zero(rt, again)

			want := []string{}
			for _, v := range list {
				for _, p := range v.Packages {
					want = append(want, fmt.Sprint(v.SynchronizerID, " ", p.PackageID, " ", p.ValidFrom.Valid, " ", p.ValidFrom.Time.Unix(), " ",
						p.ValidUntil.Valid, " ", p.ValidUntil.Time.Unix(), " ", v.TopologySerial))
				}
			}
			const columns = `synchronizer_id, package_id, valid_from IS NOT NULL, coalesce(extract(epoch FROM date_trunc('second', valid_from)), -62135596800)::bigint,
				valid_until IS NOT NULL, coalesce(extract(epoch FROM date_trunc('second', valid_until)), -62135596800)::bigint`
			stored := d.Rows("SELECT " + columns + ", topology_serial FROM ledger.vetted_packages")
			require.Equal(rt, storetest.Sorted(want), storetest.Sorted(stored))

			// The changes, applied one after the other, and the number of them.
			rows := d.Rows("SELECT change, " + columns + " FROM ledger.vetting_changes ORDER BY seq")
			require.Len(rt, rows, seen+changes)
			seen = len(rows)
			state := map[string]string{}
			for _, row := range rows {
				fields := strings.SplitN(row, " ", 4)
				key := fields[1] + " " + fields[2]
				_, known := state[key]
				require.Equal(rt, fields[0] != "vetted", known, row)
				if fields[0] == "unvetted" {
					delete(state, key)
					continue
				}
				require.NotEqual(rt, fields[3], state[key], row)
				state[key] = fields[3]
			}
			replayed := []string{}
			for key, bounds := range state {
				replayed = append(replayed, key+" "+bounds)
			}
			require.Equal(rt, storetest.Sorted(d.Rows("SELECT "+columns+" FROM ledger.vetted_packages")), storetest.Sorted(replayed))
		}
	})
}

// Thousands of packages are a matter of a moment, and several readings at once see each other's result.
func TestManyVettedPackages(t *testing.T) {
	t.Parallel()
	brief.Long(t, "writes very many rows")
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	const packages, readers = 20_000, 3
	v := vettedOn("sync::1", 1)
	for i := range packages {
		v.Packages = append(v.Packages, ledger.VettedPackage{PackageID: fmt.Sprint("package-", i), PackageName: "asset", PackageVersion: fmt.Sprint("1.0.", i)})
	}
	var group sync.WaitGroup
	changes, errs := make([]int, readers), make([]error, readers)
	for i := range readers {
		group.Go(func() { changes[i], errs[i] = l.SaveVettedPackages(ctx, []ledger.VettedPackages{v}) })
	}
	group.Wait()
	require.Equal(t, []error{nil, nil, nil}, errs)
	require.Equal(t, packages, changes[0]+changes[1]+changes[2])
	require.Equal(t, "1 20000", d.Row("SELECT max(seq), count(*) FROM ledger.vetting_changes"))
	n, err := l.SaveVettedPackages(ctx, []ledger.VettedPackages{vettedOn("sync::1", 2)})
	require.NoError(t, err)
	require.Equal(t, packages, n)
	require.Equal(t, "20000 0", d.Row("SELECT (SELECT count(*) FROM ledger.packages), (SELECT count(*) FROM ledger.vetted_packages)"))
}

// ledger.packages knows packages by what template ids say and by what was vetted.
func TestPackages(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	u := storetest.NewUpdate(1, "sync::1")
	for i, template := range [][2]string{{"p:A:B", "asset"}, {"p:A:C", "asset"}, {"q:A:B", "bond"}, {"r:A:B", ""}, {"s:A:B", ""}, {"s:A:C", "late"}, {"#asset:A:B", "asset"}} {
		c := storetest.Creation(int32(i), fmt.Sprint("contract-", i))
		c.TemplateID, c.PackageName = template[0], template[1]
		u.Created = append(u.Created, c)
	}
	require.NoError(t, l.Append(ctx, storetest.Scope, []ledger.Page{{From: 0, To: 1, Updates: []ledger.Update{u}}}))
	v := vettedOn("sync::1", 1, "q", "t", "p")
	v.Packages[2].PackageName, v.Packages[2].PackageVersion = "Asset", "2.0.0"
	_, err := l.SaveVettedPackages(ctx, []ledger.VettedPackages{v})
	require.NoError(t, err)
	_, err = l.SaveVettedPackages(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"p Asset 2.0.0", "q bond ", "r  <nil>", "s late <nil>", "t  "},
		d.Rows("SELECT package_id, package_name, package_version FROM ledger.packages ORDER BY 1"))
}
