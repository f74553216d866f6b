package check

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// titles are the headings of the groups of findings in the report for people.
var titles = map[string]string{
	GroupLedger: "Ledger", GroupToken: "Token", GroupScope: "What is to be read", GroupPosition: "Where the ledger stands",
	GroupScan: "Scan", GroupDatabase: "Database", GroupClocks: "Clocks",
}

// Print writes the report for people: a line for each finding with its cure, then the summary and the next commands.
func (r Report) Print(w io.Writer) error {
	widest := 0
	for _, f := range r.Findings {
		widest = max(widest, len(f.Topic))
	}
	indent := strings.Repeat(" ", len("  problem  ")+widest+2)
	var b strings.Builder
	group := ""
	for _, f := range r.Findings {
		if f.Group != group {
			if group != "" {
				b.WriteByte('\n')
			}
			group = f.Group
			b.WriteString(titles[group] + "\n")
		}
		fmt.Fprintf(&b, "  %-7s  %-*s  %s\n", f.Level, widest, f.Topic, f.Text)
		if f.Do != "" {
			fmt.Fprintf(&b, "%sWhat to do: %s\n", indent, f.Do)
		}
		for _, line := range f.Paste {
			fmt.Fprintf(&b, "%s    %s\n", indent, line)
		}
	}
	fmt.Fprintf(&b, "\n%s\n", r.Summary())
	for _, line := range r.Next {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Summary returns the report in one sentence.
func (r Report) Summary() string {
	checked := slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Level != Note })
	found := "Nothing is wrong with what was checked"
	switch {
	case !checked:
		found = "Nothing was checked"
	case r.Problems > 0 && r.Warnings > 0:
		found = fmt.Sprintf("%s and %s", plural(r.Problems, "problem"), plural(r.Warnings, "warning"))
	case r.Problems > 0:
		found = plural(r.Problems, "problem")
	case r.Warnings > 0:
		found = "No problem, " + plural(r.Warnings, "warning")
	}
	if checked && !r.checked(GroupDatabase) {
		found += "; the database was not checked"
	}
	if len(r.Next) > 0 {
		return found + ". Continue with:"
	}
	return found + "."
}

// checked reports whether a group says more than what was not checked.
func (r Report) checked(group string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Group == group && f.Level != Note })
}
