package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/pg"
)

// Leader is a lease that this process holds, at one epoch. Its writes fail with ErrNotLeader once another process has
// raised the epoch. It is safe for concurrent use. What only the lease's holder may do is among the methods of the
// types that have one: UpdatesWriter, TransactionsWriter and PruningWriter.
type Leader struct {
	store *Store
	term  *leadership.Term
}

// leadTimeout is how long taking a lease may take. Without it, a server that is gone would be waited for much longer,
// although another one may have taken its place.
const leadTimeout = time.Minute

// lead tries once to take the lease. ok is false where another process has it.
func (s *Store) lead(ctx context.Context, lease Lease) (leader *Leader, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, leadTimeout)
	defer cancel()
	term, ok, err := leadership.Take(ctx, s.db, lease)
	if err != nil || !ok {
		return nil, false, err
	}
	// Another version may have migrated the schema since this process started. It ends the terms that began before, so
	// what is seen now holds for this one.
	if err := s.CheckSchema(ctx); err != nil {
		term.Close()
		return nil, false, err
	}
	return &Leader{store: s, term: term}, true, nil
}

// Epoch returns the number of this leader's term; a later leader of the lease has a greater one.
func (l *Leader) Epoch() int64 { return l.term.Epoch() }

// Term returns the term that the leader has the lease for, for package audit.
func (l *Leader) Term() *leadership.Term { return l.term }

// Lost returns a channel that is closed when the lease is lost, because its lock connection ended, or because a write
// found its epoch over. Err then says why.
func (l *Leader) Lost() <-chan struct{} { return l.term.Lost() }

// Err returns why the lease was lost; nil while it is held.
func (l *Leader) Err() error { return l.term.Err() }

// Close gives the lease up, after the transactions under way have ended.
func (l *Leader) Close() { l.term.Close() }

// Leadership is the process that led last, and may lead now.
type Leadership struct {
	Epoch  int64
	Holder string
	Since  time.Time // zero: nobody led yet
	Leads  bool      // it has the lease now; else it had it last
}

// Leadership returns which process has a lease, or had it last.
func (s *Store) Leadership(ctx context.Context, lease Lease) (leadership Leadership, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) (err error) {
		leadership, err = s.leadership(ctx, tx, lease)
		return err
	})
	return leadership, err
}

func (s *Store) leadership(ctx context.Context, tx pgx.Tx, lease Lease) (_ Leadership, err error) {
	defer pg.Wrap(&err, "read leadership of lease %s", lease)
	row, err := queries.LeadershipGet(ctx, tx, string(lease))
	return Leadership{Epoch: row.Epoch, Holder: textOf(row.Holder), Since: row.LedSince.Time, Leads: row.Leads}, err
}

// inOrder returns what writes a page, or records: it copies their rows, and advances the position when those before
// them are stored. The first of them advances the position before it copies: where an earlier transaction that wrote
// the same may still be committed, it waits there for its end.
func inOrder(order CommitOrder,
	advance, copyRows func(context.Context, pgx.Tx) error) func(context.Context, pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		if order == nil || order.First() {
			if err := advance(ctx, tx); err != nil {
				return err
			}
			return copyRows(ctx, tx)
		}
		if err := copyRows(ctx, tx); err != nil {
			return err
		}
		if err := order.Wait(ctx); err != nil {
			return err
		}
		return advance(ctx, tx)
	}
}
