package audit

import (
	"cmp"
	"context"
	"fmt"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/tables"
)

// windowBytes is about how many bytes of JSON a window has at most: all of it is in memory when it is compared.
const windowBytes = 8 << 20

type updateSeals struct {
	*Seals
	sealMemory
	source   UpdateSource
	database SealDatabase
	// updates of about windowBytes, at most those of a full one, by the window that was read last; 0: none was read yet
	fit int64
}

func (u *updateSeals) window(ctx context.Context) (*Window, error) {
	return u.database.NextWindow(ctx, tables.StreamUpdates, cmp.Or(u.fit, u.size()), u.again, u.known)
}

func (u *updateSeals) seal(ctx context.Context, w Window) (Sealing, bool, error) {
	pruned, err := ingest.AskPruned(ctx, u.source)
	if err != nil {
		return Sealing{}, false, err
	}
	if w.From < int64(pruned) {
		if !w.Again {
			w.To = min(w.To, int64(pruned))
		}
		return u.sealUnseen(ctx, u.database, tables.StreamUpdates, w, SealNotShown)
	}
	page, err := u.read(ctx, w)
	if err != nil {
		return Sealing{}, false, err
	}
	c, err := u.database.SealUpdates(ctx, page)
	return Sealing{Stream: tables.StreamUpdates, From: int64(page.From), To: int64(page.To), Comparison: c}, err == nil,
		err
}

// read reads a window as one page. A window that was not sealed before may end sooner, when it is full or has
// windowBytes.
func (u *updateSeals) read(ctx context.Context, w Window) (ledger.Page, error) {
	whole := ledger.Page{From: ledger.Offset(w.From), To: ledger.Offset(w.From)}
	for to := ledger.Offset(w.To); whole.To < to; {
		u.pace(ctx)
		page, err := u.source.ReadUpdates(ctx, whole.To, to)
		if err != nil {
			return whole, fmt.Errorf("read the updates after offset %d up to %d again: %w", whole.To, to, err)
		}
		if page.From != whole.To || page.To <= page.From || page.To > to {
			return whole, fmt.Errorf(
				"read the updates after offset %d up to %d again: the page covers offsets after %d up to %d", whole.To, to,
				page.From, page.To)
		}
		u.spent(max(1, len(page.Updates)))
		whole.To, whole.Bytes, whole.Updates = page.To, whole.Bytes+page.Bytes, append(whole.Updates, page.Updates...)
		if !w.Again && (int64(len(whole.Updates)) >= u.size() || whole.Bytes >= windowBytes) {
			break
		}
	}
	if n := int64(len(whole.Updates)); n > 0 {
		u.fit = min(max(1, windowBytes*n/max(1, whole.Bytes)), u.size())
	}
	return whole, nil
}
