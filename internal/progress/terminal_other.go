//go:build !unix

package progress

import "os"

// width says that no file is a terminal: only on Unix can that be told.
func width(*os.File) (columns int, ok bool) { return 0, false }
