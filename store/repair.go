package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
)

// repairTimeout is how long one repair may take. Deriving everything anew from the facts takes longest.
const repairTimeout = time.Hour

// Repairer writes again what is not stored as it should be. It has a role of its own, so that there is one at a time, and
// works beside the leaders of the streams: while one of its transactions runs, theirs wait, and those that have waited for 30 s
// fail and are tried again.
type Repairer struct {
	*Leader

	// What numbers of the dictionaries mean (certainty), as the ledger has shown: that does not change any more.
	meant map[reference]string
}

// Repairer tries once to take the role of repairing. ok is false where another process has it.
func (s *Store) Repairer(ctx context.Context) (repairer *Repairer, ok bool, err error) {
	leader, ok, err := s.lead(ctx, RoleRepair)
	if err != nil || !ok {
		return nil, ok, err
	}
	return &Repairer{Leader: leader, meant: map[reference]string{}}, true, nil
}

// repair runs fn in a transaction in which nobody else writes the roles' streams. Roles are in the order of
// rolesThatRemember, so that no two wait for one another, and none for a leader that waits for it.
func (r *Repairer) repair(ctx context.Context, roles []Role, fn func(context.Context, pgx.Tx) error) error {
	return r.writeWithin(ctx, repairTimeout, func(ctx context.Context, tx pgx.Tx) error {
		for _, role := range roles {
			_, err := r.store.queries.LeadershipExclude(ctx, tx, dbsqlc.LeadershipExcludeParams{
				Role: string(role), TurnClass: turnClass, RoleNumber: r.store.cfg.Schemas.roleNumber(role),
			})
			if errors.Is(err, pgx.ErrNoRows) {
				return fmt.Errorf("the database has no role %s", role)
			}
			if err != nil {
				return fmt.Errorf("wait for the writer of role %s: %w", role, err)
			}
		}
		return fn(ctx, tx)
	})
}

// endTerms makes the leaders of the roles begin a new term, because what they remember of the dictionaries or of their
// place may be wrong after this transaction.
func (r *Repairer) endTerms(ctx context.Context, tx pgx.Tx, roles []Role) error {
	for _, role := range roles {
		err := r.store.queries.LeadershipEndTerm(ctx, tx, string(role))
		if err != nil {
			return fmt.Errorf("end the term of the leader of role %s: %w", role, err)
		}
	}
	return nil
}
