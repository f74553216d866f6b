package verify

import "slices"

// historyMark is where a stored record stands in the service's order.
type historyMark struct {
	place int64 // among the records that the service shows, from 0
	seq   int64
}

// backbone are the marks, in the order of places, that stand in the order of seq, too: as many as possible, but for those
// that stand at a distance of their own from their place. It is nil where fewer than three of four do: then the service
// has another order than the stored one, and places tell nothing.
func backbone(marks []historyMark) []historyMark {
	// The marks that end the longest rising sequences of each length, and each mark's predecessor in its own.
	var ends []int
	before := make([]int, len(marks))
	for i := range marks {
		n, _ := slices.BinarySearchFunc(ends, marks[i].seq, func(end int, seq int64) int {
			if marks[end].seq < seq {
				return -1
			}
			return 1
		})
		before[i] = -1
		if n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	if len(ends) == 0 || 4*len(ends) < 3*len(marks) {
		return nil
	}
	rising := make([]historyMark, 0, len(ends))
	for i := ends[len(ends)-1]; i >= 0; i = before[i] {
		rising = append(rising, marks[i])
	}
	slices.Reverse(rising)
	// Of two neighbours that changed places one is in order.
	distance := func(i int) int64 { return rising[i].seq - rising[i].place }
	kept := make([]historyMark, 0, len(rising))
	for i := range rising {
		if len(rising) == 1 || i > 0 && distance(i) == distance(i-1) || i+1 < len(rising) && distance(i) == distance(i+1) {
			kept = append(kept, rising[i])
		}
	}
	return kept
}

// seqAt is the seq that a record at a place should have by the marks around it: where there are as many places between two
// marks as seqs. Behind the last mark it counts on from it, up to last; 0: that can't be told.
func seqAt(marks []historyMark, place, last int64) int64 {
	i, met := slices.BinarySearchFunc(marks, place, func(m historyMark, place int64) int {
		switch {
		case m.place < place:
			return -1
		case m.place > place:
			return 1
		}
		return 0
	})
	switch {
	case met:
		return marks[i].seq
	case i == 0:
		return 0
	}
	a := marks[i-1]
	seq := a.seq + place - a.place
	if i < len(marks) {
		if b := marks[i]; b.seq-a.seq != b.place-a.place {
			return 0
		}
		return seq
	}
	if seq > last {
		return 0
	}
	return seq
}
