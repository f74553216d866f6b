package audit

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/session"
)

// Repairer writes damaged rows again. It has a lease of its own, so that there is one at a time, and works beside the
// leaders of the streams: during its transactions theirs wait, and fail and are tried again after 30 s.
type Repairer struct {
	*store.Leader
	writer
	namesRead atomic.Bool // the leaders of now have read the dictionaries since this one found them altered
}

// leasesThatRemember are all leases whose holders remember numbers of the dictionaries. These leaders are kept from
// writing before the dictionaries are locked, because a leader keeps its lease while it waits for the dictionaries.
// LeasePruning is first, because its leader keeps it while it waits for the leader of the updates.
var leasesThatRemember = []session.Lease{session.LeasePruning, session.LeaseUpdates, session.LeaseTransactions}

// onlyTransactions is for repairs of the history that leave the dictionaries alone.
var onlyTransactions = []session.Lease{session.LeaseTransactions}

// LeadRepair tries once to take the lease of repairs. ok is false where another process has it.
func LeadRepair(ctx context.Context, s *store.Store) (repairer *Repairer, ok bool, err error) {
	leader, ok, err := s.LeadRepair(ctx)
	if err != nil || !ok {
		return nil, ok, err
	}
	return &Repairer{Leader: leader, writer: newWriter(s, leader)}, true, nil
}

// repair runs fn in a transaction that excludes the writers that hold the leases. Leases are in the order of
// leasesThatRemember, so that no two repairs wait for one another, and none for a leader that waits for it.
func (r *Repairer) repair(ctx context.Context, leases []session.Lease, fn func(context.Context, pgx.Tx) error) error {
	err := r.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) error {
		if err := r.term.Exclude(ctx, tx, leases...); err != nil {
			return err
		}
		return fn(ctx, tx)
	})
	if err != nil {
		r.namesRead.Store(false) // the terms may not have ended
	}
	return err
}

// addNames gives numbers to names and lists of parties that have none: the dictionary lost them, or what they are of
// was never stored. Where any was added the terms of the leaders end, because they remember.
func (r *Repairer) addNames(ctx context.Context, tx pgx.Tx, wanted *names.References) error {
	if err := queries.DictionariesLock(ctx, tx); err != nil {
		return fmt.Errorf("lock the dictionaries: %w", err)
	}
	if err := names.Turn(ctx, tx); err != nil {
		return err
	}
	added, err := names.Add(ctx, tx, wanted)
	if err != nil || !added {
		return err
	}
	r.namesRead.Store(false)
	return r.endTermsForNames(ctx, tx)
}

// endTermsForNames ends the terms of the leaders, which remember numbers of the dictionaries, unless that was done
// since these were found altered.
func (r *Repairer) endTermsForNames(ctx context.Context, tx pgx.Tx) error {
	if !r.namesRead.CompareAndSwap(false, true) {
		return nil
	}
	return r.term.EndTerms(ctx, tx, leasesThatRemember...)
}
