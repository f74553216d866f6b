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

// newTable begins a table, in which the commands print lists, with the titles of its columns. Flush writes it.
func newTable(out io.Writer, titles ...string) *tabwriter.Writer {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(titles) > 0 {
		row(w, titles...)
	}
	return w
}

// row prints one line of a table. Its cells come from the ledger.
func row(w io.Writer, cells ...string) {
	for i, cell := range cells {
		cells[i] = cmp.Or(printable(cell), "-")
	}
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}

// labelled prints lines that begin with a label; an empty label continues the one before.
type labelled struct{ w *tabwriter.Writer }

func newLabelled(out io.Writer) labelled { return labelled{newTable(out)} }

// line prints a text that may contain data of the ledger.
func (l labelled) line(label, text string) { fmt.Fprintf(l.w, "%s\t%s\n", label, printable(text)) }

// say prints our own text, in which data is quoted already.
func (l labelled) say(label, text string) { fmt.Fprintf(l.w, "%s\t%s\n", label, harmless(text)) }

// printable escapes what a terminal would interpret, and what could be mistaken for something else.
func printable(text string) string {
	return config.Escape(text, func(r rune) bool { return unicode.IsPrint(r) && r != '\\' })
}

// harmless escapes what a terminal would interpret. It is for errors, in which data is quoted already, so that it does
// not double their backslashes.
func harmless(text string) string { return config.Escape(text, unicode.IsPrint) }

// noAnswer replaces the ledger's answer in a printed report. The command ends with the error.
const noAnswer = "no answer (see the error)"

// errorText returns an error with its cure, if it has one.
func errorText(err error) string {
	if problem, ok := errors.AsType[*ledger.Problem](err); ok {
		return fmt.Sprintf("%v; what to do: %s", err, problem.Do)
	}
	return err.Error()
}

// briefRunes is the most that is printed of one text of the ledger among others; real ids are shorter.
const briefRunes = 300

// brief shortens a text for printing. JSON has it in full.
func brief(text string) string {
	n := 0
	for i := range text {
		if n++; n > briefRunes {
			return fmt.Sprintf("%s… (%d bytes)", text[:i], len(text))
		}
	}
	return text
}

// jsonFlag is the flag of commands that print a report. What they report has a JSON form, which is for scripts.
type jsonFlag struct {
	JSON bool `name:"json" env:"-" help:"Print JSON."`
}

// show prints a report as JSON, or as people read it.
func (f jsonFlag) show(out io.Writer, report interface{ print(out io.Writer) error }) error {
	if f.JSON {
		return writeReport(out, report)
	}
	return report.print(out)
}

// writeReport prints a value as JSON without characters that a terminal would interpret.
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

// indented formats a JSON value over several lines, without characters that a terminal would interpret.
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
