//go:build unix

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// width returns the columns of a terminal, 80 if it does not report them; ok is false if the file is not a terminal.
func width(file *os.File) (columns int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	if size.Col == 0 {
		return 80, true
	}
	return int(size.Col), true
}
