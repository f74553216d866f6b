package scan

import (
	"context"
	"fmt"
	"time"

	"ledgerindexer/ledger"
)

// migrationBefore returns the last migration before another one that has updates and of which begun is true, given the
// record time of its first update; -1: none. begun must be true of all migrations before one of which it is. The
// service lists no migrations, and ids may be far apart, so they are searched for by bisection.
//
// The errors are those of ReadUpdates.
func (u *Updates) migrationBefore(ctx context.Context, before int64, begun func(time.Time) bool) (int64, error) {
	found, low, high := int64(-1), int64(0), before
	for low < high {
		at := low + (high-low)/2
		if high == before && found < 0 { // mostly it is the one before
			at = before - 1
		}
		first, err := u.firstFrom(ctx, at)
		if err != nil {
			return 0, err
		}
		if id, begins := first.NetworkPosition(); first > 0 && id < before && begun(begins) {
			found, low = id, id+1
		} else {
			high = at
		}
	}
	return found, nil
}

// firstFrom returns the offset of the first update of a migration or, if it has none, of a later one; 0: there is none.
func (u *Updates) firstFrom(ctx context.Context, migrationID int64) (ledger.Offset, error) {
	u.mu.Lock()
	first, known := u.firsts.at[migrationID]
	known = known && u.firsts.changes == u.Changes()
	u.mu.Unlock()
	if known {
		return first, nil
	}
	after := ledger.Offset(0)
	if migrationID > 0 {
		after = ledger.LastOfMigration(migrationID - 1)
	}
	page, err := u.page(ctx, "updates-first", after, 1, u.client.maxBody)
	if err != nil {
		return 0, fmt.Errorf("look for the first update of migration %d: %w", migrationID, err)
	}
	if len(page.updates) > 0 {
		first = page.updates[0].Offset
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.firsts.changes != page.changes || u.firsts.at == nil {
		u.firsts = firsts{at: map[int64]ledger.Offset{}, changes: page.changes}
	}
	if first > 0 { // else one may come
		u.firsts.at[migrationID] = first
	}
	return first, nil
}

// firsts has the first updates from migrations on. They hold as long as the client's count of changes is the same.
type firsts struct {
	at      map[int64]ledger.Offset
	changes int64
}
