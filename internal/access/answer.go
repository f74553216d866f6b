package access

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Excerpt is the beginning of a text from outside, some 300 characters, on one line and free of control characters. What
// may hold secrets is redacted before: a secret that is cut in two is not found.
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

// longestAdvice bounds how long a server can ask to wait, so that no number is too large to be a duration. Callers
// have shorter bounds of their own.
const longestAdvice = 24 * time.Hour

// RetryAfter reads the HTTP header of that name, seconds or a date: 0 to 24 h, and 0 where it is neither.
func RetryAfter(header string, now time.Time) time.Duration {
	if date, err := http.ParseTime(header); err == nil {
		return max(0, min(date.Sub(now), longestAdvice))
	}
	return Advice(header, time.Second)
}

// Advice is so many units of time, as a server asks to wait: 0 to 24 h, and 0 where the text is no number.
func Advice(number string, unit time.Duration) time.Duration {
	n, err := strconv.ParseUint(number, 10, 64) // where it is out of range, n is the largest number
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(float64(n)*float64(unit), float64(longestAdvice)))
}
