package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/features/admin"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// updates implements streamWork for the updates of a ledger.
type updates struct {
	*indexer
	origin daemonSource
	start  ingest.Start
	// open opens another source of the ledger, of another scope; nil: the ledger has one scope.
	open     func(ledger.Scope) (source, error)
	identity atomic.Pointer[identity] // what the source last reported of itself
	hosting  ingest.HostingChanges
	told     sync.Once // what the scope leaves out
}

// daemonSource is the source of the updates that a daemon reads.
type daemonSource interface {
	source
	// release returns the release of the source; empty: not known.
	release(ctx context.Context) string
	// startTasks starts what runs beside the updates while a leader reads them; it ends with ctx. past shows updates in
	// the scope in which they are stored.
	startTasks(ctx context.Context, leader *store.UpdatesWriter, past audit.UpdateSource) *background
}

func (u *updates) release(ctx context.Context) string { return u.origin.release(ctx) }

// connect asks the source who it is, and checks that the database belongs to it.
func (u *updates) connect(ctx context.Context) error {
	check := u.store.CheckIdentity
	if u.mayChange() {
		check = u.store.CheckChange
	}
	identity, err := checkSameLedgerBy(ctx, u.store, u.origin, check)
	if err != nil {
		return err
	}
	u.identity.Store(&identity)
	return nil
}

// mayChange reports whether the scope may be changed to the one that is configured.
func (u *updates) mayChange() bool { return u.open != nil && u.cfg.ChangeScope }

// changeScope puts the configured scope in force, if it is another one, by a resync at the watermark.
func (u *updates) changeScope(ctx context.Context, leader *store.UpdatesWriter) error {
	before, started, err := u.store.Scope(ctx)
	if err != nil || !started {
		return err
	}
	logger, now := u.logger.With("stream", "updates"), u.identity.Load().scope
	if before.Hash() == now.Hash() {
		if u.mayChange() {
			logger.InfoContext(ctx, "the scope is in force already: leave out --change-scope")
		}
		return leader.DropResync(ctx) // of a change that was given up
	}
	if err := u.refuseUnknown(ctx, before, now); err != nil {
		return err
	}
	watermark, _, err := leader.Watermark(ctx)
	if err != nil {
		return err
	}
	from := source(u.origin)
	added, only := now.Added(before)
	if only {
		if from, err = u.open(added); err != nil {
			return err
		}
		defer from.Close()
		if _, err := from.identify(ctx); err != nil {
			return err
		}
	}
	loop := ingest.Snapshot{Source: from, Sink: leader.Resync(only), Scope: now, At: &watermark, Resync: true,
		Logger: logger}
	if _, err := loop.Run(ctx); err != nil {
		return err
	}
	logger.WarnContext(ctx, "the scope was changed: what was added is active from here on, and what was taken away stays "+
		"as history, and is not active any more; leave out --change-scope from now on", "offset", int64(watermark))
	return nil
}

// refuseUnknown refuses parties that a scope adds and that the participant does not know: nothing of them would come,
// and no error.
func (u *updates) refuseUnknown(ctx context.Context, before, now ledger.Scope) error {
	client, ok := u.origin.(interface {
		Hosted(ctx context.Context, parties []string) (map[string]bool, error)
	})
	added := slices.DeleteFunc(slices.Clone(now.Parties),
		func(party string) bool { return slices.Contains(before.Parties, party) })
	if !ok || len(added) == 0 {
		return nil
	}
	hosted, err := client.Hosted(ctx, added)
	if err != nil {
		u.logger.WarnContext(ctx, "whether the participant knows the parties that are added can't be found out; `indexer "+
			"check` says more", "stream", "updates", "error", err)
		return nil
	}
	unknown := slices.DeleteFunc(added, func(party string) bool { _, known := hosted[party]; return known })
	if len(unknown) == 0 {
		return nil
	}
	return &ledger.Problem{
		What: "the scope can't be changed: the participant does not know " + strings.Join(unknown, ", "),
		Do:   "correct --parties: with an unknown party nothing comes, and no error",
	}
}

// connectAsLeader is connect for a leader, which also records the ledger in a new database.
func (u *updates) connectAsLeader(ctx context.Context, leader *store.UpdatesWriter) error {
	if err := u.connect(ctx); err != nil {
		return err
	}
	now := u.identity.Load()
	if err := u.changeScope(ctx, leader); err != nil {
		return err
	}
	if now.id == "" {
		u.logger.WarnContext(ctx, "the participant does not report its id: another one behind the URL would not be noticed")
	}
	stored, started, err := leader.Watermark(ctx)
	if err != nil {
		return err
	}
	if !started && u.open != nil { // what is read of a network is nobody's choice
		u.told.Do(func() { tellLeftOut(ctx, u.logger, now.scope) })
	}
	ahead, err := leader.StoredAhead(ctx)
	if err != nil {
		return err
	}
	if len(ahead) > 0 {
		stored = ahead[len(ahead)-1].To
	}
	u.origin.setMinimum(stored)
	return leader.RecordIdentity(ctx, now.id, now.scope)
}

// blocker reports a snapshot that a backfill has begun and not finished.
func (u *updates) blocker(ctx context.Context) (state string, ready bool, err error) {
	unfinished, err := u.store.UnfinishedSnapshot(ctx)
	if err != nil || unfinished == nil {
		return "", false, err
	}
	return fmt.Sprintf("waiting: a backfill has to finish the snapshot at offset %d (%d entries stored); run `%s` to "+
		"continue it",
		unfinished.At, unfinished.Entries, u.store.Backfill()), false, nil
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
	report, endRecording := startRecording(ctx, leader.RecordProgress, u.logger)
	now := u.identity.Load()
	u.hosting.Participant, u.hosting.Logger, u.hosting.Count = now.id, u.logger, u.metrics.HostingChanged
	stored := newSourceByScope(u.store, u.origin, now.scope, u.open)
	defer stored.Close()
	var tasks *background // nil until the participant is known to have the stored updates
	loop := ingest.Updates{
		Source: u.origin, Past: stored, Sink: u.hosting.Watch(updatesSink{leader, audit.New(u.store)}), Scope: now.scope,
		Start: u.start, ParticipantID: now.id,
		Check:        func(ctx context.Context) error { return u.connectAsLeader(ctx, leader) },
		UntilCurrent: u.cfg.UntilCurrent, MaxRequests: u.cfg.MaxRequests, Logger: u.logger,
		Watch: ingest.Watch{
			Resumed: func(watermark ledger.Offset) {
				s.retry.Worked() // both sides answered
				u.metrics.Committed(int64(watermark), 0)
				u.setShownMetric(ctx, watermark)
				if tasks == nil {
					tasks = u.origin.startTasks(taskCtx, leader, stored)
					s.note(ctx, leader.Leader, "")
				}
			},
			Committed: func(watermark, frontier ledger.Offset, n int) {
				u.metrics.Committed(int64(watermark), n)
				u.metrics.Frontier(int64(frontier))
				tasks.wake()
			},
			LedgerEnd: func(end ledger.Offset) { u.metrics.LedgerEnd(int64(end)) },
			Queued:    u.metrics.Queued,
			Retrying: func(err error, _ time.Duration) {
				u.metrics.Retrying(s.name(), retryReason(err))
				s.set(admin.Waits, false, "leading, trying again: "+err.Error())
			},
			Recovered: func() {
				u.metrics.UpdatesRecovered()
				s.set(admin.Leads, true, "leading")
			},
			Progress: report,
		},
	}
	if u.tracer != nil {
		loop.Tracer = u.tracer
	}
	err = loop.Run(ctx)
	if err == nil && tasks != nil {
		s.finish(ctx, tasks)
	}
	endTasks()
	endRecording()
	if tasks != nil {
		tasks.end(ctx, u.indexer)
	}
	return err == nil, err
}

// setShownMetric sets the metric of the watermark's record time, for a watermark that an earlier leader reached.
func (u *updates) setShownMetric(ctx context.Context, watermark ledger.Offset) {
	recordTime, err := u.store.RecordTime(ctx, watermark)
	if err != nil { // the stream's own reads and writes will say so too
		u.logger.DebugContext(ctx, "how old the watermark is could not be read", "error", err)
		return
	}
	u.metrics.Shown(recordTime)
}
