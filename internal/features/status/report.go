// Package status makes the report of where a database stands, which `indexer status` and the daemon's status page show.
package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/base/terminal"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// Report is where one pair of schemas stands. Its JSON form is for scripts.
type Report struct {
	Database      string    `json:"database"`
	PostgreSQL    string    `json:"postgresql,omitempty"` // the server's version
	ParticipantID string    `json:"participant_id,omitempty"`
	Leader        string    `json:"leader,omitempty"`
	LeaderSince   time.Time `json:"leader_since,omitzero"`
	Leads         bool      `json:"leads"` // the leader leads now; else it was the last one
	Streams       []Stream  `json:"streams"`
	UpdatesTask   *Task     `json:"updates_task,omitempty"` // why updates can't continue, where they last could not
	Snapshot      *Snapshot `json:"unfinished_snapshot,omitempty"`
	// that is to lower the state floor, and has not done so yet
	UnderWay []Work    `json:"under_way,omitempty"`
	Unknown  int64     `json:"unknown_elements"`
	Lookups  Lookups   `json:"lookups"`
	Packages Packages  `json:"packages"`
	Verified *Verified `json:"verified,omitempty"` // absent: no window was verified yet
	History  *History  `json:"history,omitempty"`  // the transaction history; absent: nobody has begun to read it
	// beside this pair of schemas the updates of a network are stored in another one
	Network bool         `json:"network,omitempty"`
	Ledger  *End         `json:"ledger,omitempty"`
	Size    *store.Sizes `json:"size,omitempty"` // absent: not asked for

	backfill string // the command that seeds this pair of schemas
}

// Stream is where the updates stand.
type Stream struct {
	Stream       string         `json:"stream"`
	Watermark    ledger.Offset  `json:"watermark"`
	Frontier     ledger.Offset  `json:"frontier"`
	HistoryFloor ledger.Offset  `json:"history_floor"`
	StateFloor   *ledger.Offset `json:"state_floor"` // null: the active set is known at no offset
	PrunedTo     ledger.Offset  `json:"pruned_to,omitempty"`
	Pruning      *Task          `json:"pruning,omitempty"` // absent: the indexer never had to prune
	UpdatedAt    time.Time      `json:"updated_at"`
	RecordTime   time.Time      `json:"record_time,omitzero"`   // of the last update up to the watermark
	FirstUpdate  ledger.Offset  `json:"first_update,omitempty"` // that is stored; absent: none is
	// the ranges that are stored, at most the 200 largest, the largest first
	Coverage []ledger.Range `json:"coverage"`
	// Hosting are parties of the scope that were onboarded to the participant with contracts, or that it does not host
	// any more, on a synchronizer, the last ones first; absent: none.
	Hosting []store.HostingChange `json:"hosting,omitempty"`
	// how the task fares that asks which parties are hosted; absent: it has not run
	HostingTask      *Task    `json:"hosting_task,omitempty"`
	UpdatesPerSecond *float64 `json:"updates_per_second,omitempty"`
	OffsetsPerSecond *float64 `json:"offsets_per_second,omitempty"`
}

// Lookups counts look-ups, and says how their task fares.
type Lookups struct {
	store.Lookups
	*Task
}

// Packages counts packages, and says how the tasks fare that read which are vetted, and what they say of types.
type Packages struct {
	store.Packages
	*Task
	Types *Task `json:"types_task,omitempty"`
}

// Verified is up to where the stored rows were compared with their source again, and equal.
type Verified struct {
	store.Verified
	Behind      *ledger.Offset `json:"behind_offsets,omitempty"`
	Updates     *Task          `json:"task,omitempty"`
	HistoryTask *Task          `json:"history_task,omitempty"`
}

// Task is the state of a background task.
type Task struct {
	Failing bool `json:"failing"`
	// last; of the transaction history: first since it began, or failed last
	SucceededAt time.Time `json:"succeeded_at,omitzero"`
	FailedAt    time.Time `json:"failed_at,omitzero"` // last
	Failure     string    `json:"failure,omitempty"`  // of then
}

// History is the state of the transaction history. An error of the last read is shown as that of a task.
type History struct {
	store.TransactionsStatus
	Leader           string    `json:"leader,omitempty"`
	LeaderSince      time.Time `json:"leader_since,omitzero"`
	Leads            bool      `json:"leads"` // the leader leads now; else it was the last one
	RecordsPerSecond *float64  `json:"records_per_second,omitempty"`
	*Task
}

// Snapshot is how far a snapshot was stored.
type Snapshot struct {
	At       ledger.Offset `json:"at_offset"`
	Entries  int64         `json:"entries"`
	Finished bool          `json:"finished,omitempty"`
}

// End is the ledger's end, and how far the watermark is behind it. If it is not known, Error says why.
type End struct {
	Offset *ledger.Offset `json:"end_offset,omitempty"`
	Lag    *ledger.Offset `json:"lag_offsets"` // null: not known
	// the age of the last update that is shown, or 0 where nothing is missing; null: not known
	Seconds *float64 `json:"lag_seconds"`
	Error   string   `json:"error,omitempty"`
}

// Work is the recent progress of long work, as recorded by a process that writes the database.
type Work struct {
	Stream      string    `json:"stream"`
	Unit        string    `json:"unit"`
	BeganAt     time.Time `json:"began_at"`
	From        int64     `json:"from"`
	At          int64     `json:"at"`
	End         *int64    `json:"end,omitempty"` // absent: not known
	Done        int64     `json:"done"`
	PerSecond   float64   `json:"per_second"`
	SecondsLeft *float64  `json:"seconds_left,omitempty"` // absent: not known
	RecordedAt  time.Time `json:"recorded_at"`

	Progress ledger.Progress `json:"-"`
	Age      time.Duration   `json:"-"` // since it was recorded, by the database's clock
}

// New makes the report of a database from what the store says of it.
func New(db *store.Store, from store.Status) *Report {
	r := &Report{
		Database: db.Address(), ParticipantID: from.ParticipantID, Streams: []Stream{}, Unknown: from.Unknown,
		backfill: db.Commands().Backfill,
	}
	r.Lookups = Lookups{from.Lookups, taskOf(from.Tasks, ingest.TaskLookups)}
	r.Packages = Packages{from.Packages, taskOf(from.Tasks, ingest.TaskVetting), taskOf(from.Tasks, ingest.TaskPackages)}
	if !from.Leader.Since.IsZero() {
		r.Leader, r.LeaderSince, r.Leads = from.Leader.Holder, from.Leader.Since, from.Leader.Leads
	}
	r.UpdatesTask = taskOf(from.Tasks, store.StreamUpdates)
	r.History = NewHistory(from)
	if from.Snapshot != nil {
		r.Snapshot = &Snapshot{At: from.Snapshot.At, Entries: from.Snapshot.Entries}
	}
	r.Verified = newVerified(from)
	r.UnderWay = newUnderWay(from)
	if from.Started {
		s := Stream{
			Stream: store.StreamUpdates, Watermark: from.Watermark, Frontier: from.Frontier, HistoryFloor: from.HistoryFloor,
			StateFloor: from.StateFloor, UpdatedAt: from.UpdatedAt, RecordTime: from.RecordTime.UTC(),
			FirstUpdate: from.FirstUpdate, Coverage: append([]ledger.Range{}, from.Coverage...),
			PrunedTo: from.PrunedTo, Pruning: taskOf(from.Tasks, ingest.TaskPruning), Hosting: from.Hosting,
			HostingTask: taskOf(from.Tasks, ingest.TaskHosting),
		}
		r.Streams = append(r.Streams, s)
	}
	return r
}

// Sized adds what the database takes on disk.
func (r *Report) Sized(sizes store.Sizes) {
	r.PostgreSQL, r.Size = sizes.ServerVersion, &sizes
}

// newVerified returns nil if nothing was verified, nor tried.
func newVerified(from store.Status) *Verified {
	v := &Verified{
		Verified: from.Verified, Updates: taskOf(from.Tasks, ingest.TaskVerification),
		HistoryTask: taskOf(from.Tasks, ingest.TaskTransactionsVerification),
	}
	if v.Windows == 0 && v.Updates == nil && v.HistoryTask == nil {
		return nil
	}
	if from.Started {
		v.Behind = new(from.Watermark - v.Offset)
	}
	return v
}

// TaskFails reports whether a background task failed when it last ran. What a stream itself failed with is not one.
func (r *Report) TaskFails() bool {
	tasks := []*Task{r.Lookups.Task, r.Packages.Task, r.Packages.Types}
	for _, s := range r.Streams {
		tasks = append(tasks, s.Pruning, s.HostingTask)
	}
	if h := r.History; h != nil && h.Leader == "" { // it is the task that derives records
		tasks = append(tasks, h.Task)
	}
	if v := r.Verified; v != nil {
		tasks = append(tasks, v.Updates, v.HistoryTask)
	}
	return slices.ContainsFunc(tasks, func(t *Task) bool { return t != nil && t.Failing })
}

// taskOf returns the state of a task; nil if it has not run yet.
func taskOf(tasks []store.Task, name string) *Task {
	for _, t := range tasks {
		if t.Name == name {
			return &Task{
				Failing: t.FailedAt.After(t.SucceededAt), SucceededAt: t.SucceededAt.UTC(), FailedAt: t.FailedAt.UTC(),
				Failure: t.Failure,
			}
		}
	}
	return nil
}

// NewHistory returns nil if reading the transaction history was never begun.
func NewHistory(from store.Status) *History {
	leader := from.TransactionsLeader
	h := &History{Task: cmp.Or(taskOf(from.Tasks, store.StreamTransactions), taskOf(from.Tasks, ingest.TaskRecords))}
	if from.History == nil && leader.Since.IsZero() && h.Task == nil {
		return nil
	}
	if !leader.Since.IsZero() {
		h.Leader, h.LeaderSince, h.Leads = leader.Holder, leader.Since.UTC(), leader.Leads
	}
	if from.History != nil {
		h.TransactionsStatus = *from.History
	}
	return h
}

func newUnderWay(from store.Status) (list []Work) {
	for _, p := range from.Progress {
		w := Work{
			Stream: p.Stream, Unit: p.Unit, BeganAt: p.BeganAt.UTC(), From: p.Start, At: p.Position, Done: p.UnitsDone,
			PerSecond:  p.Rate,
			RecordedAt: p.RecordedAt.UTC(), Progress: p.Progress, Age: p.Age,
		}
		if p.End > 0 {
			w.End = &p.End
		}
		if p.TimeLeft > 0 {
			w.SecondsLeft = new(p.TimeLeft.Seconds())
		}
		list = append(list, w)
	}
	return list
}

// Title says what the work is, and how far it has come.
func (w *Work) Title() string {
	p := w.Progress
	switch {
	case p.Stream == "updates":
		return "catching up: offset " + terminal.Position(p)
	case p.Stream == "snapshot":
		return "storing the snapshot: contract " + terminal.Position(p)
	case p.Stream == "transactions":
		return "reading the transaction history: record " + terminal.Position(p)
	}
	return w.Stream + ": " + terminal.Position(p)
}

// UnfinishedSnapshot says that a snapshot was begun and not finished, and what to do; empty: none was.
func (r *Report) UnfinishedSnapshot() string {
	if r.Snapshot == nil {
		return ""
	}
	return fmt.Sprintf("unfinished at offset %d, %d entries stored; run `%s` to continue it", r.Snapshot.At,
		r.Snapshot.Entries, r.backfill)
}

// HostingChanged says which parties of the scope have come and gone, a line for each, and then what to do.
func (s *Stream) HostingChanged() (lines []string) {
	var revoked, onboarded bool
	for _, h := range s.Hosting {
		what := "was onboarded at"
		if h.Kind == ledger.TopologyRevoked {
			what, revoked = "is not hosted here any more since", true
		} else {
			onboarded = true
		}
		line := fmt.Sprintf("party %s %s offset %d", h.Party, what, h.Offset)
		if h.Synchronizer != "" {
			line += ", on synchronizer " + h.Synchronizer
		}
		lines = append(lines, line)
	}
	if revoked {
		lines = append(lines, "of a party that is not hosted here any more nothing comes from that synchronizer; where it "+
			"is hosted on no other, take it out of --parties (--change-scope), or read it from a participant that hosts it")
	}
	if onboarded {
		lines = append(lines, "`indexer verify` names contracts that onboarded parties brought along, if no update has "+
			"shown them")
	}
	return lines
}
