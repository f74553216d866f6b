//go:build !linux

package bench

import "syscall"

// syncData has the system put a file on disk: there is no fdatasync here.
func syncData(fd uintptr) error { return syscall.Fsync(int(fd)) }
