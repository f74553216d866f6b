//go:build unix

package progress

import (
	"os"

	"golang.org/x/sys/unix"
)

// width is how many columns a terminal has; ok is false where the file is none. A terminal that does not say has 80.
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
