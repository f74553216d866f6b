package store

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// packageOf is a package with this content, of one template.
func packageOf(content, version string, needs ...string) *ledger.Package {
	sum := sha256.Sum256([]byte(content))
	return &ledger.Package{
		ID: hex.EncodeToString(sum[:]), Content: []byte(content), Name: "asset", Version: version, Language: "2.1", Needs: needs,
		Definitions: []ledger.Definition{{
			Module: "M", Entity: "T", Key: true, Interfaces: []string{"i:M:I"},
			Choices: []ledger.Choice{{Name: "Go", Consuming: true, Argument: "Record M:Go", Result: "Unit"}},
			Fields: []ledger.Field{
				{Part: ledger.PartPayload, Path: "owner", Type: "Party"}, {Part: ledger.PartArgument, Choice: "Go", Path: "n", Type: "Int64"},
			},
		}},
	}
}

func TestPackagesAreStoredWithTheirTypes(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	wrote := map[string]int{}
	l := d.leadUpdates(d.open(d.URL, func(c *Config) { c.Wrote = func(relation string, n int) { wrote[relation] += n } }))
	ctx := t.Context()
	require.NoError(t, l.Start(ctx, "participant::1", storetest.Scope, 0, true))
	wanted := func(want ...string) {
		t.Helper()
		got, err := l.WantedPackages(ctx, 10)
		require.NoError(t, err)
		require.ElementsMatch(t, want, got)
	}
	wanted()

	// Versions are compared by number. A template of one of them is in the events, under an id and a representative one.
	nine, ten, base := packageOf("nine", "1.9.0"), packageOf("ten", "1.10.0"), packageOf("base", "1.0.0")
	ten.Definitions[0].Fields = append(ten.Definitions[0].Fields, ledger.Field{Part: ledger.PartPayload, Path: "memo", Type: "Optional of Text"})
	nine.Needs = []string{base.ID}
	d.Exec(`INSERT INTO indexer.templates (template_ref, template_id, package_id, package_name, module_name, entity_name, representative_package_id)
		VALUES (901, $1 || ':M:T', $1, 'asset', 'M', 'T', $2), (902, '#asset:M:T', '#asset', 'asset', 'M', 'T', NULL)`, nine.ID, ten.ID)
	wanted(nine.ID, ten.ID)
	require.NoError(t, l.MissPackage(ctx, ten.ID, "not \x00 there"))
	wanted(nine.ID)
	require.Equal(t, []string{"missing not ? there"}, d.Rows("SELECT types || ' ' || types_failure FROM ledger.packages WHERE package_id = $1", ten.ID))
	for _, hours := range []string{"02:00:00", "04:00:00", "08:00:00", "16:00:00", "1 day", "1 day"} {
		require.NoError(t, l.MissPackage(ctx, ten.ID, "no"))
		require.Equal(t, "true", d.Row("SELECT next_at BETWEEN now() + $1::text::interval - interval '1 minute' AND now() + $1::text::interval FROM indexer.package_tries", hours), hours)
	}
	wanted(nine.ID)
	d.Exec("UPDATE indexer.package_tries SET next_at = now() + interval '1 year'")
	wanted(nine.ID, ten.ID) // the clock was set back since
	d.Exec("UPDATE indexer.package_tries SET next_at = now()")
	wanted(nine.ID, ten.ID)

	require.NoError(t, l.SavePackage(ctx, nine))
	require.NoError(t, l.SavePackage(ctx, ten))
	require.Empty(t, d.Rows("SELECT package_id FROM indexer.package_tries"))
	wanted(base.ID)
	require.Equal(t, []string{"1.10.0 known", "1.9.0 incomplete"},
		d.Rows("SELECT package_version, types FROM ledger.packages WHERE package_name = 'asset' AND types IS NOT NULL ORDER BY 1"))
	completable, err := l.CompletablePackages(ctx)
	require.NoError(t, err)
	require.Empty(t, completable)
	require.NoError(t, l.SavePackage(ctx, base))
	completable, err = l.CompletablePackages(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{nine.ID}, completable)
	d.Exec("UPDATE indexer.package_contents SET content = 'damaged' WHERE package_id = $1", base.ID)
	completable, err = l.CompletablePackages(ctx)
	require.NoError(t, err)
	require.Empty(t, completable, "it would lack the same again and again")
	nine.Needs = nil
	require.NoError(t, l.SavePackage(ctx, nine))
	wanted()
	require.Equal(t, map[string]int{"packages": 4}, wrote)

	content, err := l.PackageContent(ctx, nine.ID)
	require.NoError(t, err)
	require.Equal(t, "nine", string(content))
	_, err = l.PackageContent(ctx, "gone")
	require.ErrorIs(t, err, ledger.ErrNotFound)
	require.Equal(t, []string{
		"memo Optional of Text 1.10.0 1.10.0 1 false", "owner Party 1.0.0 1.10.0 3 false",
	}, d.Rows("SELECT path, type, since_version, last_version, packages, type_differs FROM ledger.fields WHERE part = 'payload' ORDER BY path"))
	require.Equal(t, []string{nine.ID + ":M:T true {i:M:I}"}, d.Rows("SELECT template_id, has_key, interfaces::text FROM ledger.templates WHERE package_id = $1", nine.ID))
	require.Equal(t, []string{nine.ID + ":M:T Go true Record M:Go Unit"},
		d.Rows("SELECT of_id, choice, consuming, argument_type, result_type FROM ledger.choices WHERE package_id = $1", nine.ID))

	list, err := d.store().Packages(ctx)
	require.NoError(t, err)
	require.Len(t, list, 3)
	broken := packageOf("broken", "")
	broken.Definitions, broken.Failure, broken.Name, broken.Language = nil, "cut \x00 off", "", ""
	require.NoError(t, l.SavePackage(ctx, broken))
	require.Equal(t, []string{"unreadable cut ? off"}, d.Rows("SELECT types || ' ' || types_failure FROM ledger.packages WHERE package_id = $1", broken.ID))
}

// A package whose types are about to be written again, because one that it lacked has come, is not taken for a damaged
// one.
func TestPackagesThatAreToBeCompletedAreNotCompared(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	base := packageOf("base", "1.0.0")
	partly, whole := packageOf("user", "1.0.0", base.ID), packageOf("user", "1.0.0")
	partly.Definitions[0].Fields = partly.Definitions[0].Fields[:1]
	compare := func() []Difference {
		t.Helper()
		list, err := Audit.Stored(l.store).ComparePackage(ctx, whole)
		require.NoError(t, err)
		return list
	}
	require.NoError(t, l.SavePackage(ctx, partly))
	require.NoError(t, l.SavePackage(ctx, base))
	require.Empty(t, compare())
	require.NoError(t, l.SavePackage(ctx, whole))
	require.Empty(t, compare())
	d.Exec("DELETE FROM indexer.package_fields WHERE package_id = $1", whole.ID)
	require.Len(t, compare(), 1)
}
