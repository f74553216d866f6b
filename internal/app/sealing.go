package app

import (
	"context"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// seal compares what is stored with its source again and seals it, window by window, until ctx ends, or all is sealed
// after finish. add adds what to compare. The error is that of ingest.RunTask.
func (x *indexer) seal(
	ctx context.Context, task string, leader *store.Leader, finish <-chan struct{}, add func(*audit.SealTask),
) error {
	news, measured := false, time.Time{}
	seals := audit.SealTask{Rate: x.cfg.VerifyRate, Window: x.cfg.sealWindow, Logger: x.logger, Finish: finish,
		Sealed: func(s audit.SealedWindow) {
			x.metrics.Sealed(s.Stream, string(s.Result()), s.Differences)
			news = true
		}}
	add(&seals)
	x.setVerifiedMetrics(ctx)
	report := x.report(task, leader)
	report.Finish = finish
	return ingest.RunTask(ctx, report, func(ctx context.Context, worked func()) error {
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

// verifiedMetricsEvery is how often the metrics of verification are updated: reading them takes longer with more
// windows.
const verifiedMetricsEvery = 10 * time.Second

// startSealing starts to compare the stored updates with their source again, if that is configured.
func (x *indexer) startSealing(ctx context.Context, b *background, leader *store.UpdatesWriter,
	from audit.UpdateSource) {
	if x.cfg.VerifyRate == 0 {
		return
	}
	b.start(ingest.TaskVerification, func() error {
		return x.seal(ctx, ingest.TaskVerification, leader.Leader, b.current, func(s *audit.SealTask) {
			s.AddUpdates(from, audit.NewSealer(x.store, leader.Leader))
		})
	})
}

func (x *indexer) setVerifiedMetrics(ctx context.Context) {
	verified, err := x.store.Verified(ctx)
	if err != nil {
		x.logger.DebugContext(ctx, "how far the database was verified could not be read", "error", err)
		return
	}
	x.metrics.Verified(int64(verified.Offset), verified.Seq)
}
