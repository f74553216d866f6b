package verify

import (
	"context"
	"maps"
	"slices"

	"ledgerindexer/ledger"
)

// mostDoubtful is the most suspect offsets that are read again. With more, reading everything again is faster.
const mostDoubtful = 10_000

// suspects are the offsets of updates that may be stored wrongly.
type suspects struct {
	offsets map[ledger.Offset]bool
	more    bool // there are more than mostDoubtful
}

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

// rereadSuspects reads the updates at suspect offsets again, between history floor and watermark, as far as the
// participant still serves them. For offsets at or below the floor it compares the carried snapshot.
func (u *Updates) rereadSuspects(ctx context.Context, s *suspects) error {
	carried := false
	for _, r := range s.ranges() {
		carried = carried || r.From < u.result.Bounds.Floor
		r.From = max(r.From, u.result.Bounds.Floor, u.pruned)
		r.To = min(r.To, u.result.Bounds.Watermark)
		if err := u.readRange(ctx, "updates that are suspect", r, nil); err != nil {
			return err
		}
	}
	if s.more {
		u.note("updates at more than %d offsets that are suspect: run `indexer verify --all --repair`", mostDoubtful)
	}
	if carried {
		return u.carried(ctx)
	}
	return nil
}
