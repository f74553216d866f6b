package statuspage

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ledgerindexer/internal/features/status"
	"ledgerindexer/ledger"
)

// Notice is a warning or an error of the log, without what names a party or a contract.
type Notice struct {
	At     time.Time `json:"at"` // last
	Times  int       `json:"times"`
	Level  string    `json:"level"` // WARN or ERROR
	Of     string    `json:"of,omitempty"`
	What   string    `json:"what"`
	Detail string    `json:"detail,omitempty"`
	Do     string    `json:"what_to_do,omitempty"`
}

// noticesKept is how many different warnings and errors a journal keeps.
const noticesKept = 12

// Journal keeps the last warnings and errors of a log. It is safe for concurrent use.
type Journal struct {
	mu      sync.Mutex
	notices []Notice // the newest first
}

// Handler returns a handler that keeps warnings and errors in the journal and passes everything on to next.
func (j *Journal) Handler(next slog.Handler) slog.Handler {
	return slog.NewMultiHandler(next, recording{journal: j})
}

// Notices returns what is kept, the newest first. Notices that repeat one another are one.
func (j *Journal) Notices() []Notice {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.notices)
}

func (j *Journal) add(n Notice) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, known := range j.notices {
		if known.Level == n.Level && known.Of == n.Of && known.What == n.What &&
			withoutNumbers(known.Detail) == withoutNumbers(n.Detail) {
			n.Times += known.Times
			j.notices = slices.Delete(j.notices, i, i+1)
			break
		}
	}
	j.notices = slices.Insert(j.notices, 0, n)
	j.notices = j.notices[:min(len(j.notices), noticesKept)]
}

var number = regexp.MustCompile(`[0-9]+`)

// withoutNumbers returns a text in which the same failure at another offset, or on another port, reads the same.
func withoutNumbers(text string) string { return number.ReplaceAllString(text, "0") }

// recording keeps warnings and errors, also where the log leaves them out. Groups of attributes are not kept: the
// programs log none.
type recording struct {
	journal *Journal
	attrs   []slog.Attr
}

func (recording) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (r recording) Handle(_ context.Context, record slog.Record) error {
	r.journal.add(r.notice(record))
	return nil
}

func (r recording) WithAttrs(attrs []slog.Attr) slog.Handler {
	return recording{r.journal, append(slices.Clip(r.attrs), attrs...)}
}

func (r recording) WithGroup(string) slog.Handler { return r }

// notice takes from a record what the page shows. Other attributes may hold data of the ledger.
func (r recording) notice(record slog.Record) Notice {
	n := Notice{At: record.Time.UTC(), Times: 1, Level: record.Level.String(), What: record.Message}
	var of []string
	take := func(a slog.Attr) bool {
		switch a.Key {
		case "ledger", "stream", "task", "state":
			of = append(of, a.Value.String())
		case "error", "reason":
			n.Detail, n.Do = explained(a.Value)
		case "what_to_do":
			n.Do = a.Value.String()
		}
		return true
	}
	for _, a := range r.attrs {
		take(a)
	}
	record.Attrs(take)
	n.Of, n.Detail, n.Do = status.Public(strings.Join(slices.Compact(of), ", ")), status.Public(n.Detail),
		status.Public(n.Do)
	return n
}

// explained returns what an error says, and its cure if it has one.
func explained(value slog.Value) (what, do string) {
	var problem *ledger.Problem
	if err, isError := value.Any().(error); isError && errors.As(err, &problem) {
		return err.Error(), problem.Do
	}
	return status.WhatToDo(value.String())
}
