package ledger

import (
	"cmp"
	"slices"
)

// HistoryMatcher finds out which stored records the ones are that a service shows: those with the same event id and
// fingerprint, each once.
type HistoryMatcher struct {
	records map[recordIdentity][]StoredRecord
}

type recordIdentity struct {
	eventID     string
	fingerprint int64
}

// NewHistoryMatcher makes a matcher of stored records that were not met yet, in any order.
func NewHistoryMatcher(stored []StoredRecord) *HistoryMatcher {
	m := &HistoryMatcher{records: make(map[recordIdentity][]StoredRecord, len(stored))}
	for _, record := range stored {
		key := recordIdentity{record.EventID, record.Fingerprint}
		m.records[key] = append(m.records[key], record)
	}
	for _, equal := range m.records {
		slices.SortFunc(equal, func(a, b StoredRecord) int {
			return cmp.Or(cmp.Compare(goneLast(a), goneLast(b)), cmp.Compare(a.Seq, b.Seq))
		})
	}
	return m
}

func goneLast(r StoredRecord) int {
	if r.Gone {
		return 1
	}
	return 0
}

// Equal is how many equal records were not taken yet.
func (m *HistoryMatcher) Equal(eventID string, fingerprint int64) int {
	return len(m.records[recordIdentity{eventID, fingerprint}])
}

// TakeAt takes the equal record with a seq, where there is one that was not taken yet.
func (m *HistoryMatcher) TakeAt(eventID string, fingerprint, seq int64) (record StoredRecord, ok bool) {
	return m.take(eventID, fingerprint, func(r StoredRecord) bool { return r.Seq == seq && !r.Gone })
}

// Take takes the equal record with the lowest seq of those that were not taken yet; those that are gone come last. ok is
// false where there is none.
func (m *HistoryMatcher) Take(eventID string, fingerprint int64) (record StoredRecord, ok bool) {
	return m.take(eventID, fingerprint, func(StoredRecord) bool { return true })
}

func (m *HistoryMatcher) take(eventID string, fingerprint int64, which func(StoredRecord) bool) (StoredRecord, bool) {
	key := recordIdentity{eventID, fingerprint}
	equal := m.records[key]
	i := slices.IndexFunc(equal, which)
	if i < 0 {
		return StoredRecord{}, false
	}
	record := equal[i]
	m.records[key] = slices.Delete(equal, i, i+1)
	return record, true
}
