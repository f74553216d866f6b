package store

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// created is a page with an update at each offset that creates a contract of a story.
func created(story string, from, to ledger.Offset) []ledger.Page {
	page := ledger.Page{From: from, To: to}
	for at := from + 1; at <= to; at++ {
		u := storetest.NewUpdate(at, "sync::1")
		u.Created = []ledger.CreatedEvent{storetest.Creation(0, fmt.Sprint(story, "-", at))}
		page.Updates = append(page.Updates, u)
	}
	return []ledger.Page{page}
}

// What a reset has removed is read again, and may be another history then. Whatever part of it is written again, in
// whichever pieces, what was remembered of it is not shown.
func TestNothingIsRememberedOfWhatWasRemoved(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.started().Close()
	ctx := t.Context()
	type ranges []ledger.Range
	whole := ranges{{From: 10, To: 20}}
	for name, c := range map[string]struct{ before, again ranges }{
		"the same range":        {whole, whole},
		"in two":                {whole, ranges{{From: 10, To: 13}, {From: 13, To: 20}}},
		"in two, the other way": {whole, ranges{{From: 13, To: 20}, {From: 10, To: 13}}},
		"cut elsewhere":         {ranges{{From: 10, To: 12}, {From: 12, To: 20}}, ranges{{From: 10, To: 15}, {From: 15, To: 20}}},
		"in one":                {ranges{{From: 10, To: 12}, {From: 12, To: 20}}, whole},
		"less":                  {whole, ranges{{From: 10, To: 13}}},
		"more":                  {whole, ranges{{From: 10, To: 30}}},
		"one within":            {whole, ranges{{From: 12, To: 14}, {From: 10, To: 12}}},
		"one that reaches out":  {whole, ranges{{From: 15, To: 25}, {From: 10, To: 15}}},
	} {
		d.ForgetUpdates()
		l := d.leadUpdates(d.store())
		require.NoError(t, l.Append(ctx, storetest.Scope, created("first", 0, 10)))
		for _, r := range c.before {
			require.NoError(t, l.WriteAhead(ctx, storetest.Scope, created("first", r.From, r.To)))
		}
		_, err := l.Reset(ctx, 10)
		require.NoError(t, err)
		var want []string
		for at := 1; at <= 10; at++ {
			want = append(want, fmt.Sprint("first-", at, " ", at))
		}
		var end ledger.Offset
		for _, r := range c.again {
			require.NoError(t, l.WriteAhead(ctx, storetest.Scope, created("second", r.From, r.To)))
			for at := r.From + 1; at <= r.To; at++ {
				want = append(want, fmt.Sprint("second-", at, " ", at))
			}
			end = max(end, r.To)
		}
		require.NoError(t, l.MoveWatermark(ctx, storetest.Scope, 10, end))
		require.ElementsMatch(t, want, d.Rows("SELECT contract_id, activated_offset FROM indexer.active_contracts"), name)
		_, reach, _ := l.pending.After(0, 1<<40)
		require.EqualValues(t, 1<<40, reach, "nothing is remembered of what is shown")
		l.Close()
	}
}
