package audit

import (
	"maps"
	"slices"

	"ledgerindexer/ledger"
)

// suspects are the offsets of updates that may be stored wrongly.
type suspects struct {
	offsets map[ledger.Offset]bool
	more    bool // there are more than mostDoubtful
}

// mostDoubtful is the most suspect offsets that are read again. With more, reading everything again is faster.
const mostDoubtful = 10_000

func (s *suspects) add(at ledger.Offset) {
	switch {
	case at <= 0 || s.offsets[at]:
	case len(s.offsets) == mostDoubtful:
		s.more = true
	default:
		if s.offsets == nil {
			s.offsets = map[ledger.Offset]bool{}
		}
		s.offsets[at] = true
	}
}

// has reports whether an offset is among them; it may be, where there are more.
func (s *suspects) has(at ledger.Offset) bool { return s.more || s.offsets[at] }

// ranges returns the offsets in order, adjacent ones as one range.
func (s *suspects) ranges() (ranges []ledger.Range) {
	for _, at := range slices.Sorted(maps.Keys(s.offsets)) {
		if n := len(ranges); n > 0 && ranges[n-1].To == at-1 {
			ranges[n-1].To = at
		} else {
			ranges = append(ranges, ledger.Range{From: at - 1, To: at})
		}
	}
	return ranges
}
