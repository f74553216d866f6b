package ingest

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"ledgerindexer/ledger"
)

// PackageSink keeps what is vetted.
type PackageSink interface {
	TaskSink
	// SaveVettedPackages replaces what is known to be vetted now and keeps what it was before. It returns how many
	// packages were vetted, unvetted, or given other bounds since the last time.
	SaveVettedPackages(ctx context.Context, list []ledger.VettedPackages) (changes int, err error)
}

// Packages is the task that follows which packages the participant has vetted (interface.md, "VettedPackages"). It
// reads and never changes them. It works beside the updates loop, and whatever happens to it is no matter of the
// stream's. It is used once.
type Packages struct {
	// Read returns what the participant has vetted now, on each synchronizer.
	Read   func(ctx context.Context) ([]ledger.VettedPackages, error)
	Sink   PackageSink
	Every  time.Duration // between readings
	Logger *slog.Logger
	Watch  TaskWatch
	// Saved, if set, is told after each reading that was stored how many changes it brought.
	Saved func(changes int)
}

// Run reads at once and then at the interval, until ctx ends.
func (p *Packages) Run(ctx context.Context) {
	t := task{name: TaskPackages, sink: p.Sink, logger: p.Logger, watch: p.Watch, each: true}
	for ctx.Err() == nil {
		wait := p.Every
		if err := p.read(ctx); err == nil {
			t.worked(ctx)
		} else {
			if !Lasting(err) && !errors.Is(err, ledger.ErrNotOffered) {
				wait = min(wait, t.wait.Next(err))
			}
			t.failed(ctx, err, wait)
		}
		Sleep(ctx, wait)
	}
}

func (p *Packages) read(ctx context.Context) error {
	var list []ledger.VettedPackages
	err := patiently(ctx, listPatience, func(ctx context.Context) (err error) {
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
		p.Logger.InfoContext(ctx, "vetted packages changed", "changes", changes, "packages", packages, "synchronizers", len(list))
	}
	if p.Saved != nil {
		p.Saved(changes)
	}
	return nil
}
