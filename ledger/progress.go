package ledger

import "time"

// Progress is the progress of long work on a stream. Its positions grow: offsets if the work follows the ledger, else a number of
// offsets or units. End is 0 if it is not known.
type Progress struct {
	Stream        string // such as "updates" or "snapshot"
	Unit          string // what is counted, such as "updates" or "contracts"; may be empty
	BeganAt       time.Time
	From, At, End int64
	Done          int64         // units since BeganAt
	Rate          float64       // recent units per second
	Left          time.Duration // until End, at the recent pace; 0: not known
	Ended         bool          // nothing more is to do for now
}

// Part returns how much of the work is done, from 0 to 1; ok is false if its end is not known.
func (p Progress) Part() (part float64, ok bool) {
	if p.End <= p.From {
		return 0, false
	}
	return min(1, max(0, float64(p.At-p.From)/float64(p.End-p.From))), true
}
