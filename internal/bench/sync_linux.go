package bench

import "syscall"

// syncData has the system put a file's data on disk, as PostgreSQL does with its log.
func syncData(fd uintptr) error { return syscall.Fdatasync(int(fd)) }
