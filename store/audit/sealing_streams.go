package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/tables"
)

// AddUpdates adds a participant's updates, and the carried snapshot.
func (s *SealTask) AddUpdates(source UpdateSource, database *Sealer) {
	source = &inRanges{UpdateSource: source, logger: s.Logger}
	s.streams = append(s.streams, &snapshotSeals{SealTask: s, source: source, database: database},
		&updateSeals{SealTask: s, source: source, database: database})
}

// AddTransactions adds the transaction history.
func (s *SealTask) AddTransactions(source ingest.TransactionsSource, database *Sealer) {
	s.streams = append(s.streams, &recordSeals{SealTask: s, source: source, database: database})
}

// How much is compared and sealed at once.
type updateSeals struct {
	*SealTask
	sealMemory
	source   UpdateSource
	database *Sealer
	// updates of about sealBytes, at most those of a full one, by the window that was read last; 0: none was read yet
	fit int64
	// until then no window is compared again, because one could not be
	leftTill time.Time
}

// leftFor is how long windows are left that are to be compared again, after one that can't be.
const leftFor = time.Hour

func (u *updateSeals) window(ctx context.Context) (*Window, error) {
	again := u.again
	if time.Now().Before(u.leftTill) {
		again = -1
	}
	return u.database.NextWindow(ctx, tables.StreamUpdates, cmp.Or(u.fit, u.size()), again, u.known)
}

func (u *updateSeals) seal(ctx context.Context, w Window) (SealedWindow, bool, error) {
	pruned, err := ingest.AskPruned(ctx, u.source)
	if err != nil {
		return SealedWindow{}, false, err
	}
	if w.From < int64(pruned) {
		if !w.Again {
			w.To = min(w.To, int64(pruned))
		}
		return u.sealUnseen(ctx, u.database, tables.StreamUpdates, w, SealNotShown)
	}
	page, err := u.read(ctx, w)
	if w.Again && ingest.Lasting(err) {
		// For example, it is of an earlier scope, with a party that may not be read any more. What was never compared must
		// not wait for it.
		u.leftTill = time.Now().Add(leftFor)
		u.Logger.WarnContext(ctx, "what was repaired, or differed, can't be read again, and is not compared again now",
			"stream", tables.StreamUpdates, "after", w.From, "up_to", w.To, "error", err)
		next, err := u.window(ctx)
		if err != nil || next == nil || !next.Full {
			return SealedWindow{}, false, err
		}
		return u.seal(ctx, *next)
	}
	if err != nil {
		return SealedWindow{}, false, err
	}
	c, err := u.database.SealUpdates(ctx, page)
	return SealedWindow{Stream: tables.StreamUpdates, From: int64(page.From), To: int64(page.To), Comparison: c},
		err == nil, err
}

// read reads a window as one page. A window that was not sealed before may end sooner, when it is full or has
// sealBytes.
func (u *updateSeals) read(ctx context.Context, w Window) (ledger.Page, error) {
	whole := ledger.Page{From: ledger.Offset(w.From), To: ledger.Offset(w.From)}
	for to := ledger.Offset(w.To); whole.To < to; {
		u.wait(ctx)
		page, err := u.source.ReadUpdates(ctx, whole.To, to)
		if err != nil {
			return whole, err
		}
		u.spent(max(1, len(page.Updates)))
		whole.To, whole.Bytes, whole.Updates = page.To, whole.Bytes+page.Bytes, append(whole.Updates, page.Updates...)
		if !w.Again && (int64(len(whole.Updates)) >= u.size() || whole.Bytes >= sealBytes) {
			break
		}
	}
	if n := int64(len(whole.Updates)); n > 0 {
		u.fit = min(max(1, sealBytes*n/max(1, whole.Bytes)), u.size())
	}
	return whole, nil
}

// snapshotSeals compares one page in each turn, so that the updates are not delayed, and after an error it resumes
// there. No transaction is open in between: only a repair changes the rows, and SealSnapshot detects that.
type snapshotSeals struct {
	*SealTask
	sealMemory
	source   UpdateSource
	database *Sealer
	refused  bool          // logged that the participant refuses to show it
	walk     *snapshotWalk // nil: none is under way
	digest   RowsDigest    // of the rows when it began
	sealing  SealedWindow
}

func (s *snapshotSeals) window(ctx context.Context) (*Window, error) {
	return s.database.SnapshotWindow(ctx, s.again)
}

// seal compares the next page, and seals the snapshot after the last one.
func (s *snapshotSeals) seal(ctx context.Context, w Window) (sealing SealedWindow, ok bool, err error) {
	at := ledger.Offset(w.To)
	s.partly = false
	if s.walk == nil || s.sealing.To != w.To {
		if w.Pruned {
			return s.sealUnseen(ctx, s.database, tables.StreamSnapshot, w, SealPruned)
		}
		pruned, err := ingest.AskPruned(ctx, s.source)
		if err != nil {
			return SealedWindow{}, false, err
		}
		if at < pruned {
			return s.sealUnseen(ctx, s.database, tables.StreamSnapshot, w, SealNotShown)
		}
		if s.digest, err = s.database.SnapshotRows(ctx, at); err != nil {
			return SealedWindow{}, false, err
		}
		s.sealing = SealedWindow{Stream: tables.StreamSnapshot, From: w.From, To: w.To}
		s.walk = s.walkAt(at)
	}
	before := s.sealing.Comparison
	done, err := s.walk.step(ctx)
	if err != nil {
		s.sealing.Comparison = before
	}
	if ingest.Lasting(err) {
		// For example, some participants serve a snapshot with a reassignment in flight only until they are pruned. The
		// updates must not wait for it.
		if !s.refused {
			s.refused = true
			s.Logger.WarnContext(ctx, "the snapshot that is carried can't be read again, and is not sealed", "offset", int64(at),
				"error", err)
		}
		s.walk = nil
		return SealedWindow{}, false, nil
	}
	if s.partly = !done; err != nil || s.partly {
		return SealedWindow{}, false, err
	}
	if ok, err = s.database.SealSnapshot(ctx, at, s.digest, s.sealing.Comparison); err == nil {
		s.walk = nil
	}
	return s.sealing, ok, err
}

func (s *snapshotSeals) walkAt(at ledger.Offset) *snapshotWalk {
	return &snapshotWalk{
		read: func(ctx context.Context, token ledger.Token) (ledger.SnapshotPage, error) {
			s.wait(ctx)
			page, err := s.source.ReadSnapshot(ctx, at, token)
			if err != nil {
				return page, fmt.Errorf("read the snapshot at offset %d again: %w", at, err)
			}
			s.spent(max(1, len(page.Entries)))
			return page, nil
		},
		compare: func(ctx context.Context, before int64, entries []ledger.ContractEntry, again bool) ([]EntryKey, error) {
			found := s.sealing.Add
			if again {
				found = ignore
			}
			return s.database.CompareCarried(ctx, at, before, entries, found)
		},
		stored: func(ctx context.Context, each EachStored) error {
			return s.database.CarriedAt(ctx, at, each)
		},
		extra: func(_ EntryKey, extra Difference) { s.sealing.Add(extra) },
	}
}

// A window that the service does not show is requested this often before it is sealed without a comparison: the service
// may only be behind.
const hiddenTries = 3

type recordSeals struct {
	*SealTask
	sealMemory
	source   ingest.TransactionsSource
	database *Sealer

	hidden     int64 // the beginning of a window that was not shown
	hiddenSeen int   // how often it was not
}

func (r *recordSeals) window(ctx context.Context) (*Window, error) {
	return r.database.NextWindow(ctx, tables.StreamTransactions, r.size(), r.again, r.known)
}

func (r *recordSeals) seal(ctx context.Context, w Window) (SealedWindow, bool, error) {
	at, _, err := r.database.TransactionsStanding(ctx)
	if err != nil || at.Rereading || w.To > at.LastSeq {
		return SealedWindow{}, false, err
	}
	r.wait(ctx)
	r.spent(int(w.To - w.From))
	records, err := r.read(ctx, w)
	if err != nil {
		return SealedWindow{}, false, err
	}
	if len(records) == 0 {
		return r.countNotShown(ctx, w)
	}
	c, err := r.database.SealRecords(ctx, w.From, records)
	return SealedWindow{Stream: tables.StreamTransactions, From: w.From, To: w.To, Comparison: c}, err == nil, err
}

// read reads the records of a window from the service. None: the service does not show all of them after the records
// that are stored before the window.
func (r *recordSeals) read(ctx context.Context, w Window) (records []ledger.Record, err error) {
	known, err := r.database.TransactionsMarks(ctx, w.From)
	if err != nil {
		return nil, err
	}
	pages := ingest.NewTransactionsPages(r.source, known, w.From == int64(len(known)))
	for n := int(w.To - w.From); len(records) < n; {
		page, err := pages.Next(ctx)
		var misfit *ingest.TransactionsMisfit
		if errors.As(err, &misfit) {
			return nil, nil
		}
		if err != nil || len(page) == 0 {
			return nil, err
		}
		records = append(records, page[:min(len(page), n-len(records))]...)
	}
	return records, nil
}

// countNotShown counts how often a window was not shown, and seals it as such after hiddenTries.
func (r *recordSeals) countNotShown(ctx context.Context, w Window) (SealedWindow, bool, error) {
	if r.hidden != w.From {
		r.hidden, r.hiddenSeen = w.From, 0
	}
	if r.hiddenSeen++; r.hiddenSeen < hiddenTries {
		return SealedWindow{}, false, nil
	}
	r.hiddenSeen = 0
	return r.sealUnseen(ctx, r.database, tables.StreamTransactions, w, SealNotShown)
}
