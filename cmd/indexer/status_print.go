package main

import (
	"fmt"
	"io"
	"time"

	"ledgerindexer/internal/base/terminal"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/status"
	"ledgerindexer/store"
)

// sayLine prints a line with a label; an empty one continues the line before.
type sayLine = func(label, format string, args ...any)

// printStatus prints a report for people. Of a network it names the party whose view is stored, and what its offsets
// are made of.
func printStatus(out io.Writer, r *status.Report, network bool) error {
	l := newLabelled(out)
	line := func(label, format string, args ...any) { l.say(label, fmt.Sprintf(format, args...)) }
	line("database", "%s", r.Database)
	switch {
	case r.ParticipantID == "":
	case network:
		line("network", "of %s", r.ParticipantID)
	default:
		line("participant", "%s", r.ParticipantID)
	}
	if r.Leader != "" {
		line("leader", "%s", leaderText(r.Leader, r.LeaderSince, r.Leads))
	}
	for _, w := range r.UnderWay {
		line("under way", "%s, %s (%s ago)", w.Title(), terminal.Rate(w.Progress), terminal.Brief(w.Age))
	}
	if len(r.Streams) == 0 {
		line("updates", "nothing indexed yet")
	}
	for _, s := range r.Streams {
		line(s.Stream, "watermark %s, moved %s", status.OffsetText(s.Watermark, network), s.UpdatedAt.Format(time.RFC3339))
	}
	printFailure(line, r.Task(store.StreamUpdates))
	printHistory(line, r)
	if r.Network {
		line("network", "its updates are stored too, in schema %s: `indexer status --network` shows how far",
			config.NetworkSchemas.Views)
	}
	for _, said := range r.Lines(network) {
		label := said.Name
		for _, text := range said.Texts {
			line(label, "%s", text)
			label = ""
		}
	}
	return l.w.Flush()
}

// leaderText says which process leads, or led last.
func leaderText(holder string, since time.Time, leads bool) string {
	if !leads {
		return fmt.Sprintf("none now; the last one was %s, from %s on", holder, since.Format(time.RFC3339))
	}
	return fmt.Sprintf("%s, since %s", holder, since.Format(time.RFC3339))
}

// printHistory prints the state of the transaction history, or why there is none.
func printHistory(line sayLine, r *status.Report) {
	h := r.Transactions
	if h == nil {
		return
	}
	switch {
	case h.Records == 0:
		line("transactions", "no records yet")
	case h.NewestRecord.IsZero():
		line("transactions", "%d records, moved %s", h.Records, h.UpdatedAt.Format(time.RFC3339))
	default:
		line("transactions", "%d records, the newest of %s, moved %s", h.Records, h.NewestRecord.Format(time.RFC3339),
			h.UpdatedAt.Format(time.RFC3339))
	}
	if h.Cursor != "" {
		line("", "reading resumes after event id %s", h.Cursor)
	}
	if h.Rereading {
		line("", "being read again from the beginning, because what was stored did not fit the service: later records are "+
			"missing until that is done")
	}
	if h.Unknown > 0 {
		line("", "%d records that are of no kind that this version knows, kept raw in ledger.unknown_transactions", h.Unknown)
	}
	if h.NetworkID != "" {
		line("", "network of %s", h.NetworkID)
	}
	if h.Leader != "" {
		line("", "leader: %s", leaderText(h.Leader, h.LeaderSince, h.Leads))
	}
	// nobody may have tried since: a daemon reads it with --scan-history=transactions only
	printFailure(line, r.Task(store.StreamTransactions))
}

func printFailure(line sayLine, t *status.Task) {
	if t != nil && t.Failing {
		line("", "%s", t.Failed())
	}
}
