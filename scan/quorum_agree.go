package scan

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// agreed returns the longest page after an offset that enough services have in common. It records which services differ
// from it. ok is false if there is none.
func (s *Quorum) agreed(ctx context.Context, got []reply[ledger.Page],
	after ledger.Offset) (page ledger.Page, ok bool) {
	far := slices.Clone(got)
	slices.SortStableFunc(far, func(a, b reply[ledger.Page]) int { return cmp.Compare(b.value.To, a.value.To) })
	for n := s.agree; n <= len(far); n++ {
		cut := far[n-1].value.To // n pages reach up to here
		if cut == after {
			break
		}
		for first := range n {
			alike := far[first : first+1 : first+1]
			for _, other := range far[first+1 : n] {
				if firstDifference(&far[first].value, &other.value, cut) == nil {
					alike = append(alike, other)
				}
			}
			if len(alike) >= s.agree {
				page = s.sharedHashes(cutAt(far[first].value, cut), alike)
				s.noteAgreement(ctx, got, &page, senders(alike))
				return page, true
			}
		}
	}
	return page, false
}

// agreedUpdate returns the update that enough services send as the one of an id, and one of these services; nil: there
// is none. They may have put it at different offsets, so that pages would have nothing in common: that is no agreement.
func (s *Quorum) agreedUpdate(ctx context.Context, got []reply[ledger.Page]) (*ledger.Update, *replica) {
	for i := range got {
		alike := slices.DeleteFunc(slices.Clone(got), func(a reply[ledger.Page]) bool {
			return !ledger.Alike(&got[i].value.Updates[0], &a.value.Updates[0])
		})
		if len(alike) >= s.agree {
			page := s.sharedHashes(got[i].value, alike)
			s.noteAgreement(ctx, got, &page, senders(alike))
			return &page.Updates[0], got[i].from
		}
	}
	return nil, nil
}

// sharedHashes returns a page without the external transaction hashes that too few of those sent that agree on the
// rest: services may leave them out.
func (s *Quorum) sharedHashes(page ledger.Page, alike []reply[ledger.Page]) ledger.Page {
	page.Updates = slices.Clone(page.Updates)
	for i := range page.Updates {
		hash := &page.Updates[i].ExternalTransactionHash
		same := 0
		for k := range alike { // they have the same updates in the same places
			if bytes.Equal(alike[k].value.Updates[i].ExternalTransactionHash, *hash) {
				same++
			}
		}
		if same < s.agree {
			*hash = nil
		}
	}
	return page
}

// noteAgreement records that a page is used, and warns of the services whose pages differ from it.
func (s *Quorum) noteAgreement(ctx context.Context, got []reply[ledger.Page], page *ledger.Page, alike []*replica) {
	s.recordUsed(alike...)
	if last := lastOffset(page.Updates, 0); last > 0 {
		s.SetMinimum(last)
	}
	for i := range got {
		at := firstDifference(page, &got[i].value, min(page.To, got[i].value.To))
		if at == nil {
			continue
		}
		s.mu.Lock()
		m := got[i].from
		m.warned = m.warned && m.disagreed // a difference is worth a warning, also after one about a failure
		s.warnPassedOver(ctx, m, "disagrees", "update_id", at.ID, "offset", int64(at.Offset), "place", placeOf(at.Offset))
		m.restsUntil, m.disagreed = time.Now().Add(longestRest), true
		s.mu.Unlock()
	}
}

// cutAt returns a page up to an offset.
func cutAt(page ledger.Page, to ledger.Offset) ledger.Page {
	n, _ := slices.BinarySearchFunc(page.Updates, to+1,
		func(u ledger.Update, at ledger.Offset) int { return cmp.Compare(u.Offset, at) })
	if n < len(page.Updates) {
		page.Bytes = page.Bytes * int64(n) / int64(len(page.Updates))
		page.Updates = page.Updates[:n:n]
	}
	page.To = to
	return page
}

// firstDifference returns the first update up to an offset in which two pages differ, or that only one of them has;
// nil: there is none.
func firstDifference(a, b *ledger.Page, to ledger.Offset) *ledger.Update {
	for i := 0; ; i++ {
		x, y := updateAt(a, i, to), updateAt(b, i, to)
		switch {
		case x == nil:
			return y
		case y == nil || x.Offset < y.Offset:
			return x
		case y.Offset < x.Offset:
			return y
		case x != y && !ledger.Alike(x, y):
			return x
		}
	}
}

// updateAt returns update i of a page, if it lies up to an offset.
func updateAt(page *ledger.Page, i int, to ledger.Offset) *ledger.Update {
	if i < len(page.Updates) && page.Updates[i].Offset <= to {
		return &page.Updates[i]
	}
	return nil
}

func placeOf(offset ledger.Offset) string {
	migrationID, recordTime := offset.NetworkPosition()
	return fmt.Sprintf("migration %d, %s", migrationID, recordTime.Format(recordTimeForm))
}

// disagreement returns the error if enough services answered and too few of them agree.
func (s *Quorum) disagreement(got []reply[ledger.Page], after ledger.Offset) error {
	var first *ledger.Update
	var one, other *replica
	for i := range got {
		for k := range i {
			at := firstDifference(&got[k].value, &got[i].value, min(got[k].value.To, got[i].value.To))
			if at != nil && (first == nil || at.Offset < first.Offset) {
				first, one, other = at, got[k].from, got[i].from
			}
		}
	}
	for _, a := range got {
		if s.passed != nil {
			s.passed(a.from.url(), "disagrees")
		}
	}
	what := fmt.Sprintf("no %d of the Scan services agree on the updates after offset %d: the first on which they "+
		"differ is update %s at offset %d (%s), of which %s and %s send different contents", s.agree, max(0, after),
		ledger.Quoted(first.ID), first.Offset, placeOf(first.Offset), one.url(), other.url())
	if len(got) < len(s.replicas) { // another one may agree when it answers
		return &Error{Failure: jsonhttp.Unusable("updates", errors.New(what))}
	}
	return &ledger.Problem{
		What: what,
		Do: "find out which service is wrong, and take it out of --scan-url, or give --scan-url further services of the " +
			"network; a service of an older release may leave out what newer ones send",
	}
}
