package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

type statusCommand struct {
	config.Database
	LedgerURL    string        `placeholder:"URL" help:"Base URL of the participant, to compare with the ledger's end; empty: don't."`
	LedgerAccess config.Access `embed:"" prefix:"ledger-"`
	Sample       time.Duration `default:"2s" env:"-" placeholder:"TIME" help:"How long to watch for the rate; 0: don't. Default: ${default}."`
	JSON         bool          `name:"json" env:"-" help:"Print JSON."`
}

// ledgerPatience is how long status waits for the ledger.
const ledgerPatience = 10 * time.Second

// report is what status prints; its JSON form is for scripts.
type report struct {
	Database      string    `json:"database"`
	ParticipantID string    `json:"participant_id,omitempty"`
	Leader        string    `json:"leader,omitempty"`
	LeaderSince   time.Time `json:"leader_since,omitzero"`
	Streams       []stream  `json:"streams"`
	UpdatesTask   *task     `json:"updates_task,omitempty"` // why updates can't continue, where they last could not
	Snapshot      *snapshot `json:"unfinished_snapshot,omitempty"`
	Lower         *snapshot `json:"lower_snapshot,omitempty"` // that is to lower the state floor, and has not done so yet
	UnderWay      []work    `json:"under_way,omitempty"`
	Unknown       int64     `json:"unknown_elements"`
	Lookups       lookups   `json:"lookups"`
	Packages      packages  `json:"packages"`
	Verified      *verified `json:"verified,omitempty"` // absent: no window was verified yet
	History       *history  `json:"history,omitempty"`  // the transaction history; absent: nobody has begun to read it
	Ledger        *end      `json:"ledger,omitempty"`
}

type stream struct {
	Stream           string         `json:"stream"`
	Watermark        ledger.Offset  `json:"watermark"`
	Frontier         ledger.Offset  `json:"frontier"`
	HistoryFloor     ledger.Offset  `json:"history_floor"`
	StateFloor       *ledger.Offset `json:"state_floor"` // null: the active set is known at no offset
	PrunedTo         ledger.Offset  `json:"pruned_to,omitempty"`
	Pruning          *task          `json:"pruning,omitempty"` // absent: the indexer was never told to prune
	UpdatedAt        time.Time      `json:"updated_at"`
	RecordTime       time.Time      `json:"record_time,omitzero"` // of the last update up to the watermark
	UpdatesPerSecond *float64       `json:"updates_per_second,omitempty"`
	OffsetsPerSecond *float64       `json:"offsets_per_second,omitempty"`
}

type lookups struct {
	store.Lookups
	*task
}

type packages struct {
	store.Packages
	*task
}

// verified is up to where the stored rows were compared with their source again, and equal.
type verified struct {
	store.Verified
	Behind      *ledger.Offset `json:"behind_offsets,omitempty"`
	Updates     *task          `json:"task,omitempty"`
	HistoryTask *task          `json:"history_task,omitempty"`
}

// task is the state of a background task.
type task struct {
	Failing     bool      `json:"failing"`
	SucceededAt time.Time `json:"succeeded_at,omitzero"` // last; of the transaction history: first since it began, or failed last
	FailedAt    time.Time `json:"failed_at,omitzero"`    // last
	Failure     string    `json:"failure,omitempty"`     // of then
}

// history is the state of the transaction history. An error of the last read is shown as that of a task.
type history struct {
	store.TransactionsStatus
	Leader           string    `json:"leader,omitempty"`
	LeaderSince      time.Time `json:"leader_since,omitzero"`
	RecordsPerSecond *float64  `json:"records_per_second,omitempty"`
	*task
}

type snapshot struct {
	At       ledger.Offset `json:"at_offset"`
	Entries  int64         `json:"entries"`
	Finished bool          `json:"finished,omitempty"`
}

// end is the ledger's end, and how far the watermark is behind it. If it is not known, Error says why.
type end struct {
	Offset  *ledger.Offset `json:"end_offset,omitempty"`
	Lag     *ledger.Offset `json:"lag_offsets"` // null: not known
	Seconds *float64       `json:"lag_seconds"` // the age of the last update that is shown, or 0 where nothing is missing; null: not known
	Error   string         `json:"error,omitempty"`
}

// Run prints the state of the database.
func (c *statusCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	db, err := openRead(ctx, c.Database, logger)
	if err != nil {
		return err
	}
	defer db.Close()
	status, err := db.Status(ctx)
	if err != nil {
		return err
	}
	r := newReport(db.Address(), status)
	if (status.Started || status.History != nil) && c.Sample > 0 {
		if err := c.sampleRates(ctx, db, r); err != nil {
			return err
		}
	}
	if c.LedgerURL != "" {
		r.Ledger = c.askLedger(ctx, logger, r)
	}
	if c.JSON {
		return writeReport(out, r)
	}
	return r.print(out)
}

func newReport(address string, status store.Status) *report {
	r := &report{Database: address, ParticipantID: status.ParticipantID, Streams: []stream{}, Unknown: status.Unknown}
	r.Lookups = lookups{status.Lookups, taskOf(status.Tasks, ingest.TaskLookups)}
	r.Packages = packages{status.Packages, taskOf(status.Tasks, ingest.TaskPackages)}
	if !status.Leader.Since.IsZero() {
		r.Leader, r.LeaderSince = status.Leader.Holder, status.Leader.Since
	}
	r.UpdatesTask = taskOf(status.Tasks, store.StreamUpdates)
	r.History = newHistory(status)
	if lower := status.LowerSnapshot; lower != nil {
		r.Lower = &snapshot{At: lower.At, Entries: lower.Entries, Finished: lower.Finished}
	}
	if status.Snapshot != nil {
		r.Snapshot = &snapshot{At: status.Snapshot.At, Entries: status.Snapshot.Entries}
	}
	r.Verified = newVerified(status)
	r.UnderWay = newUnderWay(status)
	if status.Started {
		r.Streams = append(r.Streams, stream{
			Stream: store.StreamUpdates, Watermark: status.Watermark, Frontier: status.Frontier,
			HistoryFloor: status.HistoryFloor, StateFloor: status.StateFloor, UpdatedAt: status.UpdatedAt, RecordTime: status.RecordTime.UTC(),
			PrunedTo: status.PrunedTo, Pruning: taskOf(status.Tasks, ingest.TaskPruning),
		})
	}
	return r
}

// newVerified returns nil if nothing was verified, nor tried.
func newVerified(status store.Status) *verified {
	v := &verified{
		Verified: status.Verified, Updates: taskOf(status.Tasks, ingest.TaskVerification),
		HistoryTask: taskOf(status.Tasks, ingest.TaskTransactionsVerification),
	}
	if v.Windows == 0 && v.Updates == nil && v.HistoryTask == nil {
		return nil
	}
	if status.Started {
		behind := status.Watermark - v.Offset
		v.Behind = &behind
	}
	return v
}

// taskOf returns the state of a task; nil if it has not run yet.
func taskOf(tasks []store.Task, name string) *task {
	for _, t := range tasks {
		if t.Name == name {
			return &task{
				Failing: t.FailedAt.After(t.SucceededAt), SucceededAt: t.SucceededAt.UTC(), FailedAt: t.FailedAt.UTC(), Failure: t.Failure,
			}
		}
	}
	return nil
}

// newHistory returns nil if reading the transaction history was never begun.
func newHistory(status store.Status) *history {
	leader := status.TransactionsLeader
	h := &history{task: taskOf(status.Tasks, store.StreamTransactions)}
	if status.History == nil && leader.Since.IsZero() && h.task == nil {
		return nil
	}
	if !leader.Since.IsZero() {
		h.Leader, h.LeaderSince = leader.Holder, leader.Since.UTC()
	}
	if status.History != nil {
		h.TransactionsStatus = *status.History
	}
	return h
}

// sampleRates reads the positions of the streams a second time, for their rates.
func (c *statusCommand) sampleRates(ctx context.Context, db *store.Store, r *report) error {
	started := time.Now()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(c.Sample):
	}
	now, err := db.Status(ctx)
	if err != nil {
		return err
	}
	seconds := time.Since(started).Seconds()
	if len(r.Streams) > 0 {
		s := &r.Streams[0]
		updates, err := db.UpdatesBetween(ctx, s.Watermark, now.Watermark)
		if err != nil {
			return err
		}
		updateRate, offsetRate := float64(updates)/seconds, float64(now.Watermark-s.Watermark)/seconds
		s.Watermark, s.Frontier, s.RecordTime = now.Watermark, max(s.Frontier, now.Watermark), now.RecordTime.UTC()
		s.UpdatesPerSecond, s.OffsetsPerSecond = &updateRate, &offsetRate
	}
	if r.History != nil && now.History != nil {
		rate := float64(now.History.Records-r.History.Records) / seconds
		r.History = newHistory(now)
		r.History.RecordsPerSecond = &rate
	}
	return nil
}

// askLedger compares with the ledger's end. A failure becomes a part of the report.
func (c *statusCommand) askLedger(ctx context.Context, logger *slog.Logger, r *report) *end {
	client, err := openLedger(config.Ledger{LedgerURL: c.LedgerURL, LedgerAccess: c.LedgerAccess}, ledger.Scope{Shape: ledger.ShapeACSDelta}, logger)
	if err != nil {
		return &end{Error: err.Error()}
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	participantID, offset, err := client.Peek(ctx)
	if participantID != "" && r.ParticipantID != "" && participantID != r.ParticipantID {
		return &end{Error: fmt.Sprintf("the ledger URL leads to another participant, %s: check --ledger-url and --database-url", participantID)}
	}
	if errors.Is(err, ledger.ErrNotOffered) {
		return &end{Error: "the server does not report its ledger end"}
	}
	if err != nil {
		return &end{Error: err.Error()}
	}
	e := &end{Offset: &offset}
	if len(r.Streams) > 0 {
		lag := max(0, offset-r.Streams[0].Watermark)
		e.Lag = &lag
		if newest := r.Streams[0].RecordTime; lag == 0 || !newest.IsZero() {
			seconds := 0.0
			if lag > 0 {
				seconds = time.Since(newest).Seconds()
			}
			e.Seconds = &seconds
		}
	}
	return e
}

func (r *report) print(out io.Writer) error {
	l := newLabelled(out)
	line := func(label, format string, args ...any) { l.say(label, fmt.Sprintf(format, args...)) }
	line("database", "%s", r.Database)
	if r.ParticipantID != "" {
		line("participant", "%s", r.ParticipantID)
	}
	if r.Leader != "" {
		line("last leader", "%s, since %s", r.Leader, r.LeaderSince.Format(time.RFC3339))
	}
	if r.Snapshot != nil {
		line("snapshot", "unfinished at offset %d, %d entries stored; run `backfill` to go on", r.Snapshot.At, r.Snapshot.Entries)
	}
	for _, w := range r.UnderWay {
		w.print(line)
	}
	if len(r.Streams) == 0 {
		line("updates", "nothing indexed yet")
	}
	for _, s := range r.Streams {
		line(s.Stream, "watermark %d, moved %s", s.Watermark, s.UpdatedAt.Format(time.RFC3339))
		line("", "frontier %d", s.Frontier)
		line("", "events complete after offset %d", s.HistoryFloor)
		if s.StateFloor != nil {
			line("", "active set known from offset %d", *s.StateFloor)
		} else {
			line("", "active set not known: indexing began in the middle of the ledger without a snapshot")
		}
		if s.PrunedTo > 0 {
			line("", "pruned up to offset %d", s.PrunedTo)
		}
		if s.Pruning != nil && s.Pruning.Failing {
			line("", "pruning failed %s: %s", s.Pruning.FailedAt.Format(time.RFC3339), s.Pruning.Failure)
		}
		r.Lower.printLower(line)
		if s.UpdatesPerSecond != nil {
			line("", "%.1f updates/s, %.1f offsets/s", *s.UpdatesPerSecond, *s.OffsetsPerSecond)
		}
	}
	r.UpdatesTask.printFailure(line)
	if r.Unknown > 0 {
		line("unknown", "%d elements of kinds that this version does not know, kept raw in ledger.unknown_updates", r.Unknown)
	}
	r.printTasks(line)
	r.History.print(line)
	r.Verified.print(line, r.History)
	if r.Ledger != nil {
		switch {
		case r.Ledger.Error != "":
			line("ledger", "lag unknown: %s", r.Ledger.Error)
		case r.Ledger.Lag != nil && *r.Ledger.Lag > 0 && r.Ledger.Seconds != nil:
			line("ledger", "end %d, %d offsets ahead; the last update here is %v old", *r.Ledger.Offset, *r.Ledger.Lag,
				time.Duration(*r.Ledger.Seconds*float64(time.Second)).Round(time.Second))
		case r.Ledger.Lag != nil:
			line("ledger", "end %d, %d offsets ahead", *r.Ledger.Offset, *r.Ledger.Lag)
		default:
			line("ledger", "end %d", *r.Ledger.Offset)
		}
	}
	return l.w.Flush()
}

// printLower prints what is missing for a lower state floor.
func (s *snapshot) printLower(line func(label, format string, args ...any)) {
	switch {
	case s == nil:
	case s.Finished:
		line("", "active set to be known from offset %d, once history is there from there on; `backfill history` continues with it", s.At)
	default:
		line("", "snapshot at offset %d, to know it from there on: %d entries stored; `backfill history --from %[1]d --with-snapshot` continues with it", s.At, s.Entries)
	}
}

// print prints the state of the transaction history, or why there is none.
func (h *history) print(line func(label, format string, args ...any)) {
	if h == nil {
		return
	}
	switch {
	case h.Records == 0:
		line("transactions", "no records yet")
	case h.NewestRecord.IsZero():
		line("transactions", "%d records, moved %s", h.Records, h.UpdatedAt.Format(time.RFC3339))
	default:
		line("transactions", "%d records, the newest of %s, moved %s", h.Records, h.NewestRecord.Format(time.RFC3339), h.UpdatedAt.Format(time.RFC3339))
	}
	if h.Cursor != "" {
		line("", "reading resumes after event id %s", h.Cursor)
	}
	if h.Rereading {
		line("", "being read again from the beginning; what is stored is shown until that is complete")
	}
	if h.RecordsPerSecond != nil {
		line("", "%.1f records/s", *h.RecordsPerSecond)
	}
	if h.Unknown > 0 {
		line("", "%d records that are of no kind that this version knows, kept raw in ledger.unknown_transactions", h.Unknown)
	}
	if h.NetworkID != "" {
		line("", "network of %s", h.NetworkID)
	}
	if h.Leader != "" {
		line("", "last leader %s, since %s", h.Leader, h.LeaderSince.Format(time.RFC3339))
	}
	if h.task != nil && h.Failing { // nobody may have tried since: the daemon can be told to do without
		line("", "as of %s: %s", h.FailedAt.Format(time.RFC3339), h.Failure)
	}
}

// printTasks prints the results of the background tasks, and why they fail.
func (r *report) printTasks(line func(label, format string, args ...any)) {
	l, p := r.Lookups, r.Packages
	if l.Wanted+l.Found+l.NotFound+l.Unusable > 0 {
		line("lookups", "%d wanted, %d found, %d not found, %d unusable", l.Wanted, l.Found, l.NotFound, l.Unusable)
		l.printFailure(line)
	}
	switch {
	case p.task == nil || p.SucceededAt.IsZero():
		line("packages", "not read yet")
	default:
		line("packages", "%d vetted on %d synchronizers, read %s", p.Vetted, p.Synchronizers, p.SucceededAt.Format(time.RFC3339))
	}
	p.printFailure(line)
}

// print prints how far everything was verified, and what differs.
func (v *verified) print(line func(label, format string, args ...any), history *history) {
	if v == nil {
		return
	}
	label := "verified"
	if v.Behind != nil {
		line(label, "up to offset %d, %d behind the watermark", v.Offset, *v.Behind)
		label = ""
	}
	if history != nil && (v.Seq > 0 || v.HistoryTask != nil) {
		line(label, "up to record %d of the transaction history, %d behind", v.Seq, history.Records-v.Seq)
		label = ""
	}
	if v.Different > 0 {
		line(label, "%d of %d windows differ from their source: run `indexer verify --repair`", v.Different, v.Windows)
	}
	if v.NotShown > 0 {
		line(label, "%d of %d windows could not be compared: their source does not show them any more", v.NotShown, v.Windows)
	}
	v.Updates.printFailure(line)
	v.HistoryTask.printFailure(line)
}

func (t *task) printFailure(line func(label, format string, args ...any)) {
	if t != nil && t.Failing {
		line("", "failed %s: %s", t.FailedAt.Format(time.RFC3339), t.Failure)
	}
}

// copyShort copies at most a screenful.
func copyShort(out io.Writer, from io.Reader) error {
	_, err := io.Copy(out, io.LimitReader(from, 4096))
	return err
}
