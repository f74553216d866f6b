//go:build !linux

package session

import "syscall"

// limitUnanswered is the system's own limit.
func limitUnanswered(string, string, syscall.RawConn) error { return nil }
