package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
)

// report holds the results so far.
type report struct {
	command  string   // the make target that writes it
	title    string   // of the targets
	machine  []string // about machine and versions
	targets  []target
	sections []section
}

// target is a figure with a goal.
type target struct {
	what     string
	measured float64
	wanted   float64
	atMost   bool // wanted is a maximum; else a minimum
	unit     string
	digits   int // after the decimal point
}

func (t target) reached() bool {
	if t.atMost {
		return t.measured <= t.wanted
	}
	return t.measured >= t.wanted
}

func (t target) row() []string {
	bound, reached := "at least", "yes"
	if t.atMost {
		bound = "at most"
	}
	if !t.reached() {
		reached = "**no**"
	}
	number := func(v float64) string { return strings.TrimSpace(fmt.Sprintf("%.*f %s", t.digits, v, t.unit)) }
	return []string{t.what, number(t.measured), bound + " " + number(t.wanted), reached}
}

// section holds the results of a part.
type section struct {
	title string
	notes []string // paragraphs before the table
	table [][]string
}

func (r *report) target(t target)     { r.targets = append(r.targets, t) }
func (r *report) add(s section)       { r.sections = append(r.sections, s) }
func (r *report) note(line ...string) { r.machine = append(r.machine, line...) }

func cell(format string, a any) string { return fmt.Sprintf(format, a) }
func cells(row ...string) []string     { return row }

// thousands formats a number without decimals, with commas between thousands.
func thousands(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func (r *report) append(md []byte) []byte {
	out := bytes.NewBuffer(md)
	for _, line := range r.machine {
		fmt.Fprintf(out, "- %s\n", line)
	}
	if len(r.targets) > 0 {
		table := [][]string{{"what", "measured", "wanted", "reached"}}
		for _, t := range r.targets {
			table = append(table, t.row())
		}
		writeSection(out, section{title: r.title, table: table})
	}
	for _, s := range r.sections {
		writeSection(out, s)
	}
	return out.Bytes()
}

func writeSection(out *bytes.Buffer, s section) {
	fmt.Fprintf(out, "\n## %s\n", s.title)
	for _, note := range s.notes {
		fmt.Fprintf(out, "\n%s\n", note)
	}
	for i, row := range s.table {
		if i == 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			out.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
}

// marks begin the lines that divide a report's file: each command replaces what is below its own mark, up to the next one.
const marks = "<!-- Below this line: written by "

func (r *report) mark() string { return marks + r.command + ". -->\n" }

// write replaces everything between the mark and the next mark in a file, or adds it where the file has no such mark.
func (r *report) write(path string) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(old) == 0 {
		old = []byte("# Benchmarks\n\n")
	}
	head, below, found := bytes.Cut(old, []byte(r.mark()))
	var others []byte
	if next := bytes.Index(below, []byte(marks)); next >= 0 {
		others = below[next:]
	}
	if !found {
		head = append(bytes.TrimRight(head, "\n"), "\n\n"...)
	}
	text := r.append(append(bytes.Clone(head), r.mark()+"\n"...))
	if len(others) > 0 {
		text = append(append(text, '\n'), others...)
	}
	return os.WriteFile(path, text, 0o644)
}
