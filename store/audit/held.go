package audit

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/tables"
)

// CompareHeld looks for contradictions in what the database says that it holds: floors, checkpoint, coverage, scopes,
// snapshots and redactions. found is called for each. Everything is read in one read-only snapshot.
//
// Everything else is compared by these rows, and would be repaired by them. Where two of them contradict each other,
// only a backup tells which one is wrong.
func (s *Stored) CompareHeld(ctx context.Context, found Found) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		list, err := queries.HeldContradictions(ctx, tx)
		if err != nil {
			return fmt.Errorf("compare what is held with itself: %w", err)
		}
		for _, c := range list {
			found(contradictory(c.Relation, c.Name, c.Says))
		}
		return s.compareScopes(ctx, tx, found)
	})
}

// compareScopes compares each scope that something was read in with its hash.
func (s *Stored) compareScopes(ctx context.Context, tx pgx.Tx, found Found) error {
	scopes, err := queries.ScopesCovered(ctx, tx, tables.StreamUpdates)
	if err != nil {
		return fmt.Errorf("read the scopes: %w", err)
	}
	for _, row := range scopes {
		var scope ledger.Scope
		says := ""
		switch err := json.Unmarshal([]byte(row.Definition), &scope); {
		case row.Definition == "":
			says = "something was read in it, and it is not stored"
		case err != nil, scope.Hash() != row.Scope:
			says = "its definition does not have this hash"
		default:
			continue
		}
		found(contradictory("scopes", "scope "+row.Scope, says))
	}
	return nil
}

func contradictory(relation, row, says string) Difference {
	d := derivedDifference(Contradictory, relation, row)
	d.Says = says
	return d
}
