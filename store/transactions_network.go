package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
)

// CheckNetwork compares the database with the network whose transaction history is about to be written into it. A
// database of another network is a *ledger.Problem. An empty networkID (a service that does not report it) passes.
func (s *Store) CheckNetwork(ctx context.Context, networkID string) error {
	if networkID == "" {
		return nil
	}
	stored, err := s.Network(ctx)
	if err != nil {
		return err
	}
	if stored != "" && stored != networkID {
		return s.otherNetwork(stored, networkID)
	}
	return nil
}

// Network returns the network whose transaction history the database holds, or is meant for; empty: not known.
func (s *Store) Network(ctx context.Context) (stored string, err error) {
	defer s.db.Wrap(&err, "read the stored network")
	return queries.NetworkGet(ctx, s.db.Pool)
}

func (s *Store) otherNetwork(stored, asked string) error {
	return &ledger.Problem{
		What: fmt.Sprintf("database %s holds the transaction history of the network that %s operates, but the Scan URL "+
			"leads to the one that %s operates", s.Address(), stored, asked),
		Do: "correct --scan-url or --database-url; histories of two networks can't be mixed, so each needs a database or a " +
			"pair of schemas (--tables-schema, --views-schema) of its own",
	}
}

// RecordNetwork records the network where the database does not know it yet. An empty networkID is nothing to record.
func (l *TransactionsWriter) RecordNetwork(ctx context.Context, networkID string) error {
	if networkID == "" {
		return nil
	}
	// it is asked at every try: mostly nothing to write
	if known, err := l.store.Network(ctx); err != nil || known == networkID {
		return err
	}
	err := l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := queries.NetworkRecord(ctx, tx, networkID); err != nil {
			return err
		}
		stored, err := queries.NetworkGet(ctx, tx)
		if err != nil {
			return err
		}
		if stored != networkID { // it was recorded since CheckNetwork
			return l.store.otherNetwork(stored, networkID)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record network %s: %w", networkID, err)
	}
	return nil
}
