package audit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// shown is what analysts see, but for when things were written, and names that are kept although nothing has them any
// more.
func (i *itself) shown() map[string][]string {
	i.T.Helper()
	all := map[string][]string{}
	for _, view := range i.Rows("SELECT table_name FROM information_schema.views WHERE table_schema = 'ledger' AND table_name NOT IN ('packages', 'parties', 'rewrites', 'synchronizers', 'template_numbers')") {
		all[view] = storetest.Sorted(i.Rows("SELECT (to_jsonb(r) - '{updated_at,template_number}'::text[])::text FROM ledger." + view + " r"))
	}
	all["lifetimes"] = storetest.Sorted(i.Rows(`SELECT contract_id, synchronizer_id, template_id, activated_offset, activated_node_id, deactivated_offset
		FROM indexer.lifetimes JOIN indexer.synchronizers USING (synchronizer_ref) JOIN indexer.templates USING (template_ref)`))
	return all
}

func (i *itself) requireShown(want map[string][]string, message string) {
	i.T.Helper()
	got := i.shown()
	require.Len(i.T, got, len(want))
	for relation, rows := range want {
		require.Equal(i.T, rows, got[relation], "%s: %s", message, relation)
	}
}

// upTo is what of the pages lies up to an offset.
func upTo(pages []ledger.Page, to ledger.Offset) (cut []ledger.Page) {
	for _, page := range pages {
		if page.From >= to {
			break
		}
		page.To = min(page.To, to)
		for n := range page.Updates {
			if page.Updates[n].Offset > to {
				page.Updates = page.Updates[:n]
				break
			}
		}
		cut = append(cut, page)
	}
	return cut
}

// after is what of the pages lies after an offset.
func after(pages []ledger.Page, from ledger.Offset) (rest []ledger.Page) {
	for _, page := range pages {
		if page.To <= from {
			continue
		}
		page.From = max(page.From, from)
		for len(page.Updates) > 0 && page.Updates[0].Offset <= from {
			page.Updates = page.Updates[1:]
		}
		rest = append(rest, page)
	}
	return rest
}

// Set back to any offset, a database is as one that was indexed just so far, and from there it continues to what it
// was. Others, from genesis and from a snapshot on, are tried by the model.
func TestReset(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "compares many states of a database with others that were written anew")
	i := newItself(t, 302, fromMiddle, ledger.ShapeLedgerEffects, 15)
	other, _, _ := newGround(t, 302, fromMiddle, ledger.ShapeLedgerEffects)
	first, end := i.pages[0].From, i.pages[len(i.pages)-1].To
	whole := i.shown()
	random := rand.New(rand.NewPCG(4, 2))
	offsets := []ledger.Offset{end, first}
	for range 4 {
		offsets = append(offsets, first+ledger.Offset(random.Int64N(int64(end-first))))
	}
	l := i.leadUpdates(i.store)
	l2 := other.leadUpdates(other.store)
	at := first
	slices.Sort(offsets)
	for _, to := range offsets {
		for _, page := range after(upTo(i.pages, to), at) {
			require.NoError(t, l2.Append(t.Context(), i.scope, []ledger.Page{page}))
		}
		at = to
		_, err := l.Reset(t.Context(), to)
		require.NoError(t, err)
		i.requireShown(other.shown(), fmt.Sprint("reset to ", to))
		require.Empty(t, i.differences(nil))
		for _, page := range after(i.pages, to) {
			require.NoError(t, l.Append(t.Context(), i.scope, []ledger.Page{page}))
		}
		i.requireShown(whole, fmt.Sprint("resumed from ", to))
		require.Empty(t, i.differences(nil))
	}
}
