package app

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/internal/brief"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/export"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// notImported are the relations that an import leaves to the daemon, or that say what a database went through.
var notImported = names("looked_up_contracts vetted_packages vetting_changes packages rewrites stream_checkpoints template_numbers")

// everythingShown are the rows of a database that an import has to make again: of every relation of the analysts, of what is exported
// beside them, and of what says how far they are complete.
func everythingShown(t *testing.T, database string) map[string][]string {
	t.Helper()
	return everythingIn(t, database, store.Schemas{Tables: "indexer", Views: "ledger"})
}

func everythingIn(t *testing.T, database string, schemas store.Schemas) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	for _, view := range texts(t, database, "SELECT relname::text FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relkind = 'v'", schemas.Views) {
		if !slices.Contains(notImported, view) {
			rows[view] = texts(t, database, "SELECT (to_jsonb(r) - '{template_number,number}'::text[])::text FROM "+schemas.Views+"."+view+" r")
		}
	}
	rows["floors"] = texts(t, database, "SELECT (to_jsonb(r) - 'digest'::text)::text FROM "+schemas.Tables+".floors r")
	rows["snapshots"] = texts(t, database, "SELECT jsonb_build_array(s.snapshot_offset, s.scope, s.pruned, s.mixed)::text FROM "+schemas.Tables+".snapshots s")
	rows["package_contents"] = texts(t, database, "SELECT (to_jsonb(r) - 'stored_at'::text)::text FROM "+schemas.Tables+".package_contents r")
	db, err := store.Open(store.Config{URL: database, Schemas: schemas})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.Export(t.Context(), func(e *store.ExportSnapshot) error {
		relations, err := e.Beside(t.Context())
		for _, r := range relations {
			err = e.Rows(t.Context(), r, -1, 1<<62, func(values [][]byte) error {
				rows[r.Name] = append(rows[r.Name], fmt.Sprintf("%q", values))
				return nil
			})
			require.NoError(t, err)
		}
		return err
	}))
	for _, list := range rows {
		slices.Sort(list)
	}
	return rows
}

// requireAlike compares two databases, row by row.
func requireAlike(t *testing.T, want, got map[string][]string) {
	t.Helper()
	for relation, rows := range want {
		if slices.Equal(rows, got[relation]) {
			continue
		}
		onlyIn := func(list, other []string) string {
			return strings.Join(slices.DeleteFunc(slices.Clone(list), func(row string) bool { return slices.Contains(other, row) }), "\n")
		}
		t.Errorf("%s: %d rows and %d; only in the one:\n%s\nonly in the other:\n%s", relation, len(rows), len(got[relation]), onlyIn(rows, got[relation]), onlyIn(got[relation], rows))
	}
}

// imported imports a folder into a database.
func imported(t *testing.T, database, folder string) (Imported, error) {
	t.Helper()
	return RunImport(t.Context(), Import{Database: config.Database{DatabaseURL: database}, From: folder}, testLogger(t))
}

// An import makes the database that was exported, also of what no participant has sent yet: every relation has the same rows, and every seal
// holds. The indexer goes on.
func TestAnImportMakesTheSameDatabase(t *testing.T) {
	t.Parallel()
	scope := everything("ledger-effects")
	for name, c := range map[string]struct {
		prepare func(t *testing.T, s *sealed)
		never   []string // what the database has none of
	}{
		"from the beginning": {func(_ *testing.T, s *sealed) {
			s.Grow(120)
			s.index()
		}, []string{"snapshot_entries", "snapshots"}},
		"from a snapshot": {func(t *testing.T, s *sealed) {
			_, err := RunBackfill(t.Context(), backfillFor(s.database, s.cfg.LedgerURL, scope, s.End()), testLogger(t), nil)
			require.NoError(t, err)
			require.Positive(t, count(t, s.database, "indexer.carried_unknown_elements"))
			s.Grow(60)
			s.index()
		}, nil},
		"pruned": {func(t *testing.T, s *sealed) {
			s.Grow(120)
			s.index()
			prune(t, s.database, s.End()-150)
			require.Positive(t, count(t, s.database, "ledger.reassignments WHERE update_id IS NULL"))
		}, nil},
		"redacted": {func(t *testing.T, s *sealed) {
			s.Grow(60)
			s.index()
			contract := texts(t, s.database, "SELECT contract_id FROM ledger.contract_lifetimes WHERE active_until IS NOT NULL LIMIT 1")[0]
			_, err := RunRedact(t.Context(), s.cfg.Database, audit.Redaction{ContractID: contract}, "a test", true, testLogger(t))
			require.NoError(t, err)
			require.Positive(t, count(t, s.database, "ledger.redactions"))
		}, []string{"snapshot_entries", "snapshots"}},
		"without a snapshot": {func(_ *testing.T, s *sealed) {
			s.cfg.Start = fmt.Sprint(s.End())
			s.Grow(60)
			s.index()
		}, []string{"snapshot_entries", "snapshots"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			s := &sealed{Ledger: growInFlight(sandbox.Options{Seed: 5}), t: t, database: throwaway.Migrated(t, migrate)} // of its own: it grows
			url := serve(t, s.Ledger, sandbox.ServerOptions{Version: "3.6", ExtraEntries: true, Rewrite: new(served).rewrite(strange)})
			s.cfg = indexerFor(s.database, url, scope)
			s.cfg.PackagesInterval = often
			c.prepare(t, s)
			s.sealUntil(allSealed + " AND EXISTS (SELECT FROM indexer.package_contents) AND NOT EXISTS (SELECT FROM ledger.packages WHERE types IN ('incomplete', 'missing'))")
			folder := t.TempDir()
			_, err := exported(t, Export{Database: s.cfg.Database, To: folder})
			require.NoError(t, err)

			other := throwaway.Database(t)
			done, err := imported(t, other, folder)
			require.NoError(t, err)
			require.EqualValues(t, watermarkOf(t, s.database), done.Watermark)
			want := everythingShown(t, s.database)
			require.Len(t, want["verifications"], done.Seals)
			require.Len(t, want["package_contents"], done.Packages)
			for _, relation := range names("snapshot_entries snapshots exact_payloads unknown_elements offset_checkpoints verifications package_contents interface_views") {
				require.Equal(t, slices.Contains(c.never, relation), len(want[relation]) == 0, relation)
			}
			requireAlike(t, want, everythingShown(t, other))
			again, err := imported(t, other, folder)
			require.NoError(t, err)
			require.Zero(t, again.Updates, "nothing is left to do")

			s.Grow(40)
			for _, of := range []string{s.database, other} {
				cfg := s.cfg
				cfg.Start, cfg.DatabaseURL, cfg.VerifyRate = "genesis", of, 0
				require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
			}
			requireAlike(t, everythingShown(t, s.database), everythingShown(t, other))
			result, err := RunVerify(t.Context(), Verify{Database: config.Database{DatabaseURL: other}, Verify: config.Verify{Offline: true}}, testLogger(t),
				func(d findings.Difference) { t.Error(d) })
			require.NoError(t, err)
			require.Zero(t, result.Differences)
		})
	}
}

// Killed at any point and started again, an import makes the database of one that was not, and nothing of it differs from the ledger.
func TestAnImportIsKilledAtAnyPoint(t *testing.T) {
	t.Parallel()
	brief.Long(t, "kills a program again and again until it gets through")
	l := sandbox.NewLedger(sandbox.Options{Seed: 31, ActiveShare: 0.5})
	l.Grow(800)
	at, url, scope := quietOffset(t, l), serve(t, l, sandbox.ServerOptions{}), everything("ledger-effects")
	for name, begin := range map[string]func(t *testing.T, database string){
		"from the beginning": func(*testing.T, string) {},
		"from a snapshot": func(t *testing.T, database string) {
			_, err := RunBackfill(t.Context(), backfillFor(database, url, scope, at), testLogger(t), nil)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			s := &sealed{Ledger: l, t: t, database: throwaway.Migrated(t, migrate)}
			s.cfg = indexerFor(s.database, url, scope)
			begin(t, s.database)
			s.index()
			s.sealUntil(allSealed)
			folder, other := t.TempDir(), throwaway.Migrated(t, migrate)
			_, err := exported(t, Export{Database: s.cfg.Database, To: folder, Options: export.Options{Updates: 100}})
			require.NoError(t, err)
			kills := killUntilDone(t, rand.New(rand.NewPCG(71, 0)), []string{"INDEXER_DATABASE_URL=" + other}, build(t, "indexer"), "import", folder)
			require.Positive(t, kills)
			requireAlike(t, everythingShown(t, s.database), everythingShown(t, other))
			requireVerified(t, other, url)
		})
	}
}

// What doesn't fit, or is damaged, is refused with the file and the reason, and stores nothing.
func TestImportsThatAreRefused(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	database, folder, cfg, index := smallExport(t, 72)
	wrote, err := exported(t, cfg)
	require.NoError(t, err)
	require.Greater(t, len(wrote), 2)
	refused := func(database string, parts ...string) {
		t.Helper()
		stored := everythingShown(t, database)
		_, err := imported(t, database, folder)
		var problem *ledger.Problem
		require.ErrorAs(t, err, &problem)
		require.NotEmpty(t, problem.Do)
		for _, part := range parts {
			require.Contains(t, problem.What, part)
		}
		requireAlike(t, stored, everythingShown(t, database))
	}
	empty := throwaway.Migrated(t, migrate)
	m := wrote[1]
	first, manifest, file := filepath.Join(folder, wrote[0].Files[1].Name), filepath.Join(folder, m.Name()), filepath.Join(folder, m.Files[1].Name)
	whole, err := os.ReadFile(first)
	require.NoError(t, err)
	restore := func(name string, content []byte) { require.NoError(t, os.WriteFile(name, content, 0o600)) }

	require.NoError(t, os.Remove(first))
	refused(empty, wrote[0].Files[1].Name, "is missing")
	restore(first, whole[:len(whole)-1])
	refused(empty, wrote[0].Files[1].Name, fmt.Sprintf("has %d bytes instead of %d", len(whole)-1, len(whole)))
	restore(first, whole)

	text, err := os.ReadFile(manifest)
	require.NoError(t, err)
	rewrite := func(change func(m map[string]any)) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal(text, &fields))
		change(fields)
		changed, err := json.Marshal(fields)
		require.NoError(t, err)
		restore(manifest, changed)
	}
	require.NoError(t, os.Remove(manifest))
	refused(empty, fmt.Sprintf("after offset %d up to %d", m.From, m.To))
	restore(manifest, text[:len(text)/2])
	refused(empty, m.Name(), "is damaged")
	rewrite(func(m map[string]any) { m["format"] = 99 })
	refused(empty, m.Name(), "has format 99")
	rewrite(func(m map[string]any) { m["schema_version"] = 9999 })
	refused(empty, m.Name(), "schema version 9999")
	rewrite(func(m map[string]any) { m["narrowed"] = true })
	refused(empty, m.Name(), "of an earlier scope")
	rewrite(func(m map[string]any) { m["participant"] = "another::1220" })
	refused(empty, m.Name(), "another::1220")
	restore(manifest, text)

	// A file further on: what comes before is imported.
	whole, err = os.ReadFile(file)
	require.NoError(t, err)
	changed := slices.Clone(whole)
	changed[len(changed)/2] ^= 1
	restore(file, changed)
	_, err = imported(t, empty, folder)
	require.ErrorContains(t, err, m.Files[1].Name+" of the export is damaged: it has another SHA-256 than its manifest says")
	require.EqualValues(t, m.From, watermarkOf(t, empty))
	restore(file, whole)
	rename := func(id string) (before string) {
		return texts(t, empty, `WITH last AS (SELECT u.ledger_offset, u.update_id FROM indexer.updates u ORDER BY u.ledger_offset DESC LIMIT 1)
			UPDATE indexer.updates u SET update_id = $1 FROM last WHERE u.ledger_offset = last.ledger_offset RETURNING last.update_id`, id)[0]
	}
	last := rename("another")
	refused(empty, "another at offset", "is not in the export")
	rename(last)
	_, err = imported(t, empty, folder)
	require.NoError(t, err)
	requireAlike(t, everythingShown(t, database), everythingShown(t, empty))

	folder = t.TempDir()
	_, err = imported(t, empty, folder)
	require.ErrorContains(t, err, "there is no manifest in "+folder)
	folder = cfg.To

	// Databases that hold something else, or more, or are written.
	other := sandbox.NewLedger(sandbox.Options{Seed: 73})
	other.Grow(30)
	foreign := throwaway.Migrated(t, migrate)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(foreign, serve(t, other, sandbox.ServerOptions{}), everything("ledger-effects")), testLogger(t)))
	refused(foreign, "another ledger or scope")
	index() // what smallExport grew
	refused(database, "the export only up to")
	db, err := store.Open(store.Config{URL: empty, Holder: "another import"})
	require.NoError(t, err)
	defer db.Close()
	writer, ok, err := db.LeadUpdates(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	refused(empty, "another process writes this database: another import")
	writer.Close()
}

// counted is a place that counts how often a file is opened.
type counted struct {
	export.Place
	opened map[string]int
}

func (c counted) Open(ctx context.Context, name string) (export.Content, error) {
	c.opened[name]++
	return c.Place.Open(ctx, name)
}

// A file is read and compared with its digest once, however often an import begins to read its range: for the snapshot, for the last update that is stored, and
// for the updates, in one term and in the next.
func TestAnImportComparesAFileOnce(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := growInFlight(sandbox.Options{Seed: 76})
	database, url, scope := throwaway.Migrated(t, migrate), serve(t, l, sandbox.ServerOptions{ExtraEntries: true}), everything("ledger-effects")
	_, err := RunBackfill(t.Context(), backfillFor(database, url, scope, l.End()), testLogger(t), nil)
	require.NoError(t, err)
	l.Grow(60)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, url, scope), testLogger(t)))
	folder := t.TempDir()
	wrote, err := exported(t, Export{Database: config.Database{DatabaseURL: database}, To: folder})
	require.NoError(t, err)
	require.Greater(t, len(wrote), 2)

	place, err := export.Open(folder, false)
	require.NoError(t, err)
	c := counted{place, map[string]int{}}
	source, err := export.BeginImport(t.Context(), c, false)
	require.NoError(t, err)
	defer source.Close()
	floor, _ := source.Floor()
	entries := 0
	for range 2 {
		page, err := source.ReadSnapshot(t.Context(), floor, ledger.Token{})
		require.NoError(t, err)
		require.True(t, page.Last)
		entries += len(page.Entries)
	}
	require.Positive(t, entries)
	_, _, err = source.UpdateID(t.Context(), wrote[1].To)
	require.NoError(t, err)
	for range 2 {
		for page, err := range source.Pages(t.Context(), ledger.Range{From: floor, To: wrote[1].To}) {
			require.NoError(t, err)
			require.NotEmpty(t, page.Updates)
			break
		}
	}
	for name, times := range c.opened {
		require.Equal(t, 1, times, name)
	}
	require.Contains(t, c.opened, wrote[0].Files[1].Name)
	require.Contains(t, c.opened, wrote[1].Files[1].Name)
}

// The entries of a snapshot that was exported again may have others before them: an import that has stored a part of them does not go on by their number.
func TestASnapshotThatIsExportedAgain(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := growInFlight(sandbox.Options{Seed: 77})
	database, url, scope := throwaway.Migrated(t, migrate), serve(t, l, sandbox.ServerOptions{}), everything("ledger-effects")
	_, err := RunBackfill(t.Context(), backfillFor(database, url, scope, l.End()), testLogger(t), nil)
	require.NoError(t, err)
	l.Grow(60)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, url, scope), testLogger(t)))
	cfg := Export{Database: config.Database{DatabaseURL: database}, To: t.TempDir()}
	wrote, err := exported(t, cfg)
	require.NoError(t, err)
	place, err := export.Open(cfg.To, false)
	require.NoError(t, err)
	rest := func(token ledger.Token) (int, error) {
		source, err := export.BeginImport(t.Context(), place, false)
		require.NoError(t, err)
		defer source.Close()
		page, err := source.ReadSnapshot(t.Context(), wrote[0].CompleteFrom, token)
		return len(page.Entries), err
	}
	all, err := rest(ledger.Token{})
	require.NoError(t, err)
	after := ledger.Token{Kind: ledger.TokenExport, Value: "2 " + fileOf(t, wrote[0], "snapshot_entries").Name}
	left, err := rest(after)
	require.NoError(t, err)
	require.Equal(t, all-2, left)
	repairLifetimes(t, cfg)
	_, err = exported(t, cfg)
	require.NoError(t, err)
	_, err = rest(after)
	requireProblem(t, err, "were exported again after a part of them had been imported", "a new database")
}

// History that was filled in below a snapshot can't be imported before it is complete: what was active there is not known.
func TestAnImportOfFilledHistory(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 74, ActiveShare: 0.5})
	l.Grow(200)
	url, scope, database := serve(t, l, sandbox.ServerOptions{}), everything("ledger-effects"), throwaway.Migrated(t, migrate)
	at := quietOffset(t, l)
	_, err := RunBackfill(t.Context(), backfillFor(database, url, scope, at), testLogger(t), nil)
	require.NoError(t, err)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, url, scope), testLogger(t)))
	fill := func(from, to int64) {
		cfg := Fill{Database: config.Database{DatabaseURL: database}, Ledger: config.Ledger{LedgerURL: url}, Scope: scope}
		cfg.From, cfg.To = &from, &to
		_, err := RunFill(t.Context(), cfg, testLogger(t))
		require.NoError(t, err)
	}
	refused := func(what string) {
		folder := t.TempDir()
		_, err := exported(t, Export{Database: config.Database{DatabaseURL: database}, To: folder})
		require.NoError(t, err)
		_, err = imported(t, throwaway.Migrated(t, migrate), folder)
		var problem *ledger.Problem
		require.ErrorAs(t, err, &problem)
		require.Contains(t, problem.What, what)
	}
	fill(at-60, at-30)
	refused("a part of the history below offset")
	fill(at-60, at)
	refused("below the snapshot at offset")
	fill(0, at)
	folder, other := t.TempDir(), throwaway.Migrated(t, migrate)
	_, err = exported(t, Export{Database: config.Database{DatabaseURL: database}, To: folder})
	require.NoError(t, err)
	_, err = imported(t, other, folder)
	require.NoError(t, err)
	require.Empty(t, sandbox.Diff(relations(t, database), relations(t, other)))
	requireFloors(t, other, 0, 0)
	requireVerified(t, other, url)
}

// What was redacted since an export does not come into a database that is begun from it, and is noticed where it may be there already.
func TestWhatIsRedactedIsNotImported(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	s := &sealed{Ledger: sandbox.NewLedger(sandbox.Options{Seed: 75, ActiveShare: 0.4}), t: t, database: throwaway.Migrated(t, migrate)}
	s.Ledger.Grow(150)
	s.cfg = indexerFor(s.database, serve(t, s.Ledger, sandbox.ServerOptions{}), everything("ledger-effects"))
	s.index()
	s.sealUntil(allSealed)
	cfg := Export{Database: s.cfg.Database, To: t.TempDir(), Options: export.Options{Updates: 40}}
	wrote, err := exported(t, cfg)
	require.NoError(t, err)
	before := throwaway.Migrated(t, migrate)
	_, err = imported(t, before, cfg.To)
	require.NoError(t, err)

	contract := texts(t, s.database, `SELECT contract_id FROM ledger.created_events c JOIN ledger.exercised_events e USING (contract_id)
		WHERE c.ledger_offset <= $1 AND e.ledger_offset > $1 AND e.consuming ORDER BY 1 LIMIT 1`, int64(wrote[0].To))[0]
	content := func(database string) int {
		return len(texts(t, database, `SELECT contract_id FROM ledger.created_events WHERE contract_id = $1 AND payload IS NOT NULL
			UNION ALL SELECT contract_id FROM ledger.exercised_events WHERE contract_id = $1 AND choice_argument IS NOT NULL`, contract))
	}
	require.Equal(t, 2, content(before))
	what := audit.Redaction{ContractID: contract}
	_, err = RunRedact(t.Context(), s.cfg.Database, what, "a test", true, testLogger(t))
	require.NoError(t, err)
	first := cfg
	first.Options.Through = wrote[0].To
	_, err = exported(t, first)
	require.NoError(t, err)
	halfway := throwaway.Migrated(t, migrate)
	_, err = imported(t, halfway, cfg.To)
	if err != nil { // where a window lies in ranges that were not written again only
		require.ErrorContains(t, err, "does not have the digest with which it was sealed")
	}
	require.Zero(t, content(halfway))

	_, err = imported(t, before, cfg.To)
	requireProblem(t, err, contract+" was redacted in the database of the export", "--contract "+contract)
	_, err = RunRedact(t.Context(), config.Database{DatabaseURL: before}, what, "a test", true, testLogger(t))
	require.NoError(t, err)
	_, err = exported(t, cfg)
	require.NoError(t, err)
	for _, database := range []string{before, halfway, throwaway.Migrated(t, migrate)} {
		_, err = imported(t, database, cfg.To)
		require.NoError(t, err)
		require.Zero(t, content(database))
		rows := everythingShown(t, database)
		delete(rows, "redactions") // when, by whom
		delete(rows, "verifications")
		requireAlike(t, rows, everythingShown(t, s.database))
	}
}
