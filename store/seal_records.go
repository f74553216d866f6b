package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
)

// SealRecords is SealUpdates for records of the transaction history: those that its service shows, in its order, for the
// seqs after from up to to.
func (l *Leader) SealRecords(ctx context.Context, from, to int64, records []ledger.Transaction) (ledger.Comparison, error) {
	var c ledger.Comparison
	err := l.sealing(ctx, func(ctx context.Context, tx pgx.Tx) error {
		c = ledger.Comparison{}
		all, err := l.store.compareWindow(ctx, tx, from, to, records, c.Add)
		if err != nil {
			return err
		}
		if !all && c.Differences == 0 { // they can't be told apart well enough to name the one that has no counterpart
			c.Differences++
		}
		return l.sealCompared(ctx, tx, ledger.SealedTransactions, from, to, c)
	})
	if err != nil {
		return c, fmt.Errorf("seal the records after seq %d up to %d: %w", from, to, err)
	}
	return c, nil
}

// compareWindow compares what is stored with seqs after fromSeq up to toSeq, where the order of seq is the service's, with
// the records that the service shows there, in its order: as many as there are seqs, as verify.ReadHistoryWindow reads
// them. A record is the stored one with its event id and fingerprint, wherever in the range it stands; what remains is
// taken by its place. all says that each seq of the range is stored and was met by a record, and each record by a seq;
// found is told what else differs.
func (s *Store) compareWindow(ctx context.Context, tx pgx.Tx, fromSeq, toSeq int64, records []ledger.Transaction, found func(ledger.Difference) error) (all bool, err error) {
	seqs := make([]int64, 0, toSeq-fromSeq)
	for seq := fromSeq + 1; seq <= toSeq; seq++ {
		seqs = append(seqs, seq)
	}
	stored, err := s.findRecords(ctx, tx, nil, seqs)
	if err != nil {
		return false, err
	}
	numbered, surplus := numberByPlace(fromSeq, stored, records)
	all = len(surplus) == 0 && len(stored) == len(seqs) && len(numbered) == len(records)
	// Records beyond the range have no place in it.
	numbered = slices.DeleteFunc(numbered, func(n ledger.NumberedRecord) bool { return n.Seq > toSeq })
	if err := s.compareRecords(ctx, tx, numbered, found); err != nil {
		return false, err
	}
	for _, seq := range surplus {
		if err := found(ledger.Difference{Kind: ledger.Extra, Relation: "transactions", Seq: seq}); err != nil {
			return false, err
		}
	}
	return all && len(numbered) == len(records), nil
}

// numberByPlace gives records that follow fromSeq in the service's order their seqs. surplus are the stored ones that no
// record is.
func numberByPlace(fromSeq int64, stored []ledger.StoredRecord, records []ledger.Transaction) (numbered []ledger.NumberedRecord, surplus []int64) {
	free := make(map[int64]bool, len(stored))
	for i := range stored {
		free[stored[i].Seq] = true
	}
	taken := make(map[int64]bool, len(records))
	numbered = make([]ledger.NumberedRecord, len(records))
	matcher := ledger.NewHistoryMatcher(stored)
	met := func(i int, record ledger.StoredRecord, ok bool) {
		if ok {
			numbered[i].Seq = record.Seq
			taken[record.Seq] = true
			delete(free, record.Seq)
		}
	}
	for i := range records { // of equal records the one in its place
		numbered[i].Record = &records[i]
		record, ok := matcher.TakeAt(records[i].EventID, records[i].Fingerprint(), fromSeq+1+int64(i))
		met(i, record, ok)
	}
	for i := range records {
		if numbered[i].Seq == 0 {
			record, ok := matcher.Take(records[i].EventID, records[i].Fingerprint())
			met(i, record, ok)
		}
	}
	next := fromSeq
	for i := range numbered {
		if numbered[i].Seq != 0 {
			continue
		}
		numbered[i].Seq = fromSeq + 1 + int64(i)
		if taken[numbered[i].Seq] { // another record has moved there: the next seq that none has
			for next++; taken[next]; next++ {
			}
			numbered[i].Seq = next
		}
		taken[numbered[i].Seq] = true
		delete(free, numbered[i].Seq)
	}
	for seq := range free {
		surplus = append(surplus, seq)
	}
	slices.Sort(surplus)
	return numbered, surplus
}
