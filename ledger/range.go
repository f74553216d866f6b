package ledger

// Range is a range of offsets, from one that is not in it to one that is.
type Range struct {
	From Offset `json:"from_exclusive"`
	To   Offset `json:"to_inclusive"`
}
