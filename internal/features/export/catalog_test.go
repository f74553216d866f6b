package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// writeRange writes the manifest of a range, with one file.
func writeRange(t *testing.T, place Place, from, to ledger.Offset, content string) Manifest {
	t.Helper()
	sum := sha256.Sum256([]byte(content))
	m := Manifest{Format: format, From: from, To: to, Files: []File{{
		Relation: "updates", Name: fileName("updates", from, to, "first"), Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
	}}}
	manifest, err := json.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, place.Write(t.Context(), m.Files[0].Name, text(content)))
	require.NoError(t, place.Write(t.Context(), m.Name(), text(string(manifest))))
	return m
}

// Whoever reads manifests refuses two of which one has a part of the other, and names both.
func TestManifestsThatOverlap(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ends    []ledger.Offset // of the ranges, one after the other
		refused string
	}{
		"one behind the other":        {[]ledger.Offset{0, 10, 10, 20}, ""},
		"with a gap":                  {[]ledger.Offset{0, 10, 15, 20}, ""},
		"by a part":                   {[]ledger.Offset{0, 10, 5, 20}, rangeName(5, 20) + ".json overlaps with manifests/" + rangeName(0, 10) + ".json in "},
		"one that begins as another":  {[]ledger.Offset{0, 10, 0, 5}, rangeName(0, 10) + ".json overlaps with manifests/" + rangeName(0, 5) + ".json in "},
		"one that lies in another":    {[]ledger.Offset{0, 30, 10, 20}, rangeName(10, 20) + ".json overlaps with manifests/" + rangeName(0, 30) + ".json in "},
		"one that has all the others": {[]ledger.Offset{10, 20, 0, 30}, rangeName(10, 20) + ".json overlaps with manifests/" + rangeName(0, 30) + ".json in "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place, err := Open(t.TempDir(), true)
			require.NoError(t, err)
			for n := 0; n < len(c.ends); n += 2 {
				writeRange(t, place, c.ends[n], c.ends[n+1], "")
			}
			err = (&catalog{place: place}).load(t.Context())
			if c.refused == "" {
				require.NoError(t, err)
				return
			}
			requireProblem(t, err, c.refused)
		})
	}
}

// listed is a place whose list is another one than what is there.
type listed struct {
	Place
	list func(found map[string]int64)
}

func (l listed) List(ctx context.Context) (map[string]int64, error) {
	found, err := l.Place.List(ctx)
	l.list(found)
	return found, err
}

// The list of an object store may be that of before: what it lacks, or has no more, is asked for.
func TestAListThatComesLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		list func(found map[string]int64, m *Manifest)
		left bool // the file is left over
	}{
		"of now":                       {func(map[string]int64, *Manifest) {}, false},
		"without a manifest":           {func(found map[string]int64, m *Manifest) { delete(found, m.Name()) }, false},
		"without a file":               {func(found map[string]int64, m *Manifest) { delete(found, m.Files[0].Name) }, false},
		"with a manifest that is gone": {func(found map[string]int64, _ *Manifest) { found[manifestName(20, 30)] = 100 }, false},
		"with a file that is left":     {func(found map[string]int64, _ *Manifest) { found[fileName("updates", 20, 30, "first")] = 100 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place, err := Open(t.TempDir(), true)
			require.NoError(t, err)
			first, second := writeRange(t, place, 0, 10, "some"), writeRange(t, place, 10, 20, "more")
			read := catalog{place: listed{place, func(found map[string]int64) { c.list(found, &second) }}}
			require.NoError(t, read.load(t.Context()))
			require.Len(t, read.done, 2)
			require.Equal(t, []string{first.Name(), second.Name()}, []string{read.done[0].Name(), read.done[1].Name()})
			require.Equal(t, c.left, len(read.left) > 0, read.left)
		})
	}
}

// A file that no manifest names may be all that there is of what was pruned, but not of what was filled in again since.
func TestFilesOfWhatWasPruned(t *testing.T) {
	t.Parallel()
	place, err := Open(t.TempDir(), true)
	require.NoError(t, err)
	whole := writeRange(t, place, 0, 100, "damaged").Files[0].Name
	gone := fileName("updates", 20, 100, "first")
	for _, c := range []struct {
		name     string
		prunedTo ledger.Offset
		pruned   bool
	}{
		{whole, 0, false},
		{whole, 60, true},
		{whole, 100, true},
		{gone, 20, false},
		{gone, 60, true},
		{gone, 100, false},
	} {
		state := store.ExportState{Extent: store.Extent{PrunedTo: c.prunedTo, HistoryFloor: c.prunedTo}}
		pruned, err := (&Export{catalog: catalog{place: place}}).ofPruned(t.Context(), c.name, 7, state)
		require.NoError(t, err, "%+v", c)
		require.Equal(t, c.pruned, pruned, "%+v", c)
	}

	// A file beside those that the manifest of the range names, which was to be added or was replaced.
	state := store.ExportState{Extent: store.Extent{PrunedTo: 60, HistoryFloor: 60}}
	pruned, err := (&Export{catalog: catalog{place: place, done: []Manifest{{From: 20, To: 100}}}}).ofPruned(t.Context(), gone, 7, state)
	require.NoError(t, err)
	require.False(t, pruned)
}

// Whoever reads a range while an export writes it again is told so, and not that it is damaged.
func TestARangeThatIsWrittenAgainWhileItIsRead(t *testing.T) {
	t.Parallel()
	place, err := Open(t.TempDir(), true)
	require.NoError(t, err)
	before := writeRange(t, place, 0, 10, "some")
	read := func() error {
		return (&catalog{place: place}).check(t.Context(), &before, before.Files[0])
	}
	for what, content := range map[string]string{"another SHA-256": "like", "has 6 bytes instead of 4": "longer", "has 3 bytes instead of 4": "cut"} {
		require.NoError(t, place.Write(t.Context(), before.Files[0].Name, text(content)))
		requireProblem(t, read(), "is damaged: it")
		requireProblem(t, read(), what)
	}
	writeRange(t, place, 0, 10, "like")
	requireProblem(t, read(), "was written again while "+before.Files[0].Name+" was read")
	require.NoError(t, place.Remove(t.Context(), before.Name()))
	requireProblem(t, read(), "was written again")
}

// unread is a place where manifests can't be read for now.
type unread struct{ Place }

var errBusy = errors.New("busy")

func (u unread) Read(ctx context.Context, name string, to io.Writer) error {
	if strings.HasPrefix(name, manifests+"/") {
		return errBusy
	}
	return u.Place.Read(ctx, name, to)
}

// Whether a file is damaged, or was written again, is not known before its manifest was read again: nobody is told to
// remove it.
func TestAManifestThatCannotBeReadAgain(t *testing.T) {
	t.Parallel()
	place, err := Open(t.TempDir(), true)
	require.NoError(t, err)
	m := writeRange(t, place, 0, 10, "some")
	require.NoError(t, place.Write(t.Context(), m.Files[0].Name, text("like")))
	err = (&catalog{place: unread{place}}).check(t.Context(), &m, m.Files[0])
	require.ErrorIs(t, err, errBusy)
	require.NotContains(t, err.Error(), "is damaged")
}
