package audit

import (
	"fmt"
	"strconv"
	"strings"

	"ledgerindexer/ledger"
)

// Disagreement is the kind of a Difference.
type Disagreement string

// The kinds of a Difference.
const (
	Altered Disagreement = "altered" // a column holds another value
	Missing Disagreement = "missing" // the row is not stored
	Extra   Disagreement = "extra"   // a row is stored that should not be
	// another row says something else, and which of the two is wrong is not known
	Contradictory Disagreement = "contradictory"
)

// Difference is a row, or a column of a row, that is not stored as the ledger or the transaction history shows it or,
// if Derived is true, as it follows from other rows. Its JSON form is for scripts.
type Difference struct {
	Kind     Disagreement  `json:"kind"`
	Relation string        `json:"relation"`      // a table
	Offset   ledger.Offset `json:"ledger_offset"` // 0: the row belongs to no offset
	// of the record of the transaction history that the row belongs to; 0: it belongs to none
	Seq    int64  `json:"seq,omitempty"`
	NodeID *int32 `json:"node_id"` // of the row; nil: it has none
	// Row identifies the row among those of its offset or record, such as "node_id 3, ordinal 0"; empty: there is only
	// one.
	Row string `json:"row"`
	// Since is the offset at which a lifetime begins; Offset is where it ends. 0: the row is none.
	Since   ledger.Offset `json:"-"`
	Element bool          `json:"-"` // the row is that of an element of an update; ledger.Update.Elements counts these
	Derived bool          `json:"-"`

	// If Kind is Altered: the column, and both values as PostgreSQL writes them, nil for NULL. References are resolved;
	// binary values longer than 64 bytes are given by length and SHA-256.
	Column string  `json:"column,omitempty"`
	Wanted *string `json:"ledger"` // what should be stored
	Stored *string `json:"stored"`
	// If Kind is Contradictory: what speaks against the row.
	Says string `json:"says,omitempty"`
	// Rendering is not nil where nothing is wrong: what differs is an interface view, which the server computes when it is
	// asked.
	Rendering *Rendering `json:"rendering,omitempty"`
}

// Rendering says by which package an interface view was computed. nil: the server did not say so, or there is no such
// view.
type Rendering struct {
	Ledger *string `json:"ledger"` // now
	Stored *string `json:"stored"` // what is stored
}

// String returns the end of a sentence about a view.
func (r Rendering) String() string {
	if r.Ledger == nil && r.Stored == nil {
		return "rendered otherwise"
	}
	by := func(id *string) string {
		if id == nil {
			return "no package"
		}
		return "package " + strconv.Quote(*id)
	}
	return fmt.Sprintf("rendered otherwise, by %s now and by %s as stored", by(r.Ledger), by(r.Stored))
}

// Lacking reports that a column is NULL and should have a value. An upgraded participant causes many of these: it shows
// values that it did not show when the rows were written.
func (d Difference) Lacking() bool {
	return d.Kind == Altered && d.Stored == nil && d.Wanted != nil
}

// String returns the difference as a sentence, with quoted values.
func (d Difference) String() string {
	where := d.Relation
	if d.Offset > 0 {
		where += fmt.Sprintf(" at offset %d", d.Offset)
	}
	if d.Seq > 0 {
		where += fmt.Sprintf(", seq %d", d.Seq)
	}
	if d.Row != "" {
		where += ", " + strings.Trim(strconv.Quote(d.Row), `"`)
	}
	switch {
	case d.Rendering != nil:
		return where + ": " + d.Rendering.String() + d.rendered()
	case d.Kind == Contradictory:
		return where + ": " + d.Says
	case d.Kind == Missing:
		return where + ": the row is not stored"
	case d.Kind == Extra && d.Derived:
		return where + ": the row is stored, and does not follow from the facts"
	case d.Kind == Extra:
		return where + ": the row is stored, and the ledger has none"
	case d.Derived:
		return fmt.Sprintf("%s: %s is %s, and should be %s", where, d.Column, Quoted(d.Stored), Quoted(d.Wanted))
	}
	return fmt.Sprintf("%s: %s is %s, and %s in the ledger", where, d.Column, Quoted(d.Stored), Quoted(d.Wanted))
}

// rendered returns what is otherwise in a view that is rendered otherwise, beside the package.
func (d Difference) rendered() string {
	switch {
	case d.Kind == Missing:
		return ", which shows this one now"
	case d.Kind == Extra:
		return ", which does not show this one any more"
	case d.Column == PackageColumn || d.Column == "":
		return ""
	}
	return fmt.Sprintf(": %s is %s, and %s in the ledger", d.Column, Quoted(d.Stored), Quoted(d.Wanted))
}

// PackageColumn is the column of interface views that says by which package one was computed.
const PackageColumn = "implementation_package_id"

// Quoted returns a value of a column for messages: in quotes, escaped, or NULL.
func Quoted(value *string) string {
	if value == nil {
		return "NULL"
	}
	return strconv.Quote(*value)
}

// derivedDifference returns a difference of a row that belongs to no offset.
func derivedDifference(kind Disagreement, relation, row string) Difference {
	return Difference{Kind: kind, Relation: relation, Row: row, Derived: true}
}

func textOf(n int64) *string { return new(strconv.FormatInt(n, 10)) }

// Found is called for each difference.
type Found = func(Difference)

func ignore(Difference) {}
