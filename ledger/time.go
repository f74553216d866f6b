package ledger

import (
	"fmt"
	"strings"
	"time"
)

// Time is a time of the ledger in microseconds, the resolution of both the ledger and PostgreSQL.
type Time struct {
	Time  time.Time // UTC, whole microseconds
	Valid bool      // false: absent or null
	// Exact is the server's text where it said more than microseconds can hold, else empty. Time is then the
	// microsecond before.
	Exact string
}

// ParseTime reads an RFC 3339 time with 0 to 9 fraction digits.
func ParseTime(text string) (Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || !hasTimeForm(text) {
		return Time{}, fmt.Errorf("not a time of the form 2006-01-02T15:04:05.999999Z: %q", text)
	}
	t = t.UTC()
	micro := t.Truncate(time.Microsecond)
	if micro.Equal(t) {
		return Time{Time: t, Valid: true}, nil
	}
	return Time{Time: micro, Valid: true, Exact: text}, nil
}

// hasTimeForm refuses what time.Parse lets pass beyond RFC 3339: a comma for the point, an hour of one digit, and
// more than 9 fraction digits, of which it would forget some.
func hasTimeForm(text string) bool {
	const seconds = "2006-01-02T15:04:05"
	if len(text) <= len(seconds) || text[len("2006-01-02T15")] != ':' {
		return false
	}
	rest := text[len(seconds):]
	if rest[0] == '.' {
		digits := len(rest) - 1 - len(strings.TrimLeft(rest[1:], "0123456789"))
		return digits >= 1 && digits <= 9
	}
	return rest[0] == 'Z' || rest[0] == '+' || rest[0] == '-'
}
