package access

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Excerpt returns the beginning of a text received from outside: some 300 characters, on one line, without control
// characters. Redact secrets first: half a secret would not be found.
func Excerpt(text string) string {
	const most = 300
	s := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool {
		return r == ' ' || unicode.IsControl(r)
	}), " ")
	if runes := []rune(s); len(runes) > most {
		s = strings.TrimSuffix(string(runes[:most]), " ") + "…"
	}
	return s
}

// maxWait limits the waits that servers ask for, so that every number fits a duration. Callers have shorter limits.
const maxWait = 24 * time.Hour

// RetryAfter parses the HTTP header Retry-After, seconds or a date: 0 to 24 h, and 0 if it is neither.
func RetryAfter(header string, now time.Time) time.Duration {
	if date, err := http.ParseTime(header); err == nil {
		return max(0, min(date.Sub(now), maxWait))
	}
	return Advice(header, time.Second)
}

// Advice returns the wait that a server asks for as a number of units: 0 to 24 h, and 0 if the text is no number.
func Advice(number string, unit time.Duration) time.Duration {
	n, err := strconv.ParseUint(number, 10, 64) // out of range, n is the largest number
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(float64(n)*float64(unit), float64(maxWait)))
}
