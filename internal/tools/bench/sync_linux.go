package bench

import "syscall"

// syncData writes a file's data to disk, as PostgreSQL does with its log.
func syncData(fd uintptr) error { return syscall.Fdatasync(int(fd)) }
