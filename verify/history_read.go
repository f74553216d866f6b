package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"ledgerindexer/ledger"
)

const (
	// The last records of a page are looked at together with the next page: what stands behind them tells their places.
	heldRecords = 20
	// So many may be held back while none is recognised.
	mostHeld = 5000
	// So many records before a page are remembered with their seqs.
	rememberedMarks = 3000
	// So many records that are not recognised are kept until everything was read.
	mostSuspects = 10_000
)

// historyReading is one reading of the service's whole history.
type historyReading struct {
	*History
	pager    pager
	first    []ledger.Transaction // how the history begins
	standing ledger.HistoryStanding
	read     int64         // records
	last     string        // the event id of the last one
	met      bitset        // seqs
	marks    []historyMark // of the last records that were recognised
	passed   int64         // the greatest seq that stands in the service's order
	held     []shownRecord // the last ones that were read
	suspects []shownRecord // that were not recognised
}

// shownRecord is a record of the service.
type shownRecord struct {
	place       int64 // in the service's order, from 0
	record      *ledger.Transaction
	fingerprint int64
	seq         int64 // under which it is stored; 0: it was not recognised
	wanted      int64 // the seq that it should have by its place; 0: that can't be told
	again       bool  // it is marked as gone
}

type shownKey struct {
	eventID     string
	fingerprint int64
}

func (s *shownRecord) key() shownKey { return shownKey{s.record.EventID, s.fingerprint} }

// read compares all that the service shows.
func (h *History) read(ctx context.Context) error {
	r := historyReading{History: h, pager: pager{source: h.Source}, met: bitset{}, marks: []historyMark{{place: -1}}}
	for {
		page, err := r.next(ctx)
		if err != nil {
			return fmt.Errorf("read the transaction history again: %w", err)
		}
		beyond, err := r.add(ctx, page)
		if err != nil {
			return err
		}
		if beyond || len(page) == 0 {
			break
		}
	}
	return r.finish(ctx)
}

// next reads on. No records: that was all.
func (r *historyReading) next(ctx context.Context) (page []ledger.Transaction, err error) {
	err = Patiently(ctx, r.Logger, func() (err error) {
		page, err = r.pager.next(ctx)
		return err
	})
	if err != nil || len(page) > 0 {
		if r.read == 0 {
			r.first = page[:min(overlap, len(page))]
		}
		return page, err
	}
	// No records is also the answer to an event id that the service does not know any more.
	var newest []ledger.Transaction
	err = Patiently(ctx, r.Logger, func() (err error) {
		newest, err = r.Source.NewestTransactions(ctx, 1)
		return err
	})
	if err != nil {
		return nil, err
	}
	last := r.pager.page
	if len(newest) == 0 && len(last) == 0 || len(newest) > 0 && len(last) > 0 && beginsAlike(newest, last[len(last)-1:]) {
		return nil, nil
	}
	if page, err = r.pager.next(ctx); err == nil && len(page) == 0 { // else it has just grown
		err = errHistoryChanged
	}
	return page, err
}

// add compares the records of a page, and those that were held back; no page: all of them. beyond says that nothing that is
// stored follows.
func (r *historyReading) add(ctx context.Context, page []ledger.Transaction) (beyond bool, err error) {
	batch := slices.Clone(r.held)
	for i := range page {
		batch = append(batch, shownRecord{place: r.read, record: &page[i], fingerprint: page[i].Fingerprint()})
		r.read++
		r.last = page[i].EventID
	}
	stored, err := r.find(ctx, batch)
	if err != nil {
		return false, err
	}
	recognised := r.recognise(batch, stored)
	order := backbone(slices.Concat(r.marks, marksOf(batch)))
	if len(order) > 0 {
		r.passed = max(r.passed, order[len(order)-1].seq)
	}
	beyond = recognised == 0 && r.complete()
	ready := len(batch)
	if len(page) > 0 && !beyond {
		ready = r.ready(batch, order)
	}
	for i := range batch[:ready] {
		batch[i].wanted = r.wanted(order, batch[i].place)
	}
	r.held = slices.Clone(batch[ready:])
	if err := r.compareBatch(ctx, batch[:ready]); err != nil {
		return false, err
	}
	r.marks = append(r.marks, marksOf(batch[:ready])...)
	r.marks = r.marks[max(0, len(r.marks)-rememberedMarks):]
	r.Progress(Progress{Step: "transaction history", Done: r.result.Records, Of: r.standing.LastSeq})
	return beyond, nil
}

// find looks for the records of a batch, and makes sure that the history is not read again meanwhile.
func (r *historyReading) find(ctx context.Context, batch []shownRecord) ([]ledger.StoredRecord, error) {
	ids := make([]string, len(batch))
	for i := range batch {
		ids[i] = batch[i].record.EventID
	}
	standing, stored, err := r.Database.FindRecords(ctx, ids, nil)
	if err != nil {
		return nil, err
	}
	if r.read > int64(len(batch)) && (standing.Rereading != r.standing.Rereading || standing.OrderedFrom != r.standing.OrderedFrom) {
		return nil, errors.New("the daemon began or ended to read the transaction history again while it was verified: verify again")
	}
	if r.standing = standing; r.read == int64(len(batch)) {
		if err := r.checkNetwork(len(batch), len(stored)); err != nil {
			return nil, err
		}
	}
	shared := map[string]int{}
	r.pager.shared = map[string]bool{}
	for i := range stored {
		if !stored[i].Gone {
			shared[stored[i].EventID]++
			r.pager.shared[stored[i].EventID] = shared[stored[i].EventID] > 1
		}
	}
	return slices.DeleteFunc(stored, func(s ledger.StoredRecord) bool { return s.Seq < 1 || r.met.has(s.Seq) }), nil
}

// checkNetwork refuses to compare the histories of two networks.
func (r *historyReading) checkNetwork(records, stored int) error {
	known := r.standing.NetworkID
	if known == "" || r.networkID == "" || known == r.networkID || records == 0 || stored > 0 {
		return nil
	}
	return &ledger.Problem{
		What: fmt.Sprintf("the database holds the transaction history of the network that %s operates, but the Scan URL leads to the one that %s operates", known, r.networkID),
		Do:   "correct --scan-url or --database-url",
	}
}

// recognise finds out which stored record each of a batch is, and counts those that were found now.
func (r *historyReading) recognise(batch []shownRecord, stored []ledger.StoredRecord) (recognised int) {
	matcher := ledger.NewHistoryMatcher(stored)
	shown := map[shownKey]int{}
	met := func(s *shownRecord, record ledger.StoredRecord, ok bool) {
		if ok {
			s.seq, s.again = record.Seq, record.Gone
			r.met.set(record.Seq)
			recognised++
		}
	}
	var open []*shownRecord
	for i := range batch {
		if s := &batch[i]; s.seq == 0 {
			open = append(open, s)
			shown[s.key()]++
		}
	}
	for _, s := range open {
		if shown[s.key()] == 1 && matcher.Equal(s.record.EventID, s.fingerprint) == 1 {
			record, ok := matcher.Take(s.record.EventID, s.fingerprint)
			met(s, record, ok)
		}
	}
	// Of equal records the one in its place, and then any.
	order := backbone(slices.Concat(r.marks, marksOf(batch)))
	for _, s := range open {
		if s.seq == 0 {
			record, ok := matcher.TakeAt(s.record.EventID, s.fingerprint, seqAt(order, s.place, r.standing.LastSeq))
			met(s, record, ok)
		}
	}
	for _, s := range open {
		if s.seq == 0 {
			record, ok := matcher.Take(s.record.EventID, s.fingerprint)
			met(s, record, ok)
		}
	}
	return recognised
}

// complete tells whether the last stored record was met.
func (r *historyReading) complete() bool {
	if n := len(r.standing.Window); n > 0 {
		return r.met.has(r.standing.Window[n-1])
	}
	return r.standing.LastSeq == 0
}

// ready is how many records of a batch are not held back.
func (r *historyReading) ready(batch []shownRecord, order []historyMark) int {
	if len(batch) > mostHeld {
		return len(batch)
	}
	n := max(0, len(batch)-heldRecords)
	for n > 0 && !isMark(order, batch[n-1].place) && len(order) > 0 {
		n--
	}
	return n
}

func isMark(order []historyMark, place int64) bool {
	_, ok := slices.BinarySearchFunc(order, place, func(m historyMark, place int64) int { return int(m.place - place) })
	return ok
}

// wanted is the seq that a record should have by its place.
func (r *historyReading) wanted(order []historyMark, place int64) int64 {
	last := r.standing.LastSeq
	if n := len(order); n > 0 && (r.standing.Rereading || order[n-1].seq+1 < r.standing.OrderedFrom) {
		last = 0 // behind the last one the order is not the stored one
	}
	return seqAt(order, place, last)
}

func marksOf(batch []shownRecord) []historyMark {
	var marks []historyMark
	for i := range batch {
		if batch[i].seq != 0 {
			marks = append(marks, historyMark{batch[i].place, batch[i].seq})
		}
	}
	return marks
}

// compareBatch compares what is stored of records, and has it written again.
func (r *historyReading) compareBatch(ctx context.Context, batch []shownRecord) error {
	places, err := r.inPlaces(ctx, batch)
	if err != nil {
		return err
	}
	var same, wrong []ledger.NumberedRecord
	for i := range batch {
		s := &batch[i]
		stored, isStored := places[s.wanted]
		switch {
		case s.seq == 0 && s.wanted == 0:
			r.suspects = append(r.suspects, *s)
		case s.seq == 0 && !isStored: // ComparePosition has told it
			wrong = append(wrong, ledger.NumberedRecord{Seq: s.wanted, Record: s.record})
		case s.seq == 0 && (stored.EventID != s.record.EventID || r.met.has(s.wanted)): // it may still come elsewhere
			r.suspects = append(r.suspects, *s)
		case s.seq == 0:
			s.seq = s.wanted
			r.met.set(s.seq)
			same = append(same, ledger.NumberedRecord{Seq: s.seq, Record: s.record})
		case r.misplaced(s):
			if err := r.tell(misplaced(s)); err != nil {
				return err
			}
			wrong = append(wrong, ledger.NumberedRecord{Seq: s.wanted, Record: s.record})
			if r.Repairer != nil {
				r.met.clear(s.seq)
			}
		default:
			same = append(same, ledger.NumberedRecord{Seq: s.seq, Record: s.record})
		}
	}
	if err := r.compareRecords(ctx, same); err != nil {
		return err
	}
	if err := r.rewrite(ctx, wrong); err != nil {
		return err
	}
	if err := r.notGone(ctx, batch); err != nil {
		return err
	}
	if len(r.suspects) > mostSuspects {
		return r.suspectsInPlace(ctx)
	}
	return nil
}

// misplaced tells whether a record is certainly stored out of order.
func (r *historyReading) misplaced(s *shownRecord) bool {
	return s.wanted != s.seq && s.wanted >= r.standing.OrderedFrom && !r.standing.Rereading
}

func misplaced(s *shownRecord) ledger.Difference {
	wanted, stored := strconv.FormatInt(s.wanted, 10), strconv.FormatInt(s.seq, 10)
	return ledger.Difference{Kind: ledger.Altered, Relation: "transactions", Seq: s.seq, Column: "seq", Wanted: &wanted, Stored: &stored}
}

// inPlaces are the stored records in the places of those that were not recognised.
func (r *historyReading) inPlaces(ctx context.Context, batch []shownRecord) (map[int64]ledger.StoredRecord, error) {
	var seqs []int64
	for i := range batch {
		if s := &batch[i]; s.seq == 0 && s.wanted != 0 {
			seqs = append(seqs, s.wanted)
		}
	}
	if len(seqs) == 0 {
		return nil, nil
	}
	_, stored, err := r.Database.FindRecords(ctx, nil, seqs)
	places := make(map[int64]ledger.StoredRecord, len(stored))
	for _, record := range stored {
		places[record.Seq] = record
	}
	return places, err
}

// notGone looks for records that are marked as gone, and which the service shows.
func (r *historyReading) notGone(ctx context.Context, batch []shownRecord) error {
	var shown []int64
	for i := range batch {
		if s := &batch[i]; s.again && !r.standing.Rereading {
			if err := r.tell(ledger.Difference{Kind: ledger.Extra, Relation: "history_gone", Seq: s.seq}); err != nil {
				return err
			}
			shown = append(shown, s.seq)
		}
	}
	if len(shown) == 0 || r.Repairer == nil {
		return nil
	}
	return r.repair(ctx, func() error { return r.Repairer.MarkGone(ctx, nil, shown) })
}

// compareRecords compares records with what is stored under their seqs, and has what differs written again.
func (r *historyReading) compareRecords(ctx context.Context, records []ledger.NumberedRecord) error {
	r.result.Records += int64(len(records))
	wrong := map[int64]bool{}
	err := r.Database.CompareRecords(ctx, records, func(d ledger.Difference) error {
		wrong[d.Seq] = true
		return r.tell(d)
	})
	if err != nil || len(wrong) == 0 {
		return err
	}
	return r.rewrite(ctx, slices.DeleteFunc(records, func(n ledger.NumberedRecord) bool { return !wrong[n.Seq] }))
}

// rewrite has records written again, and compares them again.
func (r *historyReading) rewrite(ctx context.Context, records []ledger.NumberedRecord) error {
	if r.Repairer == nil || len(records) == 0 {
		return nil
	}
	if err := r.repair(ctx, func() error { return r.Repairer.RewriteRecords(ctx, records) }); err != nil {
		return err
	}
	for i := range records {
		r.met.set(records[i].Seq)
	}
	return r.Database.CompareRecords(ctx, records, func(d ledger.Difference) error { return r.remains(ctx, d) })
}
