package ledger

import (
	"fmt"
	"strconv"
	"strings"
)

// Disagreement tells in what way what is stored is not what it should be.
type Disagreement string

// The ways to disagree.
const (
	Altered Disagreement = "altered" // a column holds another value
	Missing Disagreement = "missing" // the row is not stored
	Extra   Disagreement = "extra"   // a row is stored that there should not be
)

// Difference is one thing that is not stored as it should be: as the ledger or the transaction history shows it, or, where
// Derived is true, as it follows from what else is stored.
type Difference struct {
	Kind     Disagreement
	Relation string // a table
	Offset   Offset // 0: the row belongs to no offset
	Seq      int64  // of the record of the transaction history that the row belongs to; 0: it belongs to none
	Row      string // tells the row from others at its offset or of its record, such as "node_id 3, ordinal 0"; empty: there is one only
	NodeID   *int32 // of the row, where it has one
	Element  bool   // the row is that of one element of an update, of which there are Update.Elements
	Derived  bool

	// Where Kind is Altered: the column, and both values as PostgreSQL writes them, nil for NULL. In place of a
	// reference stands what it refers to; of binary values longer than 64 bytes their length and their SHA-256.
	Column string
	Wanted *string // what should be stored
	Stored *string
}

// Lacking tells that a column of a stored row holds nothing where there should be a value. A participant that was upgraded
// makes many such: it shows values that it did not show when the rows were written.
func (d Difference) Lacking() bool {
	return d.Kind == Altered && d.Stored == nil && d.Wanted != nil
}

// String is the difference as a sentence. Values stand in quotes, escaped.
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

// Quoted is a value of a column for people: in quotes, escaped, or NULL.
func Quoted(value *string) string {
	if value == nil {
		return "NULL"
	}
	return strconv.Quote(*value)
}

// Range is a range of offsets.
type Range struct{ From, To Offset } // from exclusive, to inclusive

// Bounds is what a database claims to hold of the updates.
type Bounds struct {
	Floor      Offset  // events with a greater offset are complete
	Watermark  Offset  // up to here
	StateFloor *Offset // the active set is known from here on; nil: nowhere
}
