package statuspage

import (
	"fmt"
	"math"
	"strings"
	"time"

	"ledgerindexer/internal/base/terminal"
	"ledgerindexer/internal/features/status"
	"ledgerindexer/ledger"
)

// Charts are drawn in a box of this size, which is stretched to the place that there is; texts stand beside it.
const (
	chartWidth  = 600.0
	chartHeight = 100.0
	gapAfter    = 3 * sampleEvery // without a sample the line ends
)

// chart is a line over the last hour.
type chart struct {
	Title, Now string
	Most       string // what the upper edge stands for
	Label      string // the chart in words
	Line, Area string // paths; empty: nothing was measured
	Kind       string // the style
}

// newChart draws the values that of returns for samples. least is the least that the upper edge stands for.
func newChart(kind, title string, samples []Sample, now time.Time, least float64, of func(Sample) Measured,
	text func(Measured) string) chart {
	c := chart{Kind: kind, Title: title}
	most, last := 0.0, unknown
	for _, s := range samples {
		if last = of(s); last.Known() {
			most = max(most, float64(last))
		}
	}
	scale := roundUp(max(most, least))
	if kind == "lag" {
		scale = roundUpTime(max(most, least))
	}
	c.Now, c.Most = text(last), text(Measured(scale))
	c.Label = fmt.Sprintf("%s over the last hour: now %s, at most %s", title, c.Now, text(Measured(most)))
	var line, area strings.Builder
	var from, to float64
	var before time.Time
	end := func() {
		if !before.IsZero() {
			fmt.Fprintf(&area, "L%.1f %.1fL%.1f %.1fZ", to, chartHeight, from, chartHeight)
		}
		before = time.Time{}
	}
	for _, s := range samples {
		value := of(s)
		if !value.Known() || s.At.Sub(before) > gapAfter {
			end()
		}
		if !value.Known() {
			continue
		}
		x := chartWidth * (1 - now.Sub(s.At).Seconds()/shownFor.Seconds())
		x = min(chartWidth, max(0, x))
		y := chartHeight * (1 - float64(value)/scale)
		command := "L"
		if before.IsZero() {
			command, from = "M", x
		}
		fmt.Fprintf(&line, "%s%.1f %.1f", command, x, y)
		fmt.Fprintf(&area, "%s%.1f %.1f", command, x, y)
		to, before = x, s.At
	}
	end()
	c.Line, c.Area = line.String(), area.String()
	if c.Line == "" {
		c.Label = title + " over the last hour: nothing measured"
	}
	return c
}

// roundUp returns the next number of the form 1, 2 or 5 times a power of ten.
func roundUp(value float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(value)))
	for _, step := range []float64{1, 2, 5} {
		if value <= step*power*(1+1e-9) {
			return step * power
		}
	}
	return 10 * power
}

// roundUpTime is roundUp for seconds, in the unit in which they are shown.
func roundUpTime(seconds float64) float64 {
	for _, unit := range []float64{24 * 3600, 3600, 60} {
		if seconds > unit {
			return unit * roundUp(seconds/unit)
		}
	}
	return roundUp(seconds)
}

func rateText(m Measured) string {
	switch {
	case !m.Known():
		return "not known"
	case m > 0 && m < 1:
		return fmt.Sprintf("%.2f/s", float64(m))
	case m > 0 && m < 10:
		return fmt.Sprintf("%.1f/s", float64(m))
	}
	return terminal.Count(int64(math.Round(float64(m)))) + "/s"
}

func lagText(m Measured) string {
	switch {
	case !m.Known():
		return "not known"
	case m == 0:
		return "0 s"
	case m < 1:
		return "under 1 s"
	}
	return terminal.Brief(time.Duration(float64(m) * float64(time.Second)))
}

// bar shows which offsets of a ledger are stored.
type bar struct {
	Parts      []part // of what is stored
	Verified   *part
	Marks      []mark
	From, To   string
	Label      string
	Begin, End ledger.Offset
}

// part is a part of the bar, in thousandths.
type part struct {
	X, Width float64
	Kind     string
}

// mark is an offset on the bar, in thousandths.
type mark struct {
	X    float64
	Kind string
}

// leastWidth is that of what would be too narrow to be seen, in thousandths.
const leastWidth = 3

// newBar draws the coverage of a stream whose ledger ends at end; 0: not known. The bar begins with the ledger: with
// its first update if that is stored, else at 0. Of the ledger of a network, whose offsets are times, and of one that
// was pruned here, it begins with what is stored.
func newBar(s status.Stream, verified *status.Verified, end ledger.Offset, times bool) bar {
	b := bar{End: max(end, s.Frontier)}
	switch {
	case s.PrunedTo > 0:
		b.Begin = s.HistoryFloor
	case (s.HistoryFloor == 0 || times) && s.FirstUpdate > 0:
		b.Begin = max(s.HistoryFloor, s.FirstUpdate-1)
	}
	for _, r := range s.Coverage {
		b.End = max(b.End, r.To)
	}
	b.From, b.To = terminal.Count(int64(b.Begin)), terminal.Count(int64(b.End))
	var stored ledger.Offset
	for _, r := range s.Coverage {
		from, to := max(r.From, b.Begin), max(r.To, b.Begin)
		stored += to - from
		if shown := min(to, s.Watermark); from < shown {
			b.Parts = append(b.Parts, b.part(from, shown, "shown"))
		}
		if ahead := max(from, s.Watermark); ahead < to {
			b.Parts = append(b.Parts, b.part(ahead, to, "ahead"))
		}
	}
	if verified != nil && verified.Offset > max(b.Begin, s.HistoryFloor) {
		b.Verified = new(b.part(max(b.Begin, s.HistoryFloor), verified.Offset, "verified"))
	}
	if s.StateFloor != nil && *s.StateFloor > b.Begin {
		b.Marks = append(b.Marks, mark{b.at(*s.StateFloor), "state"})
	}
	b.Label = fmt.Sprintf("Of the offsets %s to %s %s are stored", b.From, b.To, percent(stored, b.End-b.Begin))
	return b
}

func percent(part, of ledger.Offset) string {
	if of <= 0 {
		return "100%"
	}
	percent := 100 * float64(part) / float64(of)
	if part < of { // what is missing is not rounded away
		percent = min(percent, 99.9)
	}
	return strings.Replace(fmt.Sprintf("%.1f%%", percent), ".0%", "%", 1)
}

func (b *bar) at(offset ledger.Offset) float64 {
	if b.End <= b.Begin {
		return 0
	}
	return 1000 * float64(offset-b.Begin) / float64(b.End-b.Begin)
}

func (b *bar) part(from, to ledger.Offset, kind string) part {
	x := b.at(from)
	width := max(leastWidth, b.at(to)-x)
	return part{X: min(x, 1000-width), Width: width, Kind: kind}
}
