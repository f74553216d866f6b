package check

import (
	"fmt"
	"slices"
	"strings"
)

// Level is the severity of a finding.
type Level string

// The levels of findings.
const (
	OK      Level = "ok"      // as it should be
	Note    Level = "note"    // worth knowing; nothing has to be done
	Warning Level = "warning" // the indexer runs, and something can go wrong
	Problem Level = "problem" // the indexer will not run, or will stop
)

// The groups of findings, in the order of the report.
const (
	GroupLedger   = "ledger"   // URL, connection, the server's operations
	GroupToken    = "token"    // the token and its user
	GroupScope    = "scope"    // the scope, and whether it may be read
	GroupPosition = "position" // the ledger's end and pruning
	GroupScan     = "scan"
	GroupDatabase = "database"
	GroupClocks   = "clocks"
)

var groups = []string{GroupLedger, GroupToken, GroupScope, GroupPosition, GroupScan, GroupDatabase, GroupClocks}

// Finding is the result of one check.
type Finding struct {
	Group string   `json:"group"`
	Topic string   `json:"topic"` // a fixed word, for scripts
	Level Level    `json:"level"`
	Text  string   `json:"text"`
	Do    string   `json:"do,omitempty"`    // what to do about it
	Paste []string `json:"paste,omitempty"` // flags, commands or statements for Do
}

// Report holds the results of a check.
type Report struct {
	Findings []Finding `json:"findings"`
	Problems int       `json:"problems"`
	Warnings int       `json:"warnings"`
	Next     []string  `json:"next"` // the next commands; none while there are problems
}

// add appends a finding. It may contain names and texts from outside, so its texts become single lines without control
// characters, and lines that can't be pasted are removed.
func (r *Report) add(f Finding) {
	f.Text, f.Do = oneLine(f.Text), oneLine(f.Do)
	f.Paste = slices.DeleteFunc(f.Paste, func(line string) bool { return line == "" || !pastable(line) })
	switch f.Level {
	case Problem:
		r.Problems++
	case Warning:
		r.Warnings++
	case OK, Note:
	}
	r.Findings = append(r.Findings, f)
}

// section adds the findings of a group.
type section struct {
	report *Report
	group  string
}

func (s section) ok(topic, format string, args ...any) {
	s.report.add(Finding{Group: s.group, Topic: topic, Level: OK, Text: fmt.Sprintf(format, args...)})
}

func (s section) note(topic, format string, args ...any) {
	s.report.add(Finding{Group: s.group, Topic: topic, Level: Note, Text: fmt.Sprintf(format, args...)})
}

func (s section) warn(topic, text, do string, paste ...string) {
	s.report.add(Finding{Group: s.group, Topic: topic, Level: Warning, Text: text, Do: do, Paste: paste})
}

func (s section) problem(topic, text, do string, paste ...string) {
	s.report.add(Finding{Group: s.group, Topic: topic, Level: Problem, Text: text, Do: do, Paste: paste})
}

// skip notes that something was not checked, and why.
func (s section) skip(topic, because string) { s.note(topic, "not checked: %s", because) }

// oneLine replaces runs of white space and control characters by a space.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool {
		return r <= ' ' || r >= 0x7f && r <= 0x9f
	}), " ")
}

// head returns the beginning of a text received from outside.
func head(text string, runes int) string {
	list := []rune(oneLine(text))
	if len(list) > runes {
		return string(list[:runes]) + "…"
	}
	return string(list)
}

// some lists the first items of a list and how many more there are.
func some(list []string) string { return upTo(3, list) }

func upTo(shown int, list []string) string {
	if len(list) <= shown {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
}

// plural formats a count, such as "1 problem" or "2 problems".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
