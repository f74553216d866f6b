package writing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// DropResync removes a resync that is not whole, and what waits of it. It reports whether there was one.
func DropResync(ctx context.Context, tx pgx.Tx) (bool, error) {
	dropped, err := queries.ResyncDrop(ctx, tx)
	if err == nil && dropped > 0 {
		err = queries.ResyncClear(ctx, tx)
	}
	if err != nil {
		return false, fmt.Errorf("drop the unfinished resync: %w", err)
	}
	return dropped > 0, nil
}
