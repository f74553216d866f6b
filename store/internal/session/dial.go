package session

import (
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// unansweredLimit is after how long connections to a server that is gone without a word end, with whatever waits for them: TCP alone would wait for
// a quarter of an hour. Of a server that is only busy the system answers, however long a statement takes.
const unansweredLimit = 30 * time.Second

// dial makes connections, in a time; 0: without a limit of its own.
func dial(timeout time.Duration) pgconn.DialFunc {
	dialer := net.Dialer{
		Timeout: timeout,
		// Who waits for an answer sends nothing, and would not notice.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: unansweredLimit / 2, Interval: unansweredLimit / 6, Count: 3},
		Control:         limitUnanswered,
	}
	return dialer.DialContext
}
