package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"ledgerindexer/internal/features/typed"
	"ledgerindexer/ledger"
)

// sortPackages sorts what is vetted on a synchronizer, as the commands below `indexer packages` print it.
func sortPackages(vetted *ledger.VettedPackages) { slices.SortFunc(vetted.Packages, comparePackages) }

// comparePackages sorts by name, then by version number by number, then by id.
func comparePackages(a, b ledger.VettedPackage) int {
	return cmp.Or(strings.Compare(a.PackageName, b.PackageName), typed.CompareVersions(a.PackageVersion, b.PackageVersion),
		strings.Compare(a.PackageID, b.PackageID))
}

// vettingResult is what `packages vet` and `packages unvet` print.
type vettingResult struct {
	Applied bool                   `json:"applied"`
	Past    *ledger.VettedPackages `json:"past"` // null: nothing was ever vetted there
	New     ledger.VettedPackages  `json:"new"`
	Changes []vettingChange        `json:"changes"`
	// Unmatched is what was to be unvetted and was not vetted.
	Unmatched []string `json:"unmatched,omitempty"`
	// NeededBy has the packages that stay vetted though they need what goes, of a change with --force-flag
	// allow-unvetted-dependencies.
	NeededBy []neededBy `json:"needed_by,omitempty"`
	Unknown  string     `json:"unknown,omitempty"` // what could not be found out, and why
	Command  string     `json:"command,omitempty"` // makes the change that was previewed

	all bool // print what stays as it is too
}

// vettingChange is a package that is vetted, unvetted, or given other bounds.
type vettingChange struct {
	Change string                `json:"change"` // vetted, unvetted or changed
	Before *ledger.VettedPackage `json:"before"` // null: was not vetted
	After  *ledger.VettedPackage `json:"after"`  // null: is not vetted any more
}

func newVettingResult(past *ledger.VettedPackages, now ledger.VettedPackages) *vettingResult {
	sortPackages(&now)
	r := &vettingResult{Past: past, New: now, Changes: []vettingChange{}}
	before := map[string]ledger.VettedPackage{}
	if past != nil {
		sortPackages(past)
		for _, p := range past.Packages {
			before[p.PackageID] = p
		}
	}
	for _, p := range r.New.Packages {
		old, was := before[p.PackageID]
		delete(before, p.PackageID)
		switch {
		case !was:
			r.Changes = append(r.Changes, vettingChange{Change: "vetted", After: &p})
		case old.ValidFrom.String() != p.ValidFrom.String() || old.ValidUntil.String() != p.ValidUntil.String():
			r.Changes = append(r.Changes, vettingChange{Change: "changed", Before: &old, After: &p})
		}
	}
	for _, p := range before {
		r.Changes = append(r.Changes, vettingChange{Change: "unvetted", Before: &p})
	}
	slices.SortFunc(r.Changes, func(a, b vettingChange) int { return comparePackages(a.subject(), b.subject()) })
	return r
}

func (c *vettingChange) subject() ledger.VettedPackage {
	if c.After != nil {
		return *c.After
	}
	return *c.Before
}

// text returns a text, "-" for none.
func text(optional *string) string {
	if optional == nil {
		return "-"
	}
	return *optional
}

func (l *vettedList) print(out io.Writer) error {
	if l.Note != "" {
		fmt.Fprintf(out, "Note: %s.\n", l.Note)
	}
	if len(l.Vetted) == 0 {
		fmt.Fprintln(out, "no vetted packages")
		return nil
	}
	titles, whose := []string{"SYNCHRONIZER", "NAME", "VERSION", "PACKAGE ID", "VALID FROM", "VALID UNTIL", "SERIAL"},
		[]string{}
	if l.ParticipantID == "" {
		titles = append([]string{"PARTICIPANT"}, titles...)
	}
	w := newTable(out, titles...)
	for _, state := range l.Vetted {
		if l.ParticipantID == "" {
			whose = []string{state.ParticipantID}
		}
		for _, p := range state.Packages {
			row(w, append(whose, state.SynchronizerID, p.PackageName, p.PackageVersion, p.PackageID, p.ValidFrom.String(),
				p.ValidUntil.String(),
				strconv.Itoa(int(state.TopologySerial)))...)
		}
	}
	return w.Flush()
}

// print shows what changes, as in a diff, and what stays if that is asked for.
func (r *vettingResult) print(out io.Writer) error {
	r.printHead(out)
	if err := r.printPackages(out); err != nil {
		return err
	}
	r.printNeeded(out)
	if len(r.Unmatched) > 0 {
		fmt.Fprintf(out, "\nNot vetted, so not to be unvetted: %s.\n", printable(strings.Join(r.Unmatched, ", ")))
	}
	counts := map[string]int{}
	for _, c := range r.Changes {
		counts[c.Change]++
	}
	summary := fmt.Sprintf("%d vetted, %d unvetted, %d with other bounds", counts["vetted"], counts["unvetted"],
		counts["changed"])
	switch {
	case len(r.Changes) == 0:
		fmt.Fprintln(out, "\nThere is nothing to change.")
	case r.Applied:
		fmt.Fprintf(out, "\nThe change was made: %s.\n", summary)
	default:
		fmt.Fprintf(out, "\nThis is a preview: %s. Nothing was changed. To make the change:\n  %s\n", summary, r.Command)
	}
	return nil
}

func (r *vettingResult) printPackages(out io.Writer) error {
	lines, changed := slices.Clone(r.Changes), map[string]bool{}
	for _, c := range r.Changes {
		changed[c.subject().PackageID] = true
	}
	stay := 0
	for _, p := range r.New.Packages {
		switch {
		case changed[p.PackageID]:
		case r.all:
			lines = append(lines, vettingChange{After: &p})
		default:
			stay++
		}
	}
	slices.SortFunc(lines, func(a, b vettingChange) int { return comparePackages(a.subject(), b.subject()) })
	w := newTable(out)
	line := func(mark string, p *ledger.VettedPackage) {
		if p != nil {
			row(w, mark, p.PackageName, p.PackageVersion, p.ValidFrom.String(), p.ValidUntil.String(), p.PackageID)
		}
	}
	if len(lines) > 0 {
		row(w, " ", "NAME", "VERSION", "VALID FROM", "VALID UNTIL", "PACKAGE ID")
	}
	for _, c := range lines {
		if c.Change == "" {
			line(" ", c.After)
			continue
		}
		line("-", c.Before)
		line("+", c.After)
	}
	err := w.Flush()
	if stay > 0 {
		fmt.Fprintf(out, "%d more stay vetted as they are (--all shows them).\n", stay)
	}
	return err
}

func (r *vettingResult) printNeeded(out io.Writer) {
	for i, n := range r.NeededBy {
		if i == 0 {
			fmt.Fprint(out, "\nNeed what goes, and stay vetted:\n")
		}
		fmt.Fprintf(out, "  %s\n", n.String())
	}
	if r.Unknown != "" {
		fmt.Fprintf(out, "\nNot known: %s.\n", printable(r.Unknown))
	}
}

// label names a package.
func label(p ledger.VettedPackage) string {
	return printable(fmt.Sprintf("%s:%s (%s)", p.PackageName, p.PackageVersion, p.PackageID))
}

func (r *vettingResult) printHead(out io.Writer) {
	w := newTable(out)
	before := "none"
	if r.Past != nil {
		before = strconv.Itoa(int(r.Past.TopologySerial))
	}
	serial := before
	switch {
	case r.Applied:
		serial = fmt.Sprintf("%d, was %s", r.New.TopologySerial, before)
	case len(r.Changes) > 0:
		serial = fmt.Sprintf("%s, would become %d", before, r.New.TopologySerial)
	}
	row(w, "participant", r.New.ParticipantID)
	row(w, "synchronizer", r.New.SynchronizerID)
	row(w, "serial", serial)
	_ = w.Flush() // as with Fprint, an output that is gone needs no text
	fmt.Fprintln(out)
}
