//go:build !linux

package bench

import "syscall"

// syncData writes a file to disk: there is no fdatasync here.
func syncData(fd uintptr) error { return syscall.Fsync(int(fd)) }
