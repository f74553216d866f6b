package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// derivedHistory implements transactionsService for the records that follow from the stored updates of a network. It
// derives them from the database, without a request.
type derivedHistory struct {
	store *store.Store
	ready <-chan struct{} // closed when the history may be read; nil: at once

	mu     sync.Mutex
	newest []ledger.Transaction // the last records up to an offset, the oldest first
	upTo   ledger.Offset
}

const (
	derivedAtOnce    = 2_000 // updates
	newestRemembered = 100   // records
)

func newDerivedHistory(db *store.Store, ready <-chan struct{}) *derivedHistory {
	return &derivedHistory{store: db, ready: ready}
}

func newDerivedTransactions(n *indexer, history *derivedHistory) *transactions {
	return &transactions{indexer: n, service: history, derived: history}
}

// Describe implements ingest.TransactionsSource. It forgets the remembered records: stored updates may have been
// repaired, or filled in.
func (d *derivedHistory) Describe(ctx context.Context) (ledger.TransactionsService, error) {
	if d.ready != nil {
		select {
		case <-d.ready:
		case <-ctx.Done():
			return ledger.TransactionsService{}, ctx.Err()
		}
	}
	d.mu.Lock()
	d.newest, d.upTo = nil, 0
	d.mu.Unlock()
	id, err := d.store.ParticipantID(ctx)
	return ledger.TransactionsService{NetworkID: id}, err
}

// Reasons why the generation that is read is not what follows from the stored updates.
const (
	rulesChanged = "the rules have changed since"
	filledIn     = "history was filled in below them"
)

// deriveAgain begins a generation where the one that is read is not what follows from the stored updates. While history
// is filled in from the newest on, it is filled in below each generation that is begun: so that one is ever shown, the
// one that is under way is read to its end.
func (h *transactions) deriveAgain(ctx context.Context, leader *store.TransactionsWriter) error {
	at, _, err := leader.TransactionsPosition(ctx)
	if err != nil {
		return err
	}
	why, err := h.derived.outdated(ctx, at)
	if err != nil || why == "" || why == filledIn && at.Rereading() && !h.cfg.UntilCurrent {
		return err
	}
	h.logger.InfoContext(ctx, "deriving the transaction history again", "stream", "transactions", "reason", why)
	_, err = leader.BeginGeneration(ctx, at)
	return err
}

// outdated returns why the generation that is read is not what follows from the stored updates; empty: it is, as far as
// it goes. The last record has the version of the rules by which all records were derived that can be.
func (d *derivedHistory) outdated(ctx context.Context, at ledger.TransactionsPosition) (why string, err error) {
	if at.Records() == 0 {
		return "", nil
	}
	_, rules, stored, err := d.store.RecordOrigin(ctx, at.LastSeq)
	switch {
	case err != nil:
		return "", err
	case stored && rules != ledger.RulesVersion:
		return rulesChanged, nil
	}
	first, _, stored, err := d.store.RecordOrigin(ctx, at.ReadAfter+1)
	if err != nil || !stored {
		return "", err
	}
	records, err := d.TransactionsAfter(ctx, "")
	if err != nil || len(records) == 0 {
		return "", err
	}
	offset, stored, err := d.store.UpdateOffset(ctx, updateOf(records[0].Cursor()))
	if stored && offset < first {
		return filledIn, err
	}
	return "", err
}

// missing returns why records that follow from updates up to an offset have to be derived yet, or again; empty: they
// need not be.
func (d *derivedHistory) missing(ctx context.Context, upTo ledger.Offset) (why string, err error) {
	at, marks, err := d.store.TransactionsPosition(ctx)
	if err != nil {
		return "", err
	}
	if at.Rereading() {
		return "they are being derived again", nil
	}
	if why, err := d.outdated(ctx, at); err != nil || why != "" {
		return why, err
	}
	after := ledger.TransactionsCursor("")
	if len(marks) > 0 {
		after = marks[len(marks)-1].Cursor
	}
	records, err := d.TransactionsAfter(ctx, after)
	if err != nil || len(records) == 0 {
		return "", err
	}
	offset, _, err := d.store.UpdateOffset(ctx, updateOf(records[0].Cursor()))
	if offset <= upTo {
		why = "they have not been yet"
	}
	return why, err
}

// updateOf is the id of the update that a record with this cursor follows from.
func updateOf(cursor ledger.TransactionsCursor) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(string(cursor), "#"), ":")
	return id
}

func (d *derivedHistory) TransactionsAfter(ctx context.Context,
	after ledger.TransactionsCursor) ([]ledger.Transaction, error) {
	from := ledger.Offset(0)
	if after != "" {
		at, ok, err := d.store.UpdateOffset(ctx, updateOf(after))
		if err != nil || !ok {
			return nil, err
		}
		from = at - 1
	}
	for {
		updates, through, err := d.store.MovedUpdates(ctx, from, derivedAtOnce)
		if err != nil {
			return nil, err
		}
		records := recordsOf(updates)
		if after != "" {
			at := slices.IndexFunc(records, func(t ledger.Transaction) bool { return t.Cursor() == after })
			if at < 0 {
				return nil, nil // the update has no such record any more
			}
			records, after = records[at+1:], ""
		}
		if len(records) > 0 || through <= from {
			return records, nil
		}
		from = through
	}
}

// unpruned is a derivedHistory that offers nothing once more updates were pruned: it would have fewer records than are
// compared, in other places.
type unpruned struct {
	*derivedHistory
	to ledger.Offset // up to here they were pruned before
}

var errPrunedMeanwhile = fmt.Errorf("updates that records follow from were pruned: %w", ledger.ErrNotOffered)

func newUnpruned(ctx context.Context, db *store.Store) (unpruned, error) {
	bounds, _, err := db.Bounds(ctx)
	return unpruned{newDerivedHistory(db, nil), bounds.PrunedTo}, err
}

func (u unpruned) TransactionsAfter(ctx context.Context,
	after ledger.TransactionsCursor) ([]ledger.Transaction, error) {
	records, err := u.derivedHistory.TransactionsAfter(ctx, after)
	if err != nil {
		return nil, err
	}
	bounds, _, err := u.store.Bounds(ctx)
	if err == nil && bounds.PrunedTo != u.to {
		err = errPrunedMeanwhile
	}
	return records, err
}

func (d *derivedHistory) NewestTransactions(ctx context.Context, n int) ([]ledger.Transaction, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for updates := 4 * max(n, newestRemembered); ; updates *= 4 {
		after, watermark, all, err := d.store.BeforeLast(ctx, d.upTo, updates)
		if err != nil {
			return nil, err
		}
		var fresh []ledger.Transaction
		at := after
		for at < watermark {
			moved, through, err := d.store.MovedUpdates(ctx, at, derivedAtOnce)
			if err != nil {
				return nil, err
			}
			fresh = append(fresh, recordsOf(moved)...)
			if through <= at { // a reset took them away
				break
			}
			at = through
		}
		if !all && len(fresh) < n {
			continue
		}
		if all {
			fresh = append(slices.Clone(d.newest), fresh...)
		}
		// some may have come since it was read
		d.newest, d.upTo = fresh[max(0, len(fresh)-max(n, newestRemembered)):], max(watermark, at)
		list := slices.Clone(d.newest[max(0, len(d.newest)-n):])
		slices.Reverse(list)
		return list, nil
	}
}

func recordsOf(updates []ledger.MovedUpdate) (list []ledger.Transaction) {
	for i := range updates {
		list = append(list, updates[i].Records()...)
	}
	return list
}

// reached returns the offset up to which the newest records were last looked for.
func (d *derivedHistory) reached() ledger.Offset {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.upTo
}

// setDerivedMetric sets the metric of how far records were derived, after those up to a cursor were stored.
func (h *transactions) setDerivedMetric(ctx context.Context, at ledger.TransactionsPosition,
	stored ledger.TransactionsCursor) {
	if h.derived == nil || at.Rereading() || stored == "" {
		return
	}
	offset, ok, err := h.store.UpdateOffset(ctx, updateOf(stored))
	if err != nil || !ok { // the stream's own reads say so too
		h.logger.DebugContext(ctx, "how far records were derived could not be read", "error", err)
		return
	}
	h.metrics.Derived(int64(offset))
}

// Version implements transactionsService.
func (d *derivedHistory) Version(context.Context) (string, error) { return "", ledger.ErrNotOffered }

// WasThere implements transactionsService: it always is.
func (d *derivedHistory) WasThere() {}

// Close implements transactionsService. The store is another's.
func (d *derivedHistory) Close() {}

// sumsEvery is how often the amulets of new updates are added up.
const sumsEvery = time.Minute

// keepSums adds up the amulets of the updates that records follow from, until ctx ends.
func (h *transactions) keepSums(ctx context.Context, leader *store.TransactionsWriter) {
	for ctx.Err() == nil {
		if err := h.checkSums(ctx, leader); err != nil && ctx.Err() == nil {
			h.logger.WarnContext(ctx, "the amulets of updates could not be added up; it is tried again",
				"wait", sumsEvery.String(), "error", err)
		}
		ingest.Sleep(ctx, sumsEvery)
	}
}

// checkSums adds up the amulets of all updates that are new.
func (h *transactions) checkSums(ctx context.Context, leader *store.TransactionsWriter) error {
	if h.derived == nil {
		return nil
	}
	for more := true; more; {
		var err error
		if more, err = leader.CheckAmuletSums(ctx); err != nil {
			return err
		}
	}
	return nil
}

var _ ingest.TransactionsSource = (*derivedHistory)(nil)
