package ledger

// Range is a range of offsets.
type Range struct{ From, To Offset } // from exclusive, to inclusive

// Bounds is the range of updates that a database holds, as recorded.
type Bounds struct {
	Floor      Offset  `json:"history_floor"` // events are complete after it,
	Watermark  Offset  `json:"watermark"`     // up to here
	StateFloor *Offset `json:"-"`             // the active set is known from here on; nil: nowhere
	PrunedTo   Offset  `json:"-"`             // an operator pruned up to here; 0: nothing was pruned. History may have been filled in below since
}
