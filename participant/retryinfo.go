package participant

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestAdvice bounds how long a server can ask to wait, so that no number is too large to be a duration. Callers
// have shorter bounds of their own.
const longestAdvice = 24 * time.Hour

// retryAfter reads the HTTP header: seconds, or a date; 0 where it is neither.
func retryAfter(header string, now time.Time) time.Duration {
	if date, err := http.ParseTime(header); err == nil {
		return max(0, min(date.Sub(now), longestAdvice))
	}
	return advice(header, time.Second)
}

// retryInfo reads the member of the servers' error object, such as "1 second" or "500 milliseconds"; 0 where it is no
// such thing.
func retryInfo(text string) time.Duration {
	number, unit, _ := strings.Cut(strings.TrimSpace(text), " ")
	return advice(number, units[strings.TrimSuffix(unit, "s")])
}

var units = map[string]time.Duration{
	"nanosecond": time.Nanosecond, "microsecond": time.Microsecond, "millisecond": time.Millisecond, "second": time.Second,
	"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
}

func advice(number string, unit time.Duration) time.Duration {
	n, err := strconv.ParseUint(number, 10, 64) // where it is out of range, n is the largest number
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(float64(n)*float64(unit), float64(longestAdvice)))
}
