// Package terminal shows the progress of long work on a terminal: one line below the log, redrawn with each change.
package terminal

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"ledgerindexer/ledger"
)

// Bar is the line at the bottom of a terminal. Text written through it, such as the log, appears above the line. It is
// safe for concurrent use.
type Bar struct {
	out   io.Writer
	width func() int // in columns; nil: no terminal, so nothing is drawn

	mu    sync.Mutex
	work  []ledger.Progress // in progress, sorted by stream
	drawn bool              // the line is on the terminal
}

// NewBar returns a bar on out, usually standard error. If out is not a terminal, or shown is false, the bar draws
// nothing.
func NewBar(out io.Writer, shown bool) *Bar {
	b := &Bar{out: out}
	if file, isFile := out.(*os.File); isFile && shown {
		if columns, ok := width(file); ok {
			b.width = func() int {
				if now, ok := width(file); ok {
					columns = now // the window may have been resized
				}
				return columns
			}
		}
	}
	return b
}

// Show draws the progress of a stream's work beside that of others. It removes work that has ended.
func (b *Bar) Show(p ledger.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.width == nil {
		return
	}
	b.work = slices.DeleteFunc(b.work, func(other ledger.Progress) bool { return other.Stream == p.Stream })
	if !p.Ended {
		b.work = append(b.work, p)
		slices.SortFunc(b.work, func(a, b ledger.Progress) int { return cmp.Compare(a.Stream, b.Stream) })
	}
	b.erase()
	b.draw()
}

// Write writes text, which ends with a new line, above the bar.
func (b *Bar) Write(text []byte) (int, error) { return b.write(b.out, text) }

func (b *Bar) write(out io.Writer, text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	n, err := out.Write(text)
	b.draw()
	return n, err
}

// Above returns a writer to the same terminal whose lines appear above the bar too.
func (b *Bar) Above(out io.Writer) io.Writer { return above{b, out} }

type above struct {
	bar *Bar
	out io.Writer
}

func (a above) Write(text []byte) (int, error) { return a.bar.write(a.out, text) }

// Close removes the bar for good.
func (b *Bar) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	b.width = nil
}

// erase moves to the beginning of the line and clears it.
func (b *Bar) erase() {
	if b.drawn {
		b.drawn = false
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}

func (b *Bar) draw() {
	if b.width == nil || len(b.work) == 0 {
		return
	}
	var parts []string
	for _, p := range b.work {
		parts = append(parts, Line(p))
	}
	line := []rune(strings.Join(parts, " | "))
	if columns := max(0, b.width()-1); len(line) > columns { // a full line would scroll
		line = line[:columns]
	}
	b.drawn = true
	fmt.Fprint(b.out, string(line))
}

const barColumns = 20

// Line formats progress as one line.
func Line(p ledger.Progress) string {
	var b strings.Builder
	b.WriteString(p.Stream)
	if part, ok := p.Part(); ok {
		full := int(part * barColumns)
		fmt.Fprintf(&b, " [%s%s] %.1f%%", strings.Repeat("=", full), strings.Repeat(" ", barColumns-full), part*100)
	}
	return b.String() + " " + Position(p) + ", " + Rate(p)
}

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
