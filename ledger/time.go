package ledger

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Time is a time of the ledger in microseconds, the resolution of both the ledger and PostgreSQL.
type Time struct {
	Time  time.Time // UTC, whole microseconds
	Valid bool      // false: absent or null
	// Exact is the server's text if microseconds can't hold it, else empty. Time is then the microsecond before.
	Exact string
}

// String returns the time as RFC 3339, with all digits that the server sent; "-" if there is none.
func (t Time) String() string {
	switch {
	case !t.Valid:
		return "-"
	case t.Exact != "":
		return t.Exact
	}
	return t.Time.Format(time.RFC3339Nano)
}

// MarshalJSON returns the time as a text, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if !t.Valid {
		return []byte("null"), nil
	}
	return strconv.AppendQuote(nil, t.String()), nil
}

// UnmarshalJSON reads what MarshalJSON returns.
func (t *Time) UnmarshalJSON(text []byte) (err error) {
	if string(text) == "null" {
		*t = Time{}
		return nil
	}
	plain, err := strconv.Unquote(string(text))
	if err == nil {
		*t, err = ParseTime(plain)
	}
	return err
}

// ParseTime parses an RFC 3339 time with 0 to 9 fraction digits.
func ParseTime(text string) (Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || !hasTimeForm(text) {
		return Time{}, fmt.Errorf("not a time of the form 2006-01-02T15:04:05.999999Z: %s", Quoted(text))
	}
	t = t.UTC()
	micro := t.Truncate(time.Microsecond)
	if micro.Equal(t) {
		return Time{Time: t, Valid: true}, nil
	}
	return Time{Time: micro, Valid: true, Exact: text}, nil
}

// hasTimeForm refuses what time.Parse accepts beyond RFC 3339: a comma for the point, an hour of one digit, and more
// than 9 fraction digits, of which it would drop some.
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

// parsePlainTime parses only the form that servers send, much faster: 2006-01-02T15:04:05, up to six fraction digits,
// and Z. ok is false for all else.
func parsePlainTime(text []byte) (t Time, ok bool) {
	const seconds = "2006-01-02T15:04:05"
	rest := len(text) - len(seconds)
	if rest < 1 || text[len(text)-1] != 'Z' || rest == 2 || rest > 8 || rest > 1 && text[len(seconds)] != '.' ||
		text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':' {
		return Time{}, false
	}
	var fields [7]int // the last one is the fraction
	for i, place := range [...][2]int{{0, 4}, {5, 7}, {8, 10}, {11, 13}, {14, 16}, {17, 19}, {20, len(text) - 1}} {
		for at := place[0]; at < place[1]; at++ {
			digit := text[at] - '0'
			if digit > 9 {
				return Time{}, false
			}
			fields[i] = 10*fields[i] + int(digit)
		}
	}
	for digits := rest - 2; digits < 9; digits++ {
		fields[6] *= 10
	}
	year, month, day, hour, minute, second := fields[0], time.Month(fields[1]), fields[2], fields[3], fields[4], fields[5]
	at := time.Date(year, month, day, hour, minute, second, fields[6], time.UTC)
	if month < 1 || month > 12 || at.Day() != day || hour > 23 || minute > 59 || second > 59 {
		return Time{}, false
	}
	return Time{Time: at, Valid: true}, true
}
