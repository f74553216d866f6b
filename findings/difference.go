package findings

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
)

// Difference is a row, or a column of a row, that is not stored as the ledger or the transaction history shows it or, if Derived is
// true, as it follows from other rows. Its JSON form is for scripts.
type Difference struct {
	Kind     Disagreement  `json:"kind"`
	Relation string        `json:"relation"`      // a table
	Offset   ledger.Offset `json:"ledger_offset"` // 0: the row belongs to no offset
	Seq      int64         `json:"seq,omitempty"` // of the record of the transaction history that the row belongs to; 0: it belongs to none
	NodeID   *int32        `json:"node_id"`       // of the row; nil: it has none
	// Row identifies the row among those of its offset or record, such as "node_id 3, ordinal 0"; empty: there is only one.
	Row string `json:"row"`
	// Since is the offset at which a lifetime begins; Offset is where it ends. 0: the row is none.
	Since   ledger.Offset `json:"-"`
	Element bool          `json:"-"` // the row is that of an element of an update; ledger.Update.Elements counts these
	Derived bool          `json:"-"`

	// If Kind is Altered: the column, and both values as PostgreSQL writes them, nil for NULL. References are resolved; binary
	// values longer than 64 bytes are given by length and SHA-256.
	Column string  `json:"column,omitempty"`
	Wanted *string `json:"ledger"` // what should be stored
	Stored *string `json:"stored"`
}

// Lacking reports that a column is NULL and should have a value. An upgraded participant causes many of these: it shows values that
// it did not show when the rows were written.
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

// Quoted returns a value of a column for messages: in quotes, escaped, or NULL.
func Quoted(value *string) string {
	if value == nil {
		return "NULL"
	}
	return strconv.Quote(*value)
}
