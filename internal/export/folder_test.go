package export

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/throwaway"
)

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

// A folder is unlocked at once, although a process that was forked meanwhile has the lock's file still open.
func TestAFolderIsUnlockedBesideAFork(t *testing.T) {
	t.Parallel()
	folder, err := openFolder(t.TempDir(), true)
	require.NoError(t, err)
	defer func() { assert.NoError(t, folder.root.Close()) }()
	unlock, err := folder.Lock(t.Context())
	require.NoError(t, err)
	fd := inherited(t, filepath.Join(folder.String(), ".lock"))
	defer func() { assert.NoError(t, syscall.Close(fd)) }()
	unlock()
	unlock, err = folder.Lock(t.Context())
	require.NoError(t, err)
	unlock()
}

// inherited opens what this process has open under a name once more, as a forked process has it.
func inherited(t *testing.T, name string) (fd int) {
	t.Helper()
	const own = "/proc/self/fd"
	open, err := os.ReadDir(own)
	if err != nil {
		t.Skip(err) // only Linux lists them
	}
	for _, entry := range open {
		if at, err := os.Readlink(filepath.Join(own, entry.Name())); err == nil && at == name {
			n, err := strconv.Atoi(entry.Name())
			require.NoError(t, err)
			fd, err = syscall.Dup(n)
			require.NoError(t, err)
			return fd
		}
	}
	t.Fatalf("%s is not open", name)
	return 0
}
