package recorded

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	_ "ledgerindexer/internal/tools/hermetic"
)

// What is in the repository is what was recorded, whole. WRITE_RECORDED=1 makes it again of the recording beside the
// project.
func TestCopyIsTheRecording(t *testing.T) {
	whole := Beside(t, "recorded/participant-"+Release)
	recording, err := os.ReadFile(filepath.Join(whole, "exchanges.jsonl"))
	require.NoError(t, err)
	if os.Getenv("WRITE_RECORDED") != "" {
		best, window := zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(16<<20)
		w, err := zstd.NewWriter(nil, best, window)
		require.NoError(t, err)
		file := filepath.FromSlash(folder + "/exchanges.jsonl.zst")
		require.NoError(t, os.WriteFile(file, w.EncodeAll(recording, nil), 0o644))
		require.NoError(t, os.RemoveAll(filepath.FromSlash(folder+"/packages")))
		require.NoError(t, os.CopyFS(filepath.FromSlash(folder+"/packages"), os.DirFS(filepath.Join(whole, "packages"))))
		t.Skip("written: run it again, to compare")
	}
	lines := strings.Split(strings.TrimSuffix(string(recording), "\n"), "\n")
	all := Exchanges(t)
	require.Len(t, all, len(lines))
	for i, line := range lines {
		var e Exchange
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		require.True(t, e == all[i], "exchange %d, %s %s", i, e.Method, e.Path)
	}
	packages, err := filepath.Glob(filepath.Join(whole, "packages", "*"))
	require.NoError(t, err)
	require.Len(t, Packages(t), len(packages))
	for _, file := range packages {
		recorded, err := os.ReadFile(file)
		require.NoError(t, err)
		copied, err := testdata.ReadFile(path.Join(folder, "packages", filepath.Base(file)))
		require.NoError(t, err)
		require.Equal(t, recorded, copied, file)
	}
}

// The recording is small enough for a repository.
func TestCopyIsSmall(t *testing.T) {
	size := int64(0)
	require.NoError(t, fs.WalkDir(testdata, ".", func(_ string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		size += info.Size()
		return nil
	}))
	require.Less(t, size, int64(300_000))
}

func TestExchangesAreRead(t *testing.T) {
	for i, e := range Exchanges(t) {
		require.NotEmpty(t, e.Method, "exchange %d", i)
		require.NotEmpty(t, e.Path, "exchange %d", i)
		require.NotZero(t, e.Status, "exchange %d", i)
		require.Equal(t, e.Type == "application/json", json.Valid([]byte(e.Answer)), "exchange %d: %s", i, e.Path)
	}
}
