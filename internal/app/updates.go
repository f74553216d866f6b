package app

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/admin"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// updates implements role for the updates of a participant.
type updates struct {
	*indexer
	scope  ledger.Scope
	start  ingest.Start
	client *participant.Client
	server atomic.Pointer[participant.Server] // what the participant last reported of itself
}

func newUpdates(x *indexer) (*updates, error) {
	u := &updates{indexer: x, scope: x.cfg.Domain()}
	var err error
	if u.start, err = ingest.ParseStart(x.cfg.Start); err != nil {
		return nil, err
	}
	u.client, err = participant.New(participant.Config{
		URL: x.cfg.LedgerURL, Access: x.cfg.LedgerAccess.Domain("ledger"), Logger: x.logger, Observe: x.metrics.Request, NotJSON: x.metrics.NotJSON,
		MaxRequests: x.cfg.MaxRequests, MaxRate: x.cfg.MaxRate,
	}, u.scope)
	if err != nil {
		return nil, &config.UsageError{Err: err}
	}
	return u, nil
}

// ping asks for the ledger's end. A server that does not offer that has answered too.
func (u *updates) ping(ctx context.Context) error {
	_, err := u.client.LedgerEnd(ctx)
	if errors.Is(err, ledger.ErrNotOffered) {
		return nil
	}
	return err
}

// connect asks the participant who it is, and checks that the database belongs to it.
func (u *updates) connect(ctx context.Context) error {
	server, err := u.client.Discover(ctx)
	if err != nil {
		return err
	}
	u.server.Store(&server)
	return u.store.CheckIdentity(ctx, server.ParticipantID, u.scope)
}

// connectAsLeader is connect for a leader, which also records the participant in a new database.
func (u *updates) connectAsLeader(ctx context.Context, leader *store.UpdatesWriter) error {
	if err := u.connect(ctx); err != nil {
		return err
	}
	participantID := u.server.Load().ParticipantID
	if participantID == "" {
		u.logger.WarnContext(ctx, "the participant does not tell who it is: another one behind the URL would not be noticed")
	}
	return leader.RecordIdentity(ctx, participantID, u.scope)
}

// blocker reports a snapshot that a backfill has begun and not finished.
func (u *updates) blocker(ctx context.Context) (state string, ready bool, err error) {
	unfinished, err := u.store.UnfinishedSnapshot(ctx)
	if err != nil || unfinished == nil {
		return "", false, err
	}
	return fmt.Sprintf("waiting: a backfill has to finish the snapshot at offset %d (%d entries stored); run `backfill` to go on with it",
		unfinished.At, unfinished.Entries), false, nil
}

func (u *updates) take(ctx context.Context) (*store.Leader, func(context.Context, *stream) (bool, error), bool, error) {
	writer, ok, err := u.store.LeadUpdates(ctx)
	if err != nil || !ok {
		return nil, nil, false, err
	}
	return writer.Leader, func(ctx context.Context, s *stream) (bool, error) { return u.run(ctx, s, writer) }, true, nil
}

// run indexes the updates, with the tasks beside them.
func (u *updates) run(ctx context.Context, s *stream, leader *store.UpdatesWriter) (done bool, err error) {
	s.set(admin.Leads, true, "leading")
	taskCtx, endTasks := context.WithCancel(ctx)
	defer endTasks()
	tell, endRecording := startRecording(ctx, leader.RecordProgress, u.logger, u.cfg.Show)
	var tasks *background // nil until the participant is known to have the stored updates
	loop := ingest.Updates{
		Source: u.client, Sink: updatesSink{leader, audit.New(u.store)}, Scope: u.scope, Start: u.start, ParticipantID: u.server.Load().ParticipantID,
		Check:        func(ctx context.Context) error { return u.connectAsLeader(ctx, leader) },
		UntilCurrent: u.cfg.UntilCurrent, MaxRequests: u.cfg.MaxRequests, Logger: u.logger,
		Watch: ingest.Watch{
			Resumed: func(watermark ledger.Offset) {
				s.retry.Worked() // both sides answered
				u.metrics.Committed(int64(watermark), 0)
				u.tellShown(ctx, watermark)
				if tasks == nil {
					tasks = u.startBackground(taskCtx, leader)
					s.note(ctx, leader.Leader, "")
				}
			},
			Committed: func(watermark, frontier ledger.Offset, n int) {
				u.metrics.Committed(int64(watermark), n)
				u.metrics.Frontier(int64(frontier))
				tasks.wake()
			},
			LedgerEnd: func(end ledger.Offset) { u.metrics.LedgerEnd(int64(end)) },
			Retrying: func(err error, _ time.Duration) {
				u.metrics.Retrying(s.name())
				s.set(admin.Waits, false, "leading, trying again: "+err.Error())
			},
			Recovered: func() {
				u.metrics.UpdatesRecovered()
				s.set(admin.Leads, true, "leading")
			},
			Progress: tell,
		},
	}
	err = loop.Run(ctx)
	endTasks()
	endRecording()
	if tasks != nil && waitOrAbandon(tasks.running.Wait) != nil {
		u.logger.WarnContext(ctx, "a background task does not end; it is not waited for")
	}
	u.metrics.TasksEnded(ingest.TaskLookups, ingest.TaskPackages, ingest.TaskTypes, ingest.TaskVerification)
	return err == nil, err
}

// tellShown sets the metric of the watermark's record time, for a watermark that an earlier leader reached.
func (u *updates) tellShown(ctx context.Context, watermark ledger.Offset) {
	recordTime, err := u.store.RecordTime(ctx, watermark)
	if err != nil { // the stream's own reads and writes will say so too
		u.logger.DebugContext(ctx, "how old the watermark is could not be read", "error", err)
		return
	}
	u.metrics.Shown(recordTime)
}
