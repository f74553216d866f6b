package participant

import (
	"strings"
	"time"

	"ledgerindexer/internal/base/access"
)

// retryInfo parses a member of the servers' error object, such as "1 second" or "500 milliseconds"; 0 where it is not
// of this form.
func retryInfo(text string) time.Duration {
	number, unit, _ := strings.Cut(strings.TrimSpace(text), " ")
	return access.Advice(number, units[strings.TrimSuffix(unit, "s")])
}

var units = map[string]time.Duration{
	"nanosecond": time.Nanosecond, "microsecond": time.Microsecond, "millisecond": time.Millisecond, "second": time.Second,
	"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
}
