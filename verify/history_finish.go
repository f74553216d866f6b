package verify

import (
	"context"
	"fmt"
	"slices"

	"ledgerindexer/ledger"
)

// So many of the last records must have come in their places, or as many as there are, before it is certain that the
// service is the one whose history was read, and that it shows all of that.
const certainMarks = 50

// mostLeft is how many stored records that the service does not show are dealt with at once.
const mostLeft = 10_000

// leftRecord is a stored record that the service did not show.
type leftRecord struct {
	ledger.StoredRecord
	doubled bool // an equal one was met
}

// finish judges, when everything was read, what was not recognised, and what was not met.
func (r *historyReading) finish(ctx context.Context) error {
	if err := r.network(ctx); err != nil {
		return err
	}
	if r.standing.Rereading {
		r.note("which records of the transaction history are missing or too many: the daemon is reading it again from its beginning")
		return nil
	}
	if err := r.suspectsInPlace(ctx); err != nil {
		return err
	}
	end, certain := r.end()
	if !certain && r.standing.LastSeq > 0 {
		r.note("what the service shows no more, or not yet: it is behind what is stored, or its order is another one (%d of %d stored records were met)",
			r.result.Records, r.standing.LastSeq)
	}
	left, err := r.left(ctx, certain)
	if err != nil {
		return err
	}
	if left, err = r.suspectsAmong(ctx, left); err != nil {
		return err
	}
	r.suspects = slices.DeleteFunc(r.suspects, func(s shownRecord) bool { return !certain || s.place > end })
	if len(left)+len(r.suspects) == 0 {
		return nil
	}
	if err := r.unchanged(ctx); err != nil {
		return err
	}
	if err := r.addMissing(ctx); err != nil {
		return err
	}
	return r.dropLeft(ctx, left)
}

// network compares the stored network with the service's, of which something is stored.
func (r *historyReading) network(ctx context.Context) error {
	wanted, stored := r.networkID, r.standing.NetworkID
	if wanted == "" || wanted == stored || r.result.Records == 0 {
		return nil
	}
	d := ledger.Difference{Kind: ledger.Missing, Relation: "network"}
	if stored != "" {
		d = ledger.Difference{Kind: ledger.Altered, Relation: "network", Column: "network_id", Wanted: &wanted, Stored: &stored}
	}
	if err := r.tell(d); err != nil || r.Repairer == nil {
		return err
	}
	return r.repair(ctx, func() error { return r.Repairer.RepairNetwork(ctx, wanted) })
}

// suspectsInPlace takes the records that were not recognised for the ones that are stored in their places, where these were
// not met anywhere.
func (r *historyReading) suspectsInPlace(ctx context.Context) error {
	places, err := r.inPlaces(ctx, r.suspects)
	if err != nil {
		return err
	}
	var records []ledger.NumberedRecord
	r.suspects = slices.DeleteFunc(r.suspects, func(s shownRecord) bool {
		stored, isStored := places[s.wanted]
		if s.wanted == 0 || r.met.has(s.wanted) || isStored && stored.Gone {
			return false
		}
		r.met.set(s.wanted)
		records = append(records, ledger.NumberedRecord{Seq: s.wanted, Record: s.record})
		return true
	})
	if len(r.suspects) > mostSuspects {
		return &ledger.Problem{
			What: fmt.Sprintf("more than %d records that the service of the transaction history shows are not stored, such as event id %q", mostSuspects, r.suspects[0].record.EventID),
			Do:   "see that --scan-url leads to the service that was read from; if it does, let the daemon read on and verify again",
		}
	}
	return r.compareRecords(ctx, records)
}

// end is the place to which the service's history was read. certain is false where the service does not show as much, or
// shows other records before that.
func (r *historyReading) end() (place int64, certain bool) {
	window := r.standing.Window
	places := make(map[int64]int64, len(r.marks))
	for _, mark := range r.marks {
		places[mark.seq] = mark.place
	}
	met, inPlace := 0, 0
	for i := range min(certainMarks, len(window)) {
		at, ok := places[window[len(window)-1-i]]
		if !ok {
			continue
		}
		if met++; met == 1 {
			place = at + int64(i)
		}
		if at == place-int64(i) {
			inPlace++
		}
	}
	return place, met > 0 && 4*inPlace >= 3*min(certainMarks, len(window)) && place < r.read
}

// left are the stored records that were not met and that the service has passed by, but for those that are marked as gone.
func (r *historyReading) left(ctx context.Context, certain bool) ([]leftRecord, error) {
	var left []leftRecord
	for from := int64(0); from < r.standing.LastSeq; from += 1000 {
		seqs := seqsAfter(from, min(from+1000, r.standing.LastSeq))
		seqs = slices.DeleteFunc(seqs, r.met.has)
		if len(seqs) == 0 {
			continue
		}
		part, err := r.unmet(ctx, seqs)
		if err != nil {
			return nil, err
		}
		left = append(left, slices.DeleteFunc(part, func(l leftRecord) bool { return !certain && !r.passedBy(&l) })...)
		if len(left) > mostLeft {
			return nil, &ledger.Problem{
				What: fmt.Sprintf("the service of the transaction history does not show more than %d of the stored records, such as event id %q with seq %d",
					mostLeft, left[0].EventID, left[0].Seq),
				Do: "see whether the service lost a part of its history; if so, read from another one (--scan-url)",
			}
		}
	}
	return left, nil
}

// passedBy tells whether the service shows a record behind the place of a stored one. Records that share an event id stand
// together, so that a copy of a record that was met is too many once the service shows another id.
func (r *historyReading) passedBy(l *leftRecord) bool {
	return l.Seq < r.passed && r.passed >= r.standing.OrderedFrom || l.doubled && l.EventID != r.last
}

// unmet are the stored records with some seqs that are not marked as gone.
func (r *historyReading) unmet(ctx context.Context, seqs []int64) ([]leftRecord, error) {
	_, stored, err := r.Database.FindRecords(ctx, nil, seqs)
	if err != nil {
		return nil, err
	}
	var left []leftRecord
	var ids []string
	for _, record := range stored {
		if !record.Gone {
			left = append(left, leftRecord{StoredRecord: record})
			ids = append(ids, record.EventID)
		}
	}
	if _, stored, err = r.Database.FindRecords(ctx, ids, nil); err != nil {
		return nil, err
	}
	for i := range left {
		left[i].doubled = slices.ContainsFunc(stored, func(s ledger.StoredRecord) bool {
			return s.EventID == left[i].EventID && s.Fingerprint == left[i].Fingerprint && r.met.has(s.Seq)
		})
	}
	return left, nil
}

// suspectsAmong takes records that were not recognised, and whose places can't be told, for left ones with the same
// fingerprint or event id, and gives the rest.
func (r *historyReading) suspectsAmong(ctx context.Context, left []leftRecord) ([]leftRecord, error) {
	var records []ledger.NumberedRecord
	r.suspects = slices.DeleteFunc(r.suspects, func(s shownRecord) bool {
		i := slices.IndexFunc(left, func(l leftRecord) bool { return l.Fingerprint == s.fingerprint })
		if i < 0 {
			i = slices.IndexFunc(left, func(l leftRecord) bool { return l.EventID == s.record.EventID && !l.doubled })
		}
		if i < 0 {
			return false
		}
		r.met.set(left[i].Seq)
		records = append(records, ledger.NumberedRecord{Seq: left[i].Seq, Record: s.record})
		left = slices.Delete(left, i, i+1)
		return true
	})
	return left, r.compareRecords(ctx, records)
}

// unchanged makes sure that the history which was read is still the one that is served.
func (r *historyReading) unchanged(ctx context.Context) error {
	var beginning []ledger.Transaction
	err := Patiently(ctx, r.Logger, func() (err error) {
		beginning, err = r.Source.TransactionsAfter(ctx, "")
		return err
	})
	if err == nil && (len(beginning) < len(r.first) || !beginsAlike(r.first, beginning)) {
		err = errHistoryChanged
	}
	return err
}

// addTries is how often it is tried to add records, while the daemon writes beside.
const addTries = 10

// addMissing tells of the records that are not stored, and has them stored.
func (r *historyReading) addMissing(ctx context.Context) error {
	if len(r.suspects) == 0 {
		return nil
	}
	revision, err := r.stillMissing(ctx)
	if err != nil {
		return err
	}
	for i := range r.suspects {
		if err := r.tell(r.suspects[i].missing()); err != nil {
			return err
		}
	}
	if r.Repairer == nil {
		return nil
	}
	for try := 1; len(r.suspects) > 0; try++ {
		records := make([]ledger.Transaction, len(r.suspects))
		for i := range r.suspects {
			records[i] = *r.suspects[i].record
		}
		added, err := r.Repairer.AddRecords(ctx, revision, records)
		if added || err != nil {
			if err := r.repairOnce(err); err != nil {
				return err
			}
			return r.compareAdded(ctx)
		}
		if try == addTries {
			return fmt.Errorf("the daemon stored records whenever others were to be added that it lacks: stop it, or verify again: %w", errHistoryChanged)
		}
		if revision, err = r.stillMissing(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *shownRecord) missing() ledger.Difference {
	return ledger.Difference{Kind: ledger.Missing, Relation: "transactions", Row: "event_id " + s.record.EventID}
}

// stillMissing drops the records that the daemon has stored since, and says at which revision the others are missing.
func (r *historyReading) stillMissing(ctx context.Context) (revision int64, err error) {
	revision, stored, err := r.storedSuspects(ctx)
	r.suspects = slices.DeleteFunc(r.suspects, func(s shownRecord) bool {
		_, ok := stored[s.place]
		return ok
	})
	return revision, err
}

// compareAdded compares the records that were added with what is stored of them.
func (r *historyReading) compareAdded(ctx context.Context) error {
	_, stored, err := r.storedSuspects(ctx)
	if err != nil {
		return err
	}
	added := make([]ledger.NumberedRecord, 0, len(r.suspects))
	for i := range r.suspects {
		s := &r.suspects[i]
		if seq, ok := stored[s.place]; ok {
			added = append(added, ledger.NumberedRecord{Seq: seq, Record: s.record})
		} else if err := r.remains(ctx, s.missing()); err != nil {
			return err
		}
	}
	return r.Database.CompareRecords(ctx, added, func(d ledger.Difference) error { return r.remains(ctx, d) })
}

// storedSuspects are the seqs, by place, of the suspects that are stored and were not met, which they are now; and the
// revision of the history that this is true of.
func (r *historyReading) storedSuspects(ctx context.Context) (revision int64, seqs map[int64]int64, err error) {
	ids := make([]string, len(r.suspects))
	for i := range r.suspects {
		ids[i] = r.suspects[i].record.EventID
	}
	standing, stored, err := r.Database.FindRecords(ctx, ids, nil)
	matcher := ledger.NewHistoryMatcher(slices.DeleteFunc(stored, func(s ledger.StoredRecord) bool { return r.met.has(s.Seq) }))
	seqs = map[int64]int64{}
	for i := range r.suspects {
		if s, ok := matcher.Take(r.suspects[i].record.EventID, r.suspects[i].fingerprint); ok {
			r.met.set(s.Seq)
			seqs[r.suspects[i].place] = s.Seq
		}
	}
	return standing.Revision, seqs, err
}

// dropLeft tells of the stored records that the service does not show. One that is stored twice is removed; another one
// stays and is marked, because the service showed it once: what reading the history again would do.
func (r *historyReading) dropLeft(ctx context.Context, left []leftRecord) error {
	var doubled, gone []int64
	for i := range left {
		if err := r.tell(ledger.Difference{Kind: ledger.Extra, Relation: "transactions", Seq: left[i].Seq, Row: "event_id " + left[i].EventID}); err != nil {
			return err
		}
		if left[i].doubled {
			doubled = append(doubled, left[i].Seq)
		} else {
			gone = append(gone, left[i].Seq)
		}
	}
	if r.Repairer == nil {
		return nil
	}
	if len(gone) > 0 {
		if err := r.repair(ctx, func() error { return r.Repairer.MarkGone(ctx, gone, nil) }); err != nil {
			return err
		}
	}
	if len(doubled) > 0 {
		return r.repairOnce(r.Repairer.RemoveRecords(ctx, doubled))
	}
	return nil
}
