package ingest

import (
	"context"
	"log/slog"
	"time"

	"ledgerindexer/ledger"
)

// VettingSink stores what is vetted.
type VettingSink interface {
	TaskSink
	// SaveVettedPackages stores what is vetted now, and keeps what was vetted before as the past. It returns how many
	// packages were vetted, unvetted, or given other bounds since the last call.
	SaveVettedPackages(ctx context.Context, list []ledger.VettedPackages) (changes int, err error)
}

// Vetting is the background task that reads, at an interval, which packages the participant has vetted (interface.md,
// "VettedPackages"). It never changes them. It is used once.
type Vetting struct {
	// Read returns what the participant has vetted now, on each synchronizer.
	Read   func(ctx context.Context) ([]ledger.VettedPackages, error)
	Sink   VettingSink
	Every  time.Duration   // between readings
	Finish <-chan struct{} // see TaskReport
	Logger *slog.Logger
	Watch  TaskWatch
	// Saved, if set, is called after each reading that was stored, with the number of changes.
	Saved func(changes int)
}

// Run reads at once and then at the interval, until ctx ends or it has read once more after Finish. Its error is that
// of RunTask.
func (p *Vetting) Run(ctx context.Context) error {
	t := newTask(TaskReport{Name: TaskVetting, Sink: p.Sink, Logger: p.Logger, Watch: p.Watch, Finish: p.Finish})
	t.each, t.retry.Rest, t.retry.Final = true, p.Every, lastingOrNotOffered
	return t.runEvery(ctx, p.Every, p.read)
}

func (p *Vetting) read(ctx context.Context) error {
	var list []ledger.VettedPackages
	err := withTimeout(ctx, listPatience, func(ctx context.Context) (err error) {
		list, err = p.Read(ctx)
		return err
	})
	if err != nil {
		return err
	}
	changes, err := p.Sink.SaveVettedPackages(ctx, list)
	if err != nil {
		return err
	}
	if changes > 0 {
		packages := 0
		for _, vetted := range list {
			packages += len(vetted.Packages)
		}
		p.Logger.InfoContext(ctx, "vetted packages changed", "changes", changes, "packages", packages,
			"synchronizers", len(list))
	}
	if p.Saved != nil {
		p.Saved(changes)
	}
	return nil
}
