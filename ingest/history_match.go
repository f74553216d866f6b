package ingest

import (
	"slices"

	"ledgerindexer/ledger"
)

// A window of at least so many marks may have been cut; a shorter one begins with the history. See [HistorySink].
const longWindow = 100

// beginsHistory tells whether the window begins with the history, as far as is known.
func beginsHistory(at *ledger.HistoryPosition) bool {
	return len(at.Window) < longWindow || at.LastSeq == int64(len(at.Window))
}

// sameRecord tells whether a record is the one that was stored, or equal to it.
func sameRecord(mark ledger.HistoryMark, record *ledger.Transaction) bool {
	return mark.EventID == record.EventID && mark.Fingerprint == record.Fingerprint()
}

// matchPage compares a page with the marks that stand behind the one after which it was asked, place by place. matched
// is how many came again; differs says that another record stands behind those.
func matchPage(known []ledger.HistoryMark, page []ledger.Transaction) (matched int, differs bool) {
	n := min(len(known), len(page))
	for i := range n {
		if !sameRecord(known[i], &page[i]) {
			return i, true
		}
	}
	return n, false
}

// startAfter chooses the mark after which to read, as an index in the window: the newest that has overlap marks behind
// it, or, to match the whole window, the oldest. -1 is the beginning of the history: where the window begins with it, or
// there is no other.
func startAfter(at *ledger.HistoryPosition, refused map[string]bool, overlap int, whole bool) int {
	oldest := -1
	if !beginsHistory(at) {
		oldest = firstCursor(at.Window, refused)
	}
	if whole {
		return oldest
	}
	return max(oldest, lastCursor(at.Window[:max(0, len(at.Window)-overlap)], refused))
}

func usable(mark ledger.HistoryMark, refused map[string]bool) bool {
	return mark.Unique && !refused[mark.EventID]
}

// firstCursor is the index of the first mark after which can be read; -1: there is none.
func firstCursor(marks []ledger.HistoryMark, refused map[string]bool) int {
	return slices.IndexFunc(marks, func(mark ledger.HistoryMark) bool { return usable(mark, refused) })
}

// lastCursor is the index of the last mark after which can be read; -1: there is none.
func lastCursor(marks []ledger.HistoryMark, refused map[string]bool) int {
	for i := len(marks) - 1; i >= 0; i-- {
		if usable(marks[i], refused) {
			return i
		}
	}
	return -1
}

// lookFor is how many of the newest records to ask for, so that they can be recognised as the end of the window: all
// whose ids are shared, one whose id is unique, and one more, or a copy of that one would look like it; least of them
// where the window has so many. There are never more than can be asked for.
func lookFor(window []ledger.HistoryMark, least int) int {
	shared := len(window) - 1 - lastCursor(window, nil)
	return min(max(min(least, len(window)), shared+2), mostNewest)
}

// endsWith tells whether the newest records, the newest first, are the last ones of the window. Records that share
// their ids prove that only together with one whose id is unique, as the whole window, or as all that can be asked for.
func endsWith(at *ledger.HistoryPosition, newest []ledger.Transaction) bool {
	if len(newest) == 0 {
		return at.LastSeq == 0
	}
	window := at.Window
	proof := len(newest) == min(len(window), mostNewest)
	for i := range newest {
		if i >= len(window) {
			// It stands before the window, unless that is all there is, or it is a copy.
			if beginsHistory(at) || newest[i].EventID == window[0].EventID {
				return false
			}
			break
		}
		mark := window[len(window)-1-i]
		if !sameRecord(mark, &newest[i]) {
			return false
		}
		proof = proof || mark.Unique
	}
	return proof
}

// unaccounted is the index of the first record whose event id is stored already, other than on the marks that came again
// before it in their places; -1: there is none. Where several of those marks share the id, they are why it is stored.
func unaccounted(records []ledger.Transaction, stored map[string]bool, matched []ledger.HistoryMark) int {
	if len(stored) == 0 { // mostly
		return -1
	}
	accounted := map[string]int{}
	for _, mark := range matched {
		accounted[mark.EventID]++
		if mark.Unique {
			accounted[mark.EventID]++
		}
	}
	return slices.IndexFunc(records, func(record ledger.Transaction) bool {
		return stored[record.EventID] && accounted[record.EventID] < 2
	})
}

// eventIDs are the ids of records, each once.
func eventIDs(records []ledger.Transaction) []string {
	ids := make([]string, len(records))
	for i := range records {
		ids[i] = records[i].EventID
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// sameRecords tells whether two pages hold the same records.
func sameRecords(a, b []ledger.Transaction) bool {
	return slices.EqualFunc(a, b, func(a, b ledger.Transaction) bool {
		return a.EventID == b.EventID && a.Fingerprint() == b.Fingerprint()
	})
}

func hasEventID(page []ledger.Transaction, id string) bool {
	return slices.ContainsFunc(page, func(record ledger.Transaction) bool { return record.EventID == id })
}
