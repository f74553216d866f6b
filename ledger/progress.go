package ledger

import "time"

// Progress is the progress of long work on a stream. Its positions are offsets if the work follows the ledger, else
// numbers of offsets or units that are done. Its JSON form is for scripts.
type Progress struct {
	Stream    string        `json:"stream"` // such as "updates" or "snapshot"
	Unit      string        `json:"unit"`   // what UnitsDone and Rate count, such as "contracts"; may be empty
	BeganAt   time.Time     `json:"began_at"`
	Start     int64         `json:"from"`         // the position at BeganAt
	Position  int64         `json:"at"`           // the position now
	End       int64         `json:"end,omitzero"` // the position at which the work ends; 0: not known
	UnitsDone int64         `json:"done"`         // since BeganAt
	Rate      float64       `json:"per_second"`   // recent units per second
	TimeLeft  time.Duration `json:"-"`            // until Position reaches End, at the recent rate; 0: not known
	Ended     bool          `json:"-"`            // nothing more is to do for now
}

// Part returns how much of the work is done, from 0 to 1; ok is false if its end is not known.
func (p Progress) Part() (part float64, ok bool) {
	if p.End <= p.Start {
		return 0, false
	}
	return min(1, max(0, float64(p.Position-p.Start)/float64(p.End-p.Start))), true
}
