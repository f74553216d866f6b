package ledger

import "time"

// Progress is how far long work on a stream has come. Places, which grow, are offsets where the work goes along the
// ledger, of other work so many offsets or units; End is 0 where it is not known.
type Progress struct {
	Stream        string // such as "updates" or "snapshot"
	Unit          string // what is counted, such as "updates" or "contracts"; may be empty
	BeganAt       time.Time
	From, At, End int64
	Done          int64         // units since BeganAt
	Rate          float64       // units per second, of late
	Left          time.Duration // until End, at the pace of late; 0: not known
	Ended         bool          // nothing more is to do for now
}

// Part is how much of the work is done, from 0 to 1; ok is false where its end is not known.
func (p Progress) Part() (part float64, ok bool) {
	if p.End <= p.From {
		return 0, false
	}
	return min(1, max(0, float64(p.At-p.From)/float64(p.End-p.From))), true
}
