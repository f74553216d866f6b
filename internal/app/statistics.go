package app

import (
	"context"
	"strings"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/store"
)

// statisticsEvery is how often the daemon looks for partitioned tables whose statistics are outdated.
const statisticsEvery = 10 * time.Minute

// startStatistics starts the task that gathers the planner's statistics of partitioned tables, which autovacuum doesn't.
func (x *indexer) startStatistics(ctx context.Context, b *background, leader *store.UpdatesWriter) {
	b.running.Go(func() {
		ingest.RunEvery(ctx, x.report(ingest.TaskStatistics, leader.Leader), statisticsEvery, func(ctx context.Context) error {
			started := time.Now()
			refreshed, err := x.store.RefreshStatistics(ctx)
			if len(refreshed) > 0 {
				x.logger.InfoContext(ctx, "gathered statistics of partitioned tables", "relations", strings.Join(refreshed, ", "),
					"duration", time.Since(started).Round(time.Millisecond))
			}
			return err
		})
	})
}
