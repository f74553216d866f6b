package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
	"ledgerindexer/store"
)

// Backfill is the configuration of the snapshot backfill.
type Backfill struct {
	config.Database
	config.Ledger
	config.Scope
	config.Snapshot
	config.Pace
	config.Profile
	// Show, if set, is called with the progress, about four times a second.
	Show func(ledger.Progress) `kong:"-"`
}

// The lock of a killed leader stays for some seconds. One that is still held after this time belongs to a running process.
const leadPatience = 10 * time.Second

// RunBackfill seeds the database from a snapshot of active contracts. wrote, if not nil, is called after each page with the number
// of stored entries. When ctx ends, RunBackfill finishes the page under way and returns ctx's error: the next run resumes there.
func RunBackfill(ctx context.Context, cfg Backfill, logger *slog.Logger, wrote func(entries int64)) (ledger.SnapshotProgress, error) {
	var none ledger.SnapshotProgress
	endPprof, err := startPprof(ctx, cfg.Profile, logger)
	if err != nil {
		return none, err
	}
	defer endPprof()
	scope := cfg.Domain()
	db, err := store.Open(cfg.Store(logger))
	if err != nil {
		return none, &config.UsageError{Err: err}
	}
	defer db.Close()
	client, err := participant.New(participant.Config{
		URL: cfg.LedgerURL, Access: cfg.LedgerAccess.Domain("ledger"), Logger: logger, MaxRequests: cfg.MaxRequests, MaxRate: cfg.MaxRate,
	}, scope)
	if err != nil {
		return none, &config.UsageError{Err: err}
	}
	defer client.Close()
	participantID, err := meet(ctx, db, client, scope, logger)
	if err != nil {
		return none, err
	}
	leader, err := leadNow(ctx, db, store.RoleUpdates, db.LeadUpdates, "stop it before seeding from a snapshot")
	if err != nil {
		return none, err
	}
	defer leader.Close()
	ctx, endTerm := whileLeading(ctx, leader.Leader)
	defer endTerm()
	tell, endRecording := startRecording(ctx, leader.RecordProgress, logger, cfg.Show)
	defer endRecording()
	snapshot := ingest.Snapshot{
		Source: client, Sink: leader, Scope: scope, ParticipantID: participantID, At: cfg.Offset(), Restart: cfg.Restart,
		Logger: logger, Wrote: wrote, Progress: tell,
	}
	progress, err := snapshot.Run(ctx)
	if errors.Is(err, context.Canceled) {
		err = context.Cause(ctx)
	}
	return progress, err
}

// meet waits for the database and the participant, and checks that they belong together.
func meet(ctx context.Context, db *store.Store, client *participant.Client, scope ledger.Scope, logger *slog.Logger) (participantID string, err error) {
	silent := func(error) {}
	err = retryUntilDone(ctx, logger, "waiting for the database", func(ctx context.Context) error {
		applied, err := db.Migrate(ctx)
		if len(applied) > 0 {
			logger.InfoContext(ctx, "migrated", "migrations", applied)
		}
		return err
	}, silent)
	if err != nil {
		return "", err
	}
	err = retryUntilDone(ctx, logger, "waiting for the participant", func(ctx context.Context) error {
		server, err := client.Discover(ctx)
		if err != nil {
			return err
		}
		participantID = server.ParticipantID
		return db.CheckIdentity(ctx, participantID, scope)
	}, silent)
	if err == nil {
		err = ctx.Err()
	}
	return participantID, err
}

// leadNow takes the lead of a role. If another process has it, the error names that, with do as the cure.
func leadNow[W any](ctx context.Context, db *store.Store, role store.Role, take func(context.Context) (W, bool, error), do string) (none W, err error) {
	deadline := time.Now().Add(leadPatience)
	for {
		leader, ok, err := take(ctx)
		if err != nil || ok {
			return leader, err
		}
		if time.Now().After(deadline) {
			who, err := db.Leadership(ctx, role)
			if err != nil {
				return none, err
			}
			return none, &ledger.Problem{What: "another process writes this database: " + who.Holder, Do: do}
		}
		ingest.Sleep(ctx, standbyEvery)
		if ctx.Err() != nil {
			return none, context.Cause(ctx)
		}
	}
}
