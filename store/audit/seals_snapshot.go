package audit

import (
	"context"
	"fmt"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/tables"
)

type snapshotSeals struct {
	*Seals
	sealMemory
	source   UpdateSource
	database SealDatabase
	refused  bool             // logged that the participant refuses to show it
	reading  *snapshotReading // nil: none is under way
}

// snapshotReading is how far a snapshot was compared. Each turn of the stream reads one page, so that the updates are
// not delayed, and after an error it resumes there. No transaction is open in between: only a repair changes the rows,
// and SealSnapshot detects that.
type snapshotReading struct {
	digest  RowsDigest
	sealing Sealing

	token  ledger.Token // of the next page
	before int64        // entries before that page
	ended  bool         // the last page was read

	unseen *unseen
}

func (s *snapshotSeals) window(ctx context.Context) (*Window, error) {
	return s.database.SnapshotWindow(ctx, s.again)
}

// seal compares the next page, and seals the snapshot after the last one.
func (s *snapshotSeals) seal(ctx context.Context, w Window) (sealing Sealing, ok bool, err error) {
	at := ledger.Offset(w.To)
	s.partly = false
	if s.reading == nil || s.reading.sealing.To != w.To {
		if w.Pruned {
			return s.sealUnseen(ctx, s.database, tables.StreamSnapshot, w, SealPruned)
		}
		pruned, err := ingest.AskPruned(ctx, s.source)
		if err != nil {
			return Sealing{}, false, err
		}
		if at < pruned {
			return s.sealUnseen(ctx, s.database, tables.StreamSnapshot, w, SealNotShown)
		}
		digest, err := s.database.SnapshotRows(ctx, at)
		if err != nil {
			return Sealing{}, false, err
		}
		sealing := Sealing{Stream: tables.StreamSnapshot, From: w.From, To: w.To}
		s.reading = &snapshotReading{digest: digest, sealing: sealing, unseen: newUnseen()}
	}
	r := s.reading
	err = s.compare(ctx, at, r)
	if ingest.Lasting(err) {
		// For example, some participants serve a snapshot with a reassignment in flight only until they are pruned. The
		// updates must not wait for it.
		if !s.refused {
			s.refused = true
			s.Logger.WarnContext(ctx, "the snapshot that is carried can't be read again, and is not sealed", "offset", int64(at),
				"error", err)
		}
		s.reading = nil
		return Sealing{}, false, nil
	}
	if s.partly = !r.unseen.done(); err != nil || s.partly {
		return Sealing{}, false, err
	}
	if ok, err = s.database.SealSnapshot(ctx, at, r.digest, r.sealing.Comparison); err == nil {
		s.reading = nil
	}
	return r.sealing, ok, err
}

// compare compares the next page, and after the last one looks for rows without an entry.
func (s *snapshotSeals) compare(ctx context.Context, at ledger.Offset, r *snapshotReading) error {
	if r.unseen.done() {
		return nil
	}
	if !r.ended {
		if err := s.page(ctx, at, r); err != nil || !r.ended {
			return err
		}
	}
	c := r.sealing.Comparison
	err := r.unseen.end(func(each func(string, Difference) error) error {
		return s.database.CarriedAt(ctx, at,
			each)
	},
		func(_ string, extra Difference) error { return c.Add(extra) })
	if err != nil {
		return err
	}
	r.sealing.Comparison = c
	r.token, r.before, r.ended = ledger.Token{}, 0, false
	return nil
}

// page compares the next page. After an error it may be called again.
func (s *snapshotSeals) page(ctx context.Context, at ledger.Offset, r *snapshotReading) error {
	s.pace(ctx)
	page, err := s.source.ReadSnapshot(ctx, at, r.token)
	if err != nil {
		return fmt.Errorf("read the snapshot at offset %d again: %w", at, err)
	}
	s.spent(max(1, len(page.Entries)))
	c := r.sealing.Comparison
	found := c.Add
	if !r.unseen.first() {
		found = ignore
	}
	var keys []string
	err = s.database.CompareCarried(ctx, at, r.before, page.Entries, func(key string) { keys = append(keys, key) }, found)
	if err != nil {
		return err
	}
	for _, key := range keys {
		r.unseen.see(key)
	}
	r.sealing.Comparison = c
	r.token, r.before, r.ended = page.Next, r.before+int64(len(page.Entries)), page.Last
	return nil
}
