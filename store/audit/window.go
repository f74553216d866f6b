package audit

// Window is a range of a stream that is compared with its source, and sealed, as a whole.
type Window struct {
	From, To int64 // From exclusive; offsets, or seqs of the transaction history
	Full     bool  // it will not grow: it has as many updates as a window may have, or another window follows
	Again    bool  // it was sealed before, and has to be compared again with the same bounds
	Pruned   bool  // of a snapshot: its rows were made of what was stored, so that it is sealed and not compared
}

// SealResult is the result of comparing a window, as ledger.verifications names it.
type SealResult string

// The results.
const (
	SealEqual     SealResult = "equal"
	SealDifferent SealResult = "different"
	SealNotShown  SealResult = "not_shown" // the source does not show it any more
	// pruned here: of records, the updates that they follow from; of a snapshot, which pruning made, those below it
	SealPruned SealResult = "pruned"
)

// firstDifferences is how many differences a Comparison keeps.
const firstDifferences = 5

// Comparison is the result of comparing a window with its source.
type Comparison struct {
	Differences int64
	Lacking     int64        // how many of them are Lacking
	First       []Difference // the first few of them
	Rendered    int64        // interface views that the server renders otherwise, which are no differences
	AsRendered  []Difference // the first few of these
}

// Add counts a difference, or a view that is rendered otherwise. It never fails.
func (c *Comparison) Add(d Difference) error {
	if d.Rendering != nil {
		c.Rendered++
		if len(c.AsRendered) < firstDifferences {
			c.AsRendered = append(c.AsRendered, d)
		}
		return nil
	}
	c.Differences++
	if d.Lacking() {
		c.Lacking++
	}
	if len(c.First) < firstDifferences {
		c.First = append(c.First, d)
	}
	return nil
}

// Result returns SealEqual or SealDifferent.
func (c *Comparison) Result() SealResult {
	if c.Differences > 0 {
		return SealDifferent
	}
	return SealEqual
}

// RowsDigest is a digest of a window's rows, and identifies the repairs up to then.
type RowsDigest struct {
	Rows    []byte // SHA-256
	Repairs string // changes with each repair
}
