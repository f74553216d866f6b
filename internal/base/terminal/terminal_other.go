//go:build !unix

package terminal

import "os"

// width reports every file as no terminal: only Unix is supported.
func width(*os.File) (columns int, ok bool) { return 0, false }
