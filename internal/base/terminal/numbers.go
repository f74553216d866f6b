// Package terminal writes numbers, sizes, durations and the progress of work for people.
package terminal

import (
	"fmt"
	"strings"
	"time"

	"ledgerindexer/ledger"
)

// Position formats the position of the work, and its end if that is known.
func Position(p ledger.Progress) string {
	if p.End > 0 {
		return Count(p.Position) + " of " + Count(p.End)
	}
	return Count(p.Position)
}

// Rate formats the rate of the work, and the time left if that is known.
func Rate(p ledger.Progress) string {
	text := strings.TrimSuffix(Count(int64(p.Rate+0.5))+" "+p.Unit, " ") + "/s"
	if p.TimeLeft > 0 {
		text += ", " + Brief(p.TimeLeft) + " left"
	}
	return text
}

// Count formats a number with separated thousands: 21,300.
func Count(n int64) string {
	text := fmt.Sprint(n)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(text) - 3; i > first; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Bytes formats a size on disk: 64 kB, 1.5 MB, 2.3 GB.
func Bytes(n int64) string {
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%d kB", (n+1023)>>10)
	case n < 1<<30:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
}

// Brief formats a duration in its largest one or two units: 2 h 5 min, 4 min, 31 s.
func Brief(d time.Duration) string {
	d = max(d, time.Second)
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("%d s", int(d.Round(time.Second).Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Round(24*time.Hour).Hours())/24)
}
