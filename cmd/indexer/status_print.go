package main

import (
	"fmt"
	"io"
	"time"

	"ledgerindexer/internal/base/terminal"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/status"
	"ledgerindexer/ledger"
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
	if text := r.UnfinishedSnapshot(); text != "" {
		line("snapshot", "%s", text)
	}
	for _, w := range r.UnderWay {
		line("under way", "%s, %s (%s ago)", w.Title(), terminal.Pace(w.Progress), terminal.Brief(w.Age))
	}
	if len(r.Streams) == 0 {
		line("updates", "nothing indexed yet")
	}
	for i := range r.Streams {
		printStream(line, r, &r.Streams[i], network)
	}
	printFailure(line, r.UpdatesTask)
	if r.Unknown > 0 {
		line("unknown", "%d elements of kinds that this version does not know, kept raw in ledger.unknown_updates", r.Unknown)
	}
	printTasks(line, r)
	printHistory(line, r.History)
	if r.Network {
		line("network", "its updates are stored too, in schema %s: `indexer status --network` shows how far",
			config.NetworkSchemas.Views)
	}
	printVerified(line, r.Verified, r.History, network)
	printEnd(line, r.Ledger)
	if r.Size != nil {
		line("size", "%s, of %s in the database; %d partitions, PostgreSQL %s", terminal.Bytes(r.Size.Ledger),
			terminal.Bytes(r.Size.Database),
			r.Size.Partitions, r.PostgreSQL)
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

// position formats an offset; one of a network with what it is made of.
func position(o ledger.Offset, network bool) string {
	if migration, at := o.NetworkPosition(); network {
		return fmt.Sprintf("%d (migration %d, %s)", o, migration, at.Format(time.RFC3339Nano))
	}
	return fmt.Sprint(o)
}

// printStream prints where the updates stand.
func printStream(line sayLine, r *status.Report, s *status.Stream, network bool) {
	line(s.Stream, "watermark %s, moved %s", position(s.Watermark, network), s.UpdatedAt.Format(time.RFC3339))
	line("", "frontier %s", position(s.Frontier, network))
	line("", "events complete after offset %d", s.HistoryFloor)
	if s.StateFloor != nil {
		line("", "active set known from offset %d", *s.StateFloor)
	} else {
		line("", "active set not known: indexing began in the middle of the ledger without a snapshot")
	}
	for _, changed := range s.HostingChanged() {
		line("", "%s", changed)
	}
	if s.HostingTask != nil && s.HostingTask.Failing {
		line("", "which parties are hosted here can't be asked")
		printFailure(line, s.HostingTask)
	}
	if s.PrunedTo > 0 {
		line("", "pruned up to offset %d", s.PrunedTo)
	}
	if s.Pruning != nil && s.Pruning.Failing {
		line("", "pruning failed %s: %s", s.Pruning.FailedAt.Format(time.RFC3339), s.Pruning.Failure)
	}
	switch {
	case s.UpdatesPerSecond == nil:
	case network: // whose offsets are times
		line("", "%.1f updates/s", *s.UpdatesPerSecond)
	default:
		line("", "%.1f updates/s, %.1f offsets/s", *s.UpdatesPerSecond, *s.OffsetsPerSecond)
	}
}

// printEnd prints how far the database is behind the ledger's end, if it was asked for.
func printEnd(line sayLine, end *status.End) {
	switch {
	case end == nil:
	case end.Error != "":
		line("ledger", "lag unknown: %s", end.Error)
	case end.Lag != nil && *end.Lag > 0 && end.Seconds != nil:
		line("ledger", "end %d, %d offsets ahead; the last update here is %s old", *end.Offset, *end.Lag,
			terminal.Brief(time.Duration(*end.Seconds*float64(time.Second))))
	case end.Lag != nil:
		line("ledger", "end %d, %d offsets ahead", *end.Offset, *end.Lag)
	default:
		line("ledger", "end %d", *end.Offset)
	}
}

// printHistory prints the state of the transaction history, or why there is none.
func printHistory(line sayLine, h *status.History) {
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
		line("", "leader: %s", leaderText(h.Leader, h.LeaderSince, h.Leads))
	}
	if h.Task != nil && h.Failing { // nobody may have tried since: --scan-history=none does without
		line("", "as of %s: %s", h.FailedAt.Format(time.RFC3339), h.Failure)
	}
}

// printTasks prints the results of the background tasks, and why they fail.
func printTasks(line sayLine, r *status.Report) {
	l, p := r.Lookups, r.Packages
	if l.Wanted+l.Found+l.NotFound+l.Unusable > 0 {
		line("lookups", "%d wanted, %d found, %d not found, %d unusable", l.Wanted, l.Found, l.NotFound, l.Unusable)
		printFailure(line, l.Task)
	}
	switch {
	case p.Task == nil || p.SucceededAt.IsZero():
		line("packages", "not read yet")
	default:
		line("packages", "%d vetted on %d synchronizers, read %s", p.Vetted, p.Synchronizers,
			p.SucceededAt.Format(time.RFC3339))
	}
	printFailure(line, p.Task)
	if p.Types != nil && p.Types.Failing {
		line("types", "packages can't be read for their types")
		printFailure(line, p.Types)
	}
}

// printVerified prints how far everything was verified, and what differs.
func printVerified(line sayLine, v *status.Verified, history *status.History, network bool) {
	if v == nil {
		return
	}
	label := "verified"
	switch {
	case v.Behind == nil:
	case network: // whose offsets are times
		line(label, "up to offset %s", position(v.Offset, network))
		label = ""
	default:
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
	if v.Pruned > 0 {
		line(label, "%d of %d windows can't be compared: what they follow from was pruned here", v.Pruned, v.Windows)
	}
	printFailure(line, v.Updates)
	printFailure(line, v.HistoryTask)
}

func printFailure(line sayLine, t *status.Task) {
	if t != nil && t.Failing {
		line("", "failed %s: %s", t.FailedAt.Format(time.RFC3339), t.Failure)
	}
}
