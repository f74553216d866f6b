package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// leastAnalyzed is from how many rows on a partitioned table is given statistics. With fewer every plan is fast.
const leastAnalyzed = 10_000

// RefreshStatistics gathers the planner's statistics of partitioned tables where they are missing, or the table has grown or shrunk by half since,
// and returns which these are. Autovacuum gathers only those of each partition. A table that something else changes at the moment is left out, as
// are those of another owner. PostgreSQL reads a sample, of the table and of each of its partitions: so it takes long only where these are many.
func (s *Store) RefreshStatistics(ctx context.Context) (refreshed []string, err error) {
	outdated, err := s.outdatedStatistics(ctx)
	if err != nil || len(outdated) == 0 {
		return nil, err
	}
	for _, table := range outdated {
		if _, err := s.db.Pool.Exec(ctx, "ANALYZE (SKIP_LOCKED) "+pgx.Identifier{table}.Sanitize()); err != nil {
			return nil, fmt.Errorf("gather the statistics of %s: %w", table, err)
		}
	}
	left, err := s.outdatedStatistics(ctx)
	return slices.DeleteFunc(outdated, func(table string) bool { return slices.Contains(left, table) }), err
}

func (s *Store) outdatedStatistics(ctx context.Context) ([]string, error) {
	list, err := s.db.Queries.PartitionedOutdated(ctx, s.db.Pool, leastAnalyzed)
	if err != nil {
		return nil, fmt.Errorf("look for partitioned tables without statistics: %w", err)
	}
	return list, nil
}
