package verify

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// A service that is behind, or has another order, shows nothing wrong.
func TestHistoryOfAnotherService(t *testing.T) {
	t.Parallel()
	h := newServedHistory(t, 400, sandbox.ScanOptions{PageLimit: 50})
	h.followAll()
	equal := func() HistoryResult {
		t.Helper()
		list, result := h.verify(false)
		for _, d := range list { // the offset is the service's own
			require.Contains(t, []string{"offset_text", "raw", "exact"}, d.Column, d.String())
		}
		return result
	}
	for _, lag := range []int{1, 7, 60} {
		h.scan.SetLag(lag)
		result := equal()
		require.Equal(t, h.at.LastSeq-int64(lag), result.Records)
		require.Len(t, result.Notes, 1)
	}
	h.scan.SetLag(0)
	h.scan.Reingest(5)
	require.Equal(t, h.at.LastSeq, equal().Records)
	h.scan.SetLag(9)
	equal()
	h.ledger.Grow(100) // new records stand between those that are stored
	equal()
	h.scan.SetLag(0)
	equal()
}

// After a reading from the beginning, with records that are gone and others that came behind.
func TestHistoryThatWasReadAgain(t *testing.T) {
	t.Parallel()
	h := newServedHistory(t, 500, sandbox.ScanOptions{})
	ids := h.scan.EventIDs()
	forgotten := []string{ids[20], ids[70]}
	h.scan.Forget(ids[30], ids[31])
	h.followAll()
	reread := func() {
		at, err := h.leader.RereadHistory(t.Context(), h.at)
		require.NoError(t, err)
		h.at = at
		pages := h.pages()
		for i := range pages {
			h.append(pages[i])
			if i == len(pages)/2 {
				list, result := h.verify(false)
				require.Empty(t, names(list))
				require.Len(t, result.Notes, 1)
			}
		}
		h.at, _, err = h.leader.FinishReread(t.Context(), h.at)
		require.NoError(t, err)
	}
	h.scan.Reingest(0)
	h.scan.Forget(forgotten...)
	reread()
	list, result := h.verify(false)
	require.Empty(t, names(list))
	require.Empty(t, result.Notes)
	served := len(h.scan.EventIDs())
	h.ledger.Grow(100)
	h.append(h.all()[served:])
	list, _ = h.verify(false)
	require.Empty(t, names(list))

	// What is gone and shown again is named; so is what is shown no more.
	gone := h.exec("DELETE FROM indexer.history_gone WHERE seq = (SELECT min(seq) FROM indexer.history_gone)")
	require.EqualValues(t, 1, gone)
	list, _ = h.verify(false)
	require.Len(t, list, 1, names(list))
	require.Equal(t, ledger.Extra, list[0].Kind)
	require.Equal(t, "transactions", list[0].Relation)
	h.exec("INSERT INTO indexer.history_gone VALUES (3)")
	list, result = h.verify(true)
	require.Len(t, list, 2, names(list))
	require.Zero(t, result.Remaining)
	list, _ = h.verify(false)
	require.Empty(t, names(list))

	// A record that is lost takes the free seq again, one that was never stored comes behind.
	for _, statement := range deleted("seq = 10") {
		h.exec(statement)
	}
	_, result = h.verify(true)
	require.Zero(t, result.Remaining)
	list, _ = h.verify(false)
	require.Empty(t, names(list))
}

// A record that was never read, although the service shows it before others that were, is stored behind them.
func TestHistoryLacksARecord(t *testing.T) {
	t.Parallel()
	h := newServedHistory(t, 400, sandbox.ScanOptions{})
	all := h.pages()
	for i, page := range all {
		if i == 1 {
			page = append(append([]ledger.Transaction{}, page[:5]...), page[6:]...)
		}
		h.append(page)
	}
	list, _ := h.verify(false)
	require.Len(t, list, 1)
	require.Equal(t, "transactions, event_id "+all[1][5].EventID+": the row is not stored", list[0].String())
	_, result := h.verify(true)
	require.Zero(t, result.Remaining)
	list, _ = h.verify(false)
	require.Empty(t, names(list))
}

// What another network's service shows is not compared.
func TestHistoryOfAnotherNetwork(t *testing.T) {
	t.Parallel()
	h := newServedHistory(t, 200, sandbox.ScanOptions{})
	other := newServedHistory(t, 200, sandbox.ScanOptions{})
	h.followAll()
	h.exec("UPDATE indexer.network SET network_id = 'other'")
	list, result := h.verify(true)
	require.Len(t, list, 1, names(list))
	require.Equal(t, "network: network_id", list[0].Relation+": "+list[0].Column)
	require.Zero(t, result.Remaining)
	for _, statement := range everywhere("UPDATE TABLE SET seq = seq") {
		h.exec(statement)
	}
	h.exec("UPDATE indexer.network SET network_id = 'other'")
	h.exec("UPDATE indexer.transactions SET event_id = 'x' || event_id")
	_, err := (&History{Source: other.client, Database: h.store, Found: ignore, Progress: func(Progress) {}}).Run(t.Context())
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.Contains(t, problem.What, "other")
}

// A service without a history leaves the comparison of what is stored with itself.
func TestHistoryIsNotOffered(t *testing.T) {
	t.Parallel()
	h := newServedHistory(t, 200, sandbox.ScanOptions{})
	h.followAll()
	without := newServedHistory(t, 10, sandbox.ScanOptions{Release: "0.7.0"})
	h.exec("UPDATE indexer.history_position SET last_seq = last_seq + 2")
	h.exec("DELETE FROM indexer.balance_totals")
	found := map[string]bool{}
	v := &History{Source: without.client, Database: h.store, Progress: func(Progress) {}, Found: func(d ledger.Difference) error {
		found[d.Relation] = true
		return nil
	}}
	_, err := v.Run(t.Context())
	require.ErrorIs(t, err, ledger.ErrNotOffered)
	require.Equal(t, map[string]bool{"history_position": true, "balance_totals": true}, found)
	failed := errors.New("failed")
	v.Found = func(ledger.Difference) error { return failed }
	_, err = v.Run(t.Context())
	require.ErrorIs(t, err, failed)
}

// Beside a writer everything is right while the ledger grows and is read.
func TestHistoryBesideAWriter(t *testing.T) {
	t.Parallel()
	h := newServedHistory(t, 300, sandbox.ScanOptions{PageLimit: 40})
	h.followAll()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p := pager{source: h.client, after: h.at.Window[h.at.Cursor()].EventID}
		at := h.at
		for range 25 {
			h.ledger.Grow(20)
			page, err := p.next(t.Context())
			if err == nil && len(page) > 0 {
				at, err = h.leader.AppendTransactions(t.Context(), at, page)
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	t.Cleanup(func() { <-done }) // it may have an error to tell
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		list, result := h.verify(false)
		require.Empty(t, names(list))
		require.Empty(t, result.Notes)
	}
}

// A window is what the service shows behind a stored record.
func TestHistoryWindows(t *testing.T) {
	t.Parallel()
	h := newServedHistory(t, 900, sandbox.ScanOptions{PageLimit: 70})
	h.followAll()
	last := h.at.LastSeq
	read := func(from int64, most int) HistoryWindow {
		t.Helper()
		w, err := ReadHistoryWindow(t.Context(), h.client, h.store, from, most)
		require.NoError(t, err)
		return w
	}
	var seqs int64
	for from := int64(0); from < last; {
		w := read(from, 90)
		require.True(t, w.Shown, from)
		require.Equal(t, w.ToSeq-w.FromSeq, int64(len(w.Records)))
		var numbered []ledger.NumberedRecord
		for i := range w.Records {
			numbered = append(numbered, ledger.NumberedRecord{Seq: from + 1 + int64(i), Record: &w.Records[i]})
		}
		require.NoError(t, h.store.CompareRecords(t.Context(), numbered, func(d ledger.Difference) error { return errors.New(d.String()) }))
		seqs += int64(len(w.Records))
		from = w.ToSeq
	}
	require.Equal(t, last, seqs)
	require.Equal(t, HistoryWindow{FromSeq: last, ToSeq: last}, read(last, 90))
	h.scan.SetLag(50)
	require.Equal(t, HistoryWindow{FromSeq: last - 90, ToSeq: last}, read(last-90, 90))
	h.scan.SetLag(0)
	h.scan.Reingest(3)
	require.False(t, read(90, 90).Shown)
	h.exec("UPDATE indexer.history_position SET ordered_from = 101")
	require.Equal(t, HistoryWindow{FromSeq: 20, ToSeq: 100}, read(20, 90))
}
