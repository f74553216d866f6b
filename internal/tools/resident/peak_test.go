package resident

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	_ "ledgerindexer/internal/tools/hermetic"
)

// What a process has touched is in its peak, also when it is free again.
func TestPeak(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the peak of a process's memory in /proc/<pid>/status (VmHWM)")
	}
	const more = 64 << 20
	before := Peak(os.Getpid())
	require.Positive(t, before)
	block := make([]byte, before+more)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	runtime.KeepAlive(block)
	require.GreaterOrEqual(t, Peak(os.Getpid()), before+more)
	require.Zero(t, Peak(-1))
}
