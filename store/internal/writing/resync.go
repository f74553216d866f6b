package writing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// DropResync removes a resync that is not whole, if there is one, and what waits of it.
func DropResync(ctx context.Context, tx pgx.Tx) error {
	dropped, err := queries.ResyncDrop(ctx, tx)
	if err == nil && dropped > 0 {
		err = queries.ResyncClear(ctx, tx)
	}
	if err != nil {
		return fmt.Errorf("drop the unfinished resync: %w", err)
	}
	return nil
}
