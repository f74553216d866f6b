package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// Fill is the configuration of a history backfill.
type Fill struct {
	config.Database
	config.Ledger
	config.Scope
	config.Fill
	config.Pace
	config.Profile
	// Show, if set, is called with the progress, about four times a second.
	Show func(ledger.Progress) `kong:"-"`
}

// RunFill reads the updates below the history floor. A daemon may write the same database meanwhile. When ctx ends, RunFill finishes
// the transactions under way and returns ctx's error: the next run resumes there.
func RunFill(ctx context.Context, cfg Fill, logger *slog.Logger) (ingest.Filled, error) {
	endPprof, err := startPprof(ctx, cfg.Profile, logger)
	if err != nil {
		return ingest.Filled{}, err
	}
	defer endPprof()
	f := fill{cfg: cfg, logger: logger, scope: cfg.Scope.Domain()}
	f.db, err = store.Open(store.Config{URL: cfg.DatabaseURL, Schemas: cfg.Schemas.Domain(), Logger: logger, Holder: config.Holder()})
	if err != nil {
		return ingest.Filled{}, &config.UsageError{Err: err}
	}
	defer f.db.Close()
	f.client, err = participant.New(participant.Config{
		URL: cfg.LedgerURL, Access: cfg.LedgerAccess.Domain("ledger"), Logger: logger, MaxRequests: cfg.MaxRequests, MaxRate: cfg.MaxRate,
	}, f.scope)
	if err != nil {
		return ingest.Filled{}, &config.UsageError{Err: err}
	}
	defer f.client.Close()
	if _, err := meet(ctx, f.db, f.client, f.scope, logger); err != nil {
		return ingest.Filled{}, err
	}
	unfinished, err := f.db.UnfinishedSnapshot(ctx)
	if err != nil {
		return ingest.Filled{}, err
	}
	if unfinished != nil {
		return ingest.Filled{}, &ledger.Problem{
			What: fmt.Sprintf("the snapshot at offset %d is not finished, and history is filled in below it", unfinished.At),
			Do:   "run `backfill` again: it continues where it was",
		}
	}
	return f.run(ctx)
}

// fill is a running history backfill.
type fill struct {
	cfg    Fill
	logger *slog.Logger
	scope  ledger.Scope
	db     *store.Store
	client *participant.Client
}

// run works as the leader, and takes the lead again after a repair has ended its term.
func (f *fill) run(ctx context.Context) (ingest.Filled, error) {
	updates := int64(0)
	for {
		filled, err := f.term(ctx)
		updates += filled.Updates
		filled.Updates = updates
		if !errors.Is(err, store.ErrNotLeader) {
			return filled, err
		}
		f.logger.WarnContext(ctx, "the lead was lost; continuing if nobody else has it", "stream", "backfill", "error", err)
	}
}

func (f *fill) term(ctx context.Context) (ingest.Filled, error) {
	leader, err := leadNow(ctx, f.db, store.RoleBackfill, f.db.LeadBackfill, "wait until it is done; one history backfill at a time fills in a database")
	if err != nil {
		return ingest.Filled{}, err
	}
	defer leader.Close()
	ctx, endTerm := whileLeading(ctx, leader.Leader)
	defer endTerm()
	tell, endRecording := startRecording(ctx, leader.RecordProgress, f.logger, f.cfg.Show)
	defer endRecording()
	loop := ingest.Fill{
		Source: f.client, Sink: fillSink{leader, audit.New(f.db)}, Scope: f.scope, From: (*ledger.Offset)(f.cfg.From), To: (*ledger.Offset)(f.cfg.To),
		PrunedToo: f.cfg.PrunedToo, NewestFirst: f.cfg.NewestFirst, MaxRequests: f.cfg.MaxRequests, Logger: f.logger, Progress: tell,
		Check: func(ctx context.Context) error {
			server, err := f.client.Discover(ctx)
			if err != nil {
				return err
			}
			return f.db.CheckIdentity(ctx, server.ParticipantID, f.scope)
		},
	}
	if f.cfg.WithSnapshot {
		loop.Snapshot = &ingest.Snapshot{Source: f.client, Sink: leader.LowerSnapshot(), Scope: f.scope, Logger: f.logger, Progress: tell}
	}
	filled, err := loop.Run(ctx)
	if errors.Is(err, context.Canceled) {
		err = context.Cause(ctx)
	}
	return filled, err
}
