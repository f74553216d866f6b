package writing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/tables"
)

// PutInForce names the scope in force where something is covered in another one, and forgets the scopes that nothing is covered in.
func PutInForce(ctx context.Context, tx pgx.Tx, scope string) error {
	covered, err := queries.ScopesCovered(ctx, tx, tables.StreamUpdates)
	if err != nil {
		return fmt.Errorf("read which scopes are covered: %w", err)
	}
	var named *string
	for _, c := range covered {
		if c.Scope != scope {
			named = &scope
		}
	}
	if err := queries.ScopeChange(ctx, tx, dbsqlc.ScopeChangeParams{Stream: tables.StreamUpdates, Scope: named}); err != nil {
		return fmt.Errorf("put the scope in force: %w", err)
	}
	if err := queries.ScopesForget(ctx, tx, scope); err != nil {
		return fmt.Errorf("forget the scopes before: %w", err)
	}
	return nil
}
