package store

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// created is a page with an update at each offset that creates a contract of a story.
func created(story string, from, to ledger.Offset) []ledger.Page {
	page := ledger.Page{From: from, To: to}
	for at := from + 1; at <= to; at++ {
		u := newUpdate(at, "sync::1")
		u.Created = []ledger.CreatedEvent{creation(0, fmt.Sprint(story, "-", at))}
		page.Updates = append(page.Updates, u)
	}
	return []ledger.Page{page}
}

// What a reset has removed is read again, and may be another history then. Whatever part of it is written again, in whichever
// pieces, what was remembered of it is not shown.
func TestNothingIsRememberedOfWhatWasRemoved(t *testing.T) {
	t.Parallel()
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			l := d.started()
			ctx := t.Context()
			require.NoError(t, l.Append(ctx, testScope, created("first", 0, 10)))
			for _, r := range c.before {
				require.NoError(t, l.Write(ctx, testScope, created("first", r.From, r.To)))
			}
			_, err := l.Reset(ctx, 10)
			require.NoError(t, err)
			var want []string
			for at := 1; at <= 10; at++ {
				want = append(want, fmt.Sprint("first-", at, " ", at))
			}
			var end ledger.Offset
			for _, r := range c.again {
				require.NoError(t, l.Write(ctx, testScope, created("second", r.From, r.To)))
				for at := r.From + 1; at <= r.To; at++ {
					want = append(want, fmt.Sprint("second-", at, " ", at))
				}
				end = max(end, r.To)
			}
			require.NoError(t, l.Project(ctx, testScope, 10, end))
			require.ElementsMatch(t, want, d.rows("SELECT contract_id, activated_offset FROM indexer.active_contracts"))
			require.Zero(t, l.pending.events, "nothing is remembered of what is shown")
		})
	}
}

// What a batch does is remembered until it is shown, however those beside it are cut, and not longer; what is too much is not.
func TestWhatIsRememberedOfBatches(t *testing.T) {
	t.Parallel()
	events := func(from, to int64) (list []stepEvent) {
		for at := from + 1; at <= to; at++ {
			list = append(list, stepEvent{offset: at})
		}
		return list
	}
	p := &pending{limit: 30, enough: 1000}
	after := func(from, to int64) string {
		parts, reach, known := p.after(from, to)
		n := 0
		for _, part := range parts {
			n += len(part)
		}
		return fmt.Sprint(n, " up to ", reach, " ", known)
	}
	p.add(20, 30, events(20, 30))
	p.add(0, 10, events(0, 10))
	p.add(10, 20, events(10, 20)) // touches both
	require.Equal(t, "30 up to 30 true", after(0, 30))
	require.Equal(t, "10 up to 15 true", after(5, 15))
	p.add(30, 31, events(30, 31))
	require.Equal(t, "0 up to 31 false", after(30, 31), "more than may be remembered")
	p.forget(15) // of a batch that is shown in part, the rest is still to be shown
	require.Equal(t, "0 up to 10 false", after(0, 30), "is to be read back up to what is remembered")
	require.Equal(t, "15 up to 30 true", after(15, 30))
	require.Equal(t, 20, p.events)
	p.add(30, 40, events(30, 40))
	require.Equal(t, "25 up to 40 true", after(15, 50))
	p.forget(40)
	require.Zero(t, p.events)
	require.Empty(t, p.batches)

	p.add(50, 50, nil)
	require.Empty(t, p.batches, "nothing was covered")
	p.enough = 10
	p.add(50, 60, events(50, 60))
	p.add(60, 70, events(60, 70))
	p.add(70, 72, events(70, 72))
	require.Equal(t, "10 up to 60 true", after(50, 72), "enough for a transaction")
	require.Equal(t, "15 up to 70 true", after(55, 72))
}
