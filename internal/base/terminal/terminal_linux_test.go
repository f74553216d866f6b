package terminal

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"ledgerindexer/ledger"
)

// A terminal is recognized, and the bar follows its width.
func TestTheBarOnATerminal(t *testing.T) {
	t.Parallel()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	defer master.Close()
	fd := int(master.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	terminal, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer terminal.Close()

	b := NewBar(terminal, true)
	require.Equal(t, 80, b.width(), "it does not tell yet")
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 20, Col: 11}))
	require.Equal(t, 11, b.width())
	require.Nil(t, NewBar(terminal, false).width)

	b.Show(ledger.Progress{Stream: "updates", Position: 1234})
	buffer := make([]byte, 100)
	n, err := master.Read(buffer)
	require.NoError(t, err)
	require.Equal(t, "updates 1,", string(buffer[:n]))
}
