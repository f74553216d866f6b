package session

import (
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// unansweredLimit is the time after which a connection ends whose other side does not answer at all: TCP alone would
// wait for a quarter of an hour. The operating system of a server that is only busy answers, however long a statement
// takes.
const unansweredLimit = 30 * time.Second

// dial returns a function that makes connections within a timeout; 0: without a limit of its own.
func dial(timeout time.Duration) pgconn.DialFunc {
	dialer := net.Dialer{
		Timeout: timeout,
		// A client that waits for an answer sends nothing, so without keepalives it would not notice.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: unansweredLimit / 2, Interval: unansweredLimit / 6,
			Count: 3},
		Control: limitUnanswered,
	}
	return dialer.DialContext
}
