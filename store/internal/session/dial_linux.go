package session

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitUnanswered limits how long sent data may stay unacknowledged: keepalives don't apply while there is such data.
func limitUnanswered(network, _ string, connection syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var failed error
	err := connection.Control(func(socket uintptr) {
		failed = unix.SetsockoptInt(int(socket), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unansweredLimit.Milliseconds()))
	})
	if err == nil {
		err = failed
	}
	return err
}
