package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// report holds the results so far.
type report struct {
	command  string // the make target that writes it
	title    string // of the targets
	commit   string // of what is measured
	about    string // when and on what it is measured
	inPieces bool   // what a file has of other parts stays in it
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

func (t target) row(commit string) []string {
	bound, reached := "at least", "yes"
	if t.atMost {
		bound = "at most"
	}
	if !t.reached() {
		reached = "**no**"
	}
	number := func(v float64) string { return strings.TrimSpace(fmt.Sprintf("%.*f %s", t.digits, v, t.unit)) }
	return []string{t.what, number(t.measured), bound + " " + number(t.wanted), reached, commit}
}

// section holds the results of a part.
type section struct {
	title string
	notes []string // paragraphs before the table
	table [][]string
}

func (r *report) target(t target) { r.targets = append(r.targets, t) }
func (r *report) add(s section)   { r.sections = append(r.sections, s) }

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

// begins begins a section.
const begins = "\n## "

// text returns the report in the place of an older one. In pieces, sections and targets of that stay which are not
// measured again.
func (r *report) text(old string) string {
	var list, rows []string
	if r.inPieces {
		list = strings.Split("\n"+old, begins)[1:]
	}
	for _, text := range list {
		if title, table, _ := strings.Cut(text, "\n"); title == r.title {
			rows = strings.Split(strings.TrimSpace(table), "\n")
		}
	}
	if len(rows) == 0 {
		rows = rowsOf([][]string{{"what", "measured", "wanted", "reached", "at commit"}})
	}
	for _, t := range r.targets {
		rows = put(rows, rowOf(t.row(r.commit)), "|")
	}
	if len(r.targets) > 0 {
		list = put(list, r.title+"\n\n"+strings.Join(rows, "\n"), "\n")
	}
	for _, s := range r.sections {
		list = put(list, s.text(r.about), "\n")
	}
	var out strings.Builder
	for _, text := range list {
		out.WriteString(begins + strings.TrimRight(text, "\n") + "\n")
	}
	return out.String()
}

// put replaces the text that begins like another one up to a separator, or appends it.
func put(list []string, text, separator string) []string {
	name := func(of string) string {
		of, _, _ = strings.Cut(strings.TrimPrefix(of, separator), separator)
		return of
	}
	if i := slices.IndexFunc(list, func(of string) bool { return name(of) == name(text) }); i >= 0 {
		list[i] = text
		return list
	}
	return append(list, text)
}

// text returns the section without what begins it.
func (s section) text(about string) string {
	paragraphs := slices.Concat([]string{s.title}, s.notes)
	if about != "" {
		paragraphs = append(paragraphs, about)
	}
	if len(s.table) > 0 {
		paragraphs = append(paragraphs, strings.Join(rowsOf(s.table), "\n"))
	}
	return strings.Join(paragraphs, "\n\n")
}

func rowOf(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }

// rowsOf returns the lines of a table, of which the first row is the header.
func rowsOf(table [][]string) (lines []string) {
	for i, row := range table {
		if lines = append(lines, rowOf(row)); i == 0 {
			lines = append(lines, strings.Repeat("|---", len(row))+"|")
		}
	}
	return lines
}

// marks begin the lines that divide a report's file: each command writes only below its own mark, up to the next one.
const marks = "<!-- Below this line: written by "

func (r *report) mark() string { return marks + r.command + ". -->\n" }

// write puts the report between its mark and the next mark in a file, or adds both where the file has no such mark.
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
		below, others = below[:next], below[next:]
	}
	if !found {
		head = append(bytes.TrimRight(head, "\n"), "\n\n"...)
	}
	text := append(bytes.Clone(head), r.mark()+r.text(string(below))...)
	if len(others) > 0 {
		text = append(append(text, '\n'), others...)
	}
	return os.WriteFile(path, text, 0o644)
}
