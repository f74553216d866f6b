package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
)

// row prints one line of a table. Its cells come from the ledger.
func row(w io.Writer, cells ...string) {
	for i, cell := range cells {
		cells[i] = cmp.Or(printable(cell), "-")
	}
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}

// labelled prints lines that begin with a label; an empty label goes on with the one before.
type labelled struct{ w *tabwriter.Writer }

func newLabelled(out io.Writer) labelled { return labelled{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)} }

// line prints a text that may be of the ledger.
func (l labelled) line(label, text string) { fmt.Fprintf(l.w, "%s\t%s\n", label, printable(text)) }

// say prints a text of ours, which quotes what it repeats.
func (l labelled) say(label, text string) { fmt.Fprintf(l.w, "%s\t%s\n", label, harmless(text)) }

// printable escapes what could do something to a terminal, or be taken for something else.
func printable(text string) string {
	return config.Escape(text, func(r rune) bool { return unicode.IsPrint(r) && r != '\\' })
}

// harmless escapes what could do something to a terminal. It is for errors and what is made of them: these quote what
// they repeat, and their backslashes are not to be doubled.
func harmless(text string) string { return config.Escape(text, unicode.IsPrint) }

// noAnswer stands where a ledger's answer would, in a report for people whose command ends with the error.
const noAnswer = "no answer (see the error)"

// errorText is what a report says of a failure: with what to do, where it is known.
func errorText(err error) string {
	var problem *ledger.Problem
	if errors.As(err, &problem) {
		return fmt.Sprintf("%v; what to do: %s", err, problem.Do)
	}
	return err.Error()
}

// briefRunes is the most that is printed of one text of the ledger among others; real ids are shorter.
const briefRunes = 300

// brief shortens a text for people. JSON has it in full.
func brief(text string) string {
	n := 0
	for i := range text {
		if n++; n > briefRunes {
			return fmt.Sprintf("%s… (%d bytes)", text[:i], len(text))
		}
	}
	return text
}

// writeReport prints a value as JSON, in which nothing can do something to a terminal.
func writeReport(out io.Writer, value any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := out.Write(printableJSON(b.Bytes()))
	return err
}

// indented is a JSON value over several lines, in which nothing can do something to a terminal.
func indented(value ledger.JSON) string {
	var b bytes.Buffer
	if err := json.Indent(&b, value, "", "  "); err != nil { // nested too deep
		return printable(string(value))
	}
	return string(printableJSON(b.Bytes()))
}

// printableJSON escapes what is not printable, as JSON does. Such characters can only stand in its strings.
func printableJSON(text []byte) []byte {
	printed := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\n' || unicode.IsPrint(r):
			printed = append(printed, text[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			printed = fmt.Appendf(printed, `\u%04x\u%04x`, high, low)
		default:
			printed = fmt.Appendf(printed, `\u%04x`, r)
		}
		text = text[size:]
	}
	return printed
}
