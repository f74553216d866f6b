//go:build !linux

package session

import "syscall"

// limitUnanswered does nothing: the system's own limit holds.
func limitUnanswered(string, string, syscall.RawConn) error { return nil }
