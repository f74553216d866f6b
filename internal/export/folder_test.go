package export

import (
	"os"
	"path/filepath"
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
