package store

import (
	"context"

	"ledgerindexer/store/internal/active"
)

// UpdatesWriter has LeaseUpdates: it writes the stream of updates, or the snapshot that it stands on, and what tasks
// beside it read.
type UpdatesWriter struct {
	*Leader
	pending *active.Pending
}

// LeadUpdates tries once to take LeaseUpdates. ok is false where another process has it.
func (s *Store) LeadUpdates(ctx context.Context) (writer *UpdatesWriter, ok bool, err error) {
	leader, ok, err := s.lead(ctx, LeaseUpdates)
	if err != nil || !ok {
		return nil, false, err
	}
	return &UpdatesWriter{Leader: leader, pending: active.NewPending()}, true, nil
}

// TransactionsWriter has LeaseTransactions: it writes the transaction history.
type TransactionsWriter struct{ *Leader }

// LeadTransactions tries once to take LeaseTransactions. ok is false where another process has it.
func (s *Store) LeadTransactions(ctx context.Context) (writer *TransactionsWriter, ok bool, err error) {
	leader, ok, err := s.lead(ctx, LeaseTransactions)
	if err != nil || !ok {
		return nil, false, err
	}
	return &TransactionsWriter{leader}, true, nil
}

// PruningWriter has LeasePruning: it removes what is older than an offset.
type PruningWriter struct{ *Leader }

// LeadPruning tries once to take LeasePruning. ok is false where another process has it.
func (s *Store) LeadPruning(ctx context.Context) (writer *PruningWriter, ok bool, err error) {
	leader, ok, err := s.lead(ctx, LeasePruning)
	if err != nil || !ok {
		return nil, false, err
	}
	return &PruningWriter{leader}, true, nil
}

// LeadRepair tries once to take LeaseRepair, for package audit. ok is false where another process has it.
func (s *Store) LeadRepair(ctx context.Context) (leader *Leader, ok bool, err error) {
	return s.lead(ctx, LeaseRepair)
}
