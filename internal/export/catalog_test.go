package export

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
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
