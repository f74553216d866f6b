package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/ledger"
)

// screen is what a terminal shows of what was written to it: its lines, the last one without an end.
func screen(written string) []string {
	var lines []string
	line := ""
	for len(written) > 0 {
		switch {
		case strings.HasPrefix(written, "\r\x1b[K"):
			line, written = "", written[len("\r\x1b[K"):]
		case written[0] == '\n':
			lines, line, written = append(lines, line), "", written[1:]
		default:
			line, written = line+written[:1], written[1:]
		}
	}
	return append(lines, line)
}

func drawing(columns int) (*Bar, *bytes.Buffer) {
	var out bytes.Buffer
	b := NewBar(&out, true)
	b.width = func() int { return columns }
	return b, &out
}

func TestTheLogStandsAboveTheBar(t *testing.T) {
	t.Parallel()
	b, out := drawing(200)
	fmt.Fprintln(b, "began")
	require.Equal(t, []string{"began", ""}, screen(out.String()))
	b.Show(ledger.Progress{Stream: "updates", Unit: "updates", Start: 1000, Position: 2000, End: 5000, Rate: 21300.4, TimeLeft: 4 * time.Minute})
	bar := "updates [=====               ] 25.0% 2,000 of 5,000, 21,300 updates/s, 4 min left"
	require.Equal(t, []string{"began", bar}, screen(out.String()))
	fmt.Fprintln(b, "a line")
	fmt.Fprintln(b.Above(out), "a result")
	require.Equal(t, []string{"began", "a line", "a result", bar}, screen(out.String()))

	b.Show(ledger.Progress{Stream: "transactions", Unit: "records", Position: 70, Rate: 5})
	require.Equal(t, []string{"began", "a line", "a result", "transactions 70, 5 records/s | " + bar}, screen(out.String()))
	b.Show(ledger.Progress{Stream: "updates", Ended: true})
	require.Equal(t, []string{"began", "a line", "a result", "transactions 70, 5 records/s"}, screen(out.String()))
	b.Close()
	b.Show(ledger.Progress{Stream: "transactions", Position: 80})
	fmt.Fprintln(b, "ended")
	require.Equal(t, []string{"began", "a line", "a result", "ended", ""}, screen(out.String()))
}

func TestTheBarIsNoWiderThanTheTerminal(t *testing.T) {
	t.Parallel()
	for columns, wanted := range map[int]string{9: "updates ", 8: "updates", 1: "", 0: ""} {
		b, out := drawing(columns)
		b.Show(ledger.Progress{Stream: "updates", Position: 1})
		require.Equal(t, []string{wanted}, screen(out.String()), columns)
	}
}

// What is no terminal gets the text as it is, and nothing else.
func TestNoBarWithoutATerminal(t *testing.T) {
	t.Parallel()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	require.Nil(t, NewBar(null, true).width, "a device, but no terminal")
	var out bytes.Buffer
	b := NewBar(&out, true)
	b.Show(ledger.Progress{Stream: "updates", Position: 1})
	fmt.Fprintln(b, "a line")
	b.Close()
	require.Equal(t, "a line\n", out.String())
}

// Lines and bars from many goroutines do not run into each other.
func TestTheBarIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	b, out := drawing(80)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 50 {
				b.Show(ledger.Progress{Stream: fmt.Sprint("stream ", i), Position: int64(n)})
				if _, err := io.WriteString(b, "a line\n"); err != nil {
					t.Error(err)
				}
			}
			b.Show(ledger.Progress{Stream: fmt.Sprint("stream ", i), Ended: true})
		})
	}
	group.Wait()
	lines := screen(out.String())
	require.Len(t, lines, 401)
	for _, line := range lines[:400] {
		require.Equal(t, "a line", line)
	}
	require.Empty(t, lines[400])
}

func TestNumbersForPeople(t *testing.T) {
	t.Parallel()
	for n, text := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 21300: "21,300", 1234567: "1,234,567", -100: "-100", -1000: "-1,000"} {
		require.Equal(t, text, Count(n))
	}
	for d, text := range map[time.Duration]string{
		0: "1 s", 31 * time.Second: "31 s", 89 * time.Second: "89 s", 90 * time.Second: "2 min", 4 * time.Minute: "4 min",
		119 * time.Minute: "119 min", 2*time.Hour + 5*time.Minute: "2 h 5 min", 47*time.Hour + 59*time.Minute + 45*time.Second: "48 h 0 min",
		50 * time.Hour: "2 days", 100 * time.Hour: "4 days",
	} {
		require.Equal(t, text, Brief(d), d)
	}
	require.Equal(t, "12/s", Rate(ledger.Progress{Rate: 11.6}))
	require.Equal(t, "sealed windows [====================] 100.0% 9 of 8, 0/s", Line(ledger.Progress{Stream: "sealed windows", Position: 9, End: 8}))
}
