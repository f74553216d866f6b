package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// Age is a duration that may be given in days, such as 400d; 0: not given.
type Age time.Duration

const day = 24 * time.Hour

// UnmarshalText parses a whole number of days, such as 400d, or a duration as Go writes it, such as 36h; not less than
// 0.
func (a *Age) UnmarshalText(text []byte) error {
	days, isDays := strings.CutSuffix(string(text), "d")
	age, err := time.ParseDuration(string(text))
	if isDays {
		var n int64
		if n, err = strconv.ParseInt(days, 10, 64); err == nil && n > int64(math.MaxInt64/day) {
			err = strconv.ErrRange
		}
		age = time.Duration(n) * day
	}
	if err != nil || age < 0 {
		return fmt.Errorf("%q is not a duration such as 400d or 36h", text)
	}
	*a = Age(age)
	return nil
}

// String returns the duration in a form that UnmarshalText parses.
func (a Age) String() string {
	if d := time.Duration(a); d%day != 0 {
		return d.String()
	}
	return fmt.Sprintf("%dd", time.Duration(a)/day)
}

// ParseBefore parses the limit below which is pruned: an offset, a date (2026-01-31: its midnight, UTC), a time
// (2026-01-31T12:00:00Z) or an Age.
func ParseBefore(text string) (store.PruneBefore, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		return store.PruneBefore{Offset: new(ledger.Offset(n))}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil && at.Year() > 0 {
			return store.PruneBefore{Time: at}, nil
		}
	}
	var age Age
	if err := age.UnmarshalText([]byte(text)); err != nil || age == 0 {
		return store.PruneBefore{}, fmt.Errorf("%q is neither an offset of at least 1, nor a date (2026-01-31), nor a time "+
			"(2026-01-31T12:00:00Z), nor an age (400d, 36h)", text)
	}
	return store.PruneBefore{Age: time.Duration(age)}, nil
}
