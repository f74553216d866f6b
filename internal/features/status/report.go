// Package status makes the report of where a database stands, which `indexer status` and the daemon's status page show.
package status

import (
	"slices"
	"time"

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
	Snapshot      *Snapshot `json:"unfinished_snapshot,omitempty"`
	// the streams and the background tasks that have run, by name: whether they work, and why not
	Tasks        []Task         `json:"tasks"`
	UnderWay     []Work         `json:"under_way,omitempty"`
	Unknown      int64          `json:"unknown_elements"`
	Lookups      store.Lookups  `json:"lookups"`
	Packages     store.Packages `json:"packages"`
	Verified     *Verified      `json:"verified,omitempty"`     // absent: no window was verified yet
	Transactions *Transactions  `json:"transactions,omitempty"` // the history; absent: nobody has begun to read it
	// beside this pair of schemas the updates of a network are stored in another one
	Network bool           `json:"network,omitempty"`
	Ledger  *End           `json:"ledger,omitempty"`
	Size    *store.DiskUse `json:"size,omitempty"` // absent: not asked for

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
	UpdatedAt    time.Time      `json:"updated_at"`
	RecordTime   time.Time      `json:"record_time,omitzero"`   // of the last update up to the watermark
	FirstUpdate  ledger.Offset  `json:"first_update,omitempty"` // that is stored; absent: none is
	// the ranges that are stored, at most the 200 largest, the largest first
	Coverage []ledger.Range `json:"coverage"`
	// Hosting are parties of the scope that were onboarded to the participant with contracts, or that it does not host
	// any more, on a synchronizer, the last ones first; absent: none.
	Hosting []store.HostingChange `json:"hosting,omitempty"`
}

// Verified is up to where the stored rows were compared with their source again, and equal.
type Verified struct {
	store.Verified
	Behind *ledger.Offset `json:"behind_offsets,omitempty"`
}

// Task is the state of a stream or a background task.
type Task struct {
	Name    string `json:"name"`
	Failing bool   `json:"failing"`
	// last; of the transaction history: first since it began, or failed last
	SucceededAt time.Time `json:"succeeded_at,omitzero"`
	FailedAt    time.Time `json:"failed_at,omitzero"` // last
	Failure     string    `json:"failure,omitempty"`  // of then
}

// Transactions is the state of the transaction history.
type Transactions struct {
	store.TransactionsStatus
	Leader      string    `json:"leader,omitempty"`
	LeaderSince time.Time `json:"leader_since,omitzero"`
	Leads       bool      `json:"leads"` // the leader leads now; else it was the last one
}

// Snapshot is how far a snapshot was stored.
type Snapshot struct {
	At      ledger.Offset `json:"at_offset"`
	Entries int64         `json:"entries"`
}

// End is the ledger's end, and how far the watermark is behind it. If it is not known, Error says why.
type End struct {
	Offset *ledger.Offset `json:"end_offset,omitempty"`
	Lag    *ledger.Offset `json:"lag_offsets"` // null: not known
	// since the last update that is shown was recorded; null: not known
	Seconds *float64 `json:"last_update_seconds"`
	Error   string   `json:"error,omitempty"`
}

// Work is the recent progress of long work, as recorded by a process that writes the database.
type Work struct {
	store.RecordedProgress
	SecondsLeft float64 `json:"seconds_left,omitzero"` // absent: not known
}

// New makes the report of a database from what the store says of it.
func New(db *store.Store, from store.Status) *Report {
	r := &Report{
		Database: db.Address(), ParticipantID: from.ParticipantID, Streams: []Stream{}, Tasks: []Task{},
		Unknown: from.Unknown, Lookups: from.Lookups, Packages: from.Packages, backfill: db.Backfill(),
	}
	if !from.Leader.Since.IsZero() {
		r.Leader, r.LeaderSince, r.Leads = from.Leader.Holder, from.Leader.Since, from.Leader.Leads
	}
	r.Transactions = newTransactions(from)
	if from.Snapshot != nil {
		r.Snapshot = &Snapshot{At: from.Snapshot.At, Entries: from.Snapshot.Entries}
	}
	r.Verified = newVerified(from)
	for _, t := range from.Tasks {
		r.Tasks = append(r.Tasks, Task{
			Name: t.Name, Failing: t.FailedAt.After(t.SucceededAt), SucceededAt: t.SucceededAt.UTC(),
			FailedAt: t.FailedAt.UTC(), Failure: t.Failure,
		})
	}
	for _, p := range from.Progress {
		r.UnderWay = append(r.UnderWay, Work{p, p.TimeLeft.Seconds()})
	}
	if from.Started {
		s := Stream{
			Stream: store.StreamUpdates, Watermark: from.Watermark, Frontier: from.Frontier, HistoryFloor: from.HistoryFloor,
			StateFloor: from.StateFloor, UpdatedAt: from.UpdatedAt, RecordTime: from.RecordTime.UTC(),
			FirstUpdate: from.FirstUpdate, Coverage: append([]ledger.Range{}, from.Coverage...),
			PrunedTo: from.PrunedTo, Hosting: from.Hosting,
		}
		r.Streams = append(r.Streams, s)
	}
	return r
}

// Sized adds what the database takes on disk.
func (r *Report) Sized(sizes store.DiskUse) {
	r.PostgreSQL, r.Size = sizes.ServerVersion, &sizes
}

// newVerified returns nil if nothing was verified.
func newVerified(from store.Status) *Verified {
	v := &Verified{Verified: from.Verified}
	if v.Windows == 0 {
		return nil
	}
	if from.Started {
		v.Behind = new(from.Watermark - v.Offset)
	}
	return v
}

// newTransactions returns nil if reading the transaction history was never begun.
func newTransactions(from store.Status) *Transactions {
	leader := from.TransactionsLeader
	if from.Transactions == nil && leader.Since.IsZero() {
		return nil
	}
	h := &Transactions{}
	if !leader.Since.IsZero() {
		h.Leader, h.LeaderSince, h.Leads = leader.Holder, leader.Since.UTC(), leader.Leads
	}
	if from.Transactions != nil {
		h.TransactionsStatus = *from.Transactions
	}
	return h
}

// Task returns the state of a stream or a background task; nil if it has not run yet.
func (r *Report) Task(name string) *Task {
	for i := range r.Tasks {
		if r.Tasks[i].Name == name {
			return &r.Tasks[i]
		}
	}
	return nil
}

// TaskFails reports whether a background task failed when it last ran. What a stream itself failed with is not one.
func (r *Report) TaskFails() bool {
	return slices.ContainsFunc(r.Tasks, func(t Task) bool { return t.Failing && !t.ofStream() })
}

func (t *Task) ofStream() bool {
	return t.Name == store.StreamUpdates || t.Name == store.StreamTransactions
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
