package export

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
)

// Others than a group can't read what is exported, unless they are let.
func TestExportsAreNotForEverybody(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "new", "export")
	f, err := openFolder(name, true)
	require.NoError(t, err)
	require.NoError(t, f.Write(t.Context(), "updates/metadata/1.parquet", text("some")))
	seen := 0
	require.NoError(t, filepath.WalkDir(filepath.Dir(name), func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o027, "%s: %v", path, info.Mode())
		seen++
		return nil
	}))
	require.Equal(t, 5, seen, "folders and file")
}

// On a disk that is full a file is there whole or not at all, what is there stays, and the error says what to do.
func TestAFolderOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk, err := throwaway.NewSmallDisk(4 << 20)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(disk.Close)
	require.NoError(t, disk.Run(func() error {
		folder, err := openFolder(filepath.Join(os.TempDir(), "exports"), true)
		if err != nil {
			return err
		}
		defer func() { assert.NoError(t, folder.root.Close()) }()
		assert.NoError(t, folder.Write(t.Context(), "updates/1.parquet", text("some")))
		full := folder.Write(t.Context(), "updates/2.parquet", text(large))
		assert.ErrorIs(t, full, syscall.ENOSPC)
		assert.ErrorContains(t, full, "make room there")
		found, err := folder.List(t.Context())
		assert.NoError(t, err)
		assert.Equal(t, map[string]int64{"updates/1.parquet": 4}, found)
		return folder.Write(t.Context(), "updates/2.parquet", text("less"))
	}))
}

// A volume that is mounted as the place has a folder that only root may read: it is not looked into.
func TestTheRootOfAVolume(t *testing.T) {
	t.Parallel()
	name := t.TempDir()
	place, err := Open(name, true)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(name, "lost+found"), 0o700))
	for _, file := range []string{"lost+found/7", "at"} {
		require.NoError(t, os.WriteFile(filepath.Join(name, file), []byte("x"), 0o600))
	}
	found, err := place.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"at": 1}, found)
}
