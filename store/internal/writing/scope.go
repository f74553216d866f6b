package writing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/pg"
)

// PutInForce puts a recorded scope in force, and forgets the scopes in which nothing is covered.
func PutInForce(ctx context.Context, tx pgx.Tx, scope string) error {
	if err := queries.ScopeChange(ctx, tx, scope); err != nil {
		return fmt.Errorf("put the scope in force: %w", err)
	}
	return ForgetScopes(ctx, tx)
}

// ForgetScopes forgets the scopes in which nothing is covered any more, except the one in force.
func ForgetScopes(ctx context.Context, tx pgx.Tx) (err error) {
	defer pg.Wrap(&err, "forget the scopes before")
	return queries.ScopesForget(ctx, tx)
}
