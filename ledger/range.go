package ledger

// Range is a range of offsets.
type Range struct{ From, To Offset } // from exclusive, to inclusive

// Bounds is the range of updates that a database holds, as recorded.
type Bounds struct {
	Floor      Offset  // the history floor: events are complete after it,
	Watermark  Offset  // up to here
	StateFloor *Offset // the active set is known from here on; nil: nowhere
}
