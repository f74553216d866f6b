package app

import (
	"context"
	"sync"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
	"ledgerindexer/verify"
)

// How often the metrics of verification are updated: reading them takes longer with more windows.
const verifiedMetricsEvery = 10 * time.Second

// seal compares what is stored with its source again and seals it, window by window, until ctx ends. add adds what to compare.
func (x *indexer) seal(ctx context.Context, task string, leader *store.Leader, add func(*verify.Seals)) {
	news, measured := false, time.Time{}
	seals := verify.Seals{Rate: x.rates.verifications, Window: x.cfg.sealWindow, Logger: x.logger, Sealed: func(s verify.Sealing) {
		x.metrics.Sealed(s.Stream, string(s.Result()), s.Differences)
		news = true
	}}
	add(&seals)
	x.setVerifiedMetrics(ctx)
	ingest.RunTask(ctx, x.report(task, leader), func(ctx context.Context, worked func()) error {
		seals.Working = func() {
			worked()
			if news && time.Since(measured) >= verifiedMetricsEvery {
				x.setVerifiedMetrics(ctx)
				news, measured = false, time.Now()
			}
		}
		return seals.Run(ctx)
	})
}

// startTasks starts what runs beside the reading of the transaction history: sealing it, and adding up amulets. end stops both.
func (h *transactions) startTasks(ctx context.Context, leader *store.TransactionsWriter) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	if h.cfg.VerifyRate > 0 {
		running.Go(func() {
			h.seal(ctx, ingest.TaskTransactionsVerification, leader.Leader, func(s *verify.Seals) {
				db := newAudited(h.store)
				s.AddTransactions(h.service, db, db, audit.NewSealer(h.store, leader.Leader))
			})
		})
	}
	if h.derived != nil && !h.cfg.UntilCurrent {
		running.Go(func() { h.keepSums(ctx, leader) })
	}
	return func() {
		cancel()
		if waitOrAbandon(running.Wait) != nil {
			h.logger.WarnContext(ctx, "a background task of the transaction history does not end; it is not waited for")
		}
		h.metrics.TasksEnded(ingest.TaskTransactionsVerification)
	}
}

func (x *indexer) setVerifiedMetrics(ctx context.Context) {
	verified, err := x.store.Verified(ctx)
	if err != nil {
		x.logger.DebugContext(ctx, "how far the database was verified could not be read", "error", err)
		return
	}
	x.metrics.Verified(int64(verified.Offset), verified.Seq)
}
