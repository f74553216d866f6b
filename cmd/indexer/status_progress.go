package main

import (
	"fmt"
	"time"

	"ledgerindexer/internal/progress"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// work is the recent progress of long work, as recorded by a process that writes the database.
type work struct {
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

	progress ledger.Progress
	age      time.Duration
}

func newUnderWay(status store.Status) (list []work) {
	for _, p := range status.Progress {
		w := work{
			Stream: p.Stream, Unit: p.Unit, BeganAt: p.BeganAt.UTC(), From: p.From, At: p.At, Done: p.Done, PerSecond: p.Rate,
			RecordedAt: p.RecordedAt.UTC(), progress: p.Progress, age: p.Age,
		}
		if p.End > 0 {
			w.End = &p.End
		}
		if p.Left > 0 {
			left := p.Left.Seconds()
			w.SecondsLeft = &left
		}
		list = append(list, w)
	}
	return list
}

func (w *work) print(line func(label, format string, args ...any)) {
	p := w.progress
	what := w.Stream + ": " + progress.Position(p)
	switch part, ok := p.Part(); {
	case p.Stream == "updates":
		what = "catching up: offset " + progress.Position(p)
	case p.Stream == "backfill" && ok: // its positions count the offsets that are filled in, in any order
		what = fmt.Sprintf("filling the history: %.1f%% of %s offsets", part*100, progress.Count(p.End-p.From))
	case p.Stream == "snapshot":
		what = "storing the snapshot: contract " + progress.Position(p)
	case p.Stream == "transactions":
		what = "reading the transaction history: record " + progress.Position(p)
	}
	line("under way", "%s, %s (%s ago)", what, progress.Pace(p), progress.Brief(w.age))
}
