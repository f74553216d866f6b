package ledger

// Range is a range of offsets, from one that is not in it to one that is.
type Range struct {
	From Offset `json:"from_exclusive"`
	To   Offset `json:"to_inclusive"`
}

// Bounds is the range of updates that a database holds, as recorded.
type Bounds struct {
	Floor      Offset  `json:"history_floor"` // events are complete after it,
	Watermark  Offset  `json:"watermark"`     // up to here
	StateFloor *Offset `json:"-"`             // the active set is known from here on; nil: nowhere
	// an operator pruned up to here; 0: nothing was pruned.
	PrunedTo Offset `json:"-"`
}
