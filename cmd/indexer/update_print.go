package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"ledgerindexer/store/audit"
)

func (r *updateReport) print(out io.Writer) error {
	l := newLabelled(out)
	l.line("update", brief(r.UpdateID))
	if u := r.update; u != nil {
		l.line("ledger", fmt.Sprintf("%s at offset %d", u.Kind, u.Offset))
	} else if r.Ledger.Error != "" {
		l.line("ledger", noAnswer)
	} else {
		l.line("ledger", "does not show it")
	}
	l.line("database", fmt.Sprintf("%s, events after offset %d up to %d", r.Database.Address, r.Database.HistoryFloor,
		r.Database.Watermark))
	l.line("result", r.Explanation)
	if err := l.w.Flush(); err != nil {
		return err
	}
	if err := r.printDifferences(out); err != nil {
		return err
	}
	if len(r.Ledger.Raw) > 0 {
		fmt.Fprintf(out, "\nin the ledger\n%s\n", indented(r.Ledger.Raw))
	}
	if len(r.Database.Rows) == 0 {
		return nil
	}
	stored, err := json.Marshal(r.Database.Rows)
	if err == nil {
		fmt.Fprintf(out, "\nstored\n%s\n", indented(stored))
	}
	return err
}

func (r *updateReport) printDifferences(out io.Writer) error {
	if len(r.Differences) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	w := newTable(out, "RELATION", "OFFSET", "ROW", "COLUMN", "LEDGER", "STORED")
	for _, d := range r.Differences {
		left, right := "a row", "a row"
		switch d.Kind {
		case "missing":
			right = "no row"
		case "extra":
			left = "no row"
		default:
			left, right = excerpts(d.Wanted, d.Stored)
		}
		column := d.Column
		if d.Rendering != nil {
			column = strings.TrimSpace(column + " (rendered otherwise)")
		}
		row(w, d.Relation, strconv.FormatInt(int64(d.Offset), 10), d.Row, column, left, right)
		if r := d.Rendering; r != nil && d.Column != audit.PackageColumn {
			left, right = excerpts(r.Ledger, r.Stored)
			row(w, d.Relation, strconv.FormatInt(int64(d.Offset), 10), d.Row, audit.PackageColumn, left, right)
		}
	}
	return w.Flush()
}

// excerpts shortens two values to where they differ.
func excerpts(a, b *string) (string, string) {
	const before, after = 20, 80
	if a == nil || b == nil {
		return excerpt(a, 0, before+after), excerpt(b, 0, before+after)
	}
	same := 0
	for same < min(len(*a), len(*b)) && (*a)[same] == (*b)[same] {
		same++
	}
	return excerpt(a, same-before, same+after), excerpt(b, same-before, same+after)
}

func excerpt(value *string, from, to int) string {
	if value == nil {
		return "NULL"
	}
	from, to = max(0, from), min(len(*value), to)
	cut := `"` + (*value)[from:to] + `"`
	if from > 0 {
		cut = "…" + cut
	}
	if to < len(*value) {
		cut += "…"
	}
	return cut
}
