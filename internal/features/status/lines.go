package status

import (
	"fmt"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/base/terminal"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// Line is something that a report says, in words for people: under one name one text or several.
type Line struct {
	Name  string
	Texts []string
}

// Lines are what a report says beside where its streams stand and who leads them. Offsets of a network are shown with
// what they are made of.
func (r *Report) Lines(network bool) (list []Line) {
	add := func(name string, texts ...string) {
		if len(texts) > 0 {
			list = append(list, Line{name, texts})
		}
	}
	for i := range r.Streams {
		s := &r.Streams[i]
		add("events", "complete after offset "+OffsetText(s.HistoryFloor, network))
		if s.StateFloor != nil {
			add("active set", "known from offset "+OffsetText(*s.StateFloor, network))
		} else {
			add("active set", "not known: indexing began in the middle of the ledger without a snapshot")
		}
		if s.PrunedTo > 0 {
			add("pruned", "up to offset "+OffsetText(s.PrunedTo, network))
		}
		if s.Frontier > s.Watermark {
			add("stored without a gap", "up to offset "+OffsetText(s.Frontier, network))
		}
		add("hosting", s.HostingChanged()...)
	}
	add("ledger", r.Ledger.lines(network)...)
	add("verified", r.verified(network)...)
	if s := r.Snapshot; s != nil {
		add("snapshot", fmt.Sprintf("unfinished at offset %s, %s entries stored; run `%s` to continue it",
			OffsetText(s.At, network), terminal.Count(s.Entries), r.backfill))
	}
	if r.Unknown > 0 {
		add("unknown", terminal.Count(r.Unknown)+" elements of kinds that this version does not know, kept raw in "+
			"ledger.unknown_updates")
	}
	if k := r.Lookups; k != (store.Lookups{}) {
		add("lookups", fmt.Sprintf("%s wanted, %s found, %s not found, %s unusable", terminal.Count(k.Wanted),
			terminal.Count(k.Found), terminal.Count(k.NotFound), terminal.Count(k.Unusable)))
	}
	if t := r.Task(ingest.TaskVetting); t != nil && !t.SucceededAt.IsZero() {
		add("packages", fmt.Sprintf("%s vetted on %s synchronizers, read %s", terminal.Count(r.Packages.Vetted),
			terminal.Count(r.Packages.Synchronizers), t.SucceededAt.Format(time.RFC3339)))
	} else if !network { // which has none to read
		add("packages", "not read yet")
	}
	for _, t := range r.Tasks {
		if t.Failing && !t.ofStream() {
			add("task "+t.Name, t.Failed())
		}
	}
	if r.Size != nil {
		add("size", fmt.Sprintf("%s, of %s in the database; %s partitions, PostgreSQL %s", terminal.Bytes(r.Size.Ledger),
			terminal.Bytes(r.Size.Database), terminal.Count(r.Size.Partitions), r.PostgreSQL))
	}
	return list
}

// OffsetText formats an offset as commands take it; one of a network with what it is made of.
func OffsetText(o ledger.Offset, network bool) string {
	if migration, at := o.NetworkPosition(); network && o > 0 {
		return fmt.Sprintf("%d (migration %d, %s)", o, migration, at.Format(time.RFC3339Nano))
	}
	return fmt.Sprint(o)
}

// Failed says when a task failed, and why.
func (t *Task) Failed() string {
	return fmt.Sprintf("failed %s: %s", t.FailedAt.Format(time.RFC3339), t.Failure)
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

// lines say how far the database is behind the ledger's end, if that was asked for.
func (e *End) lines(network bool) []string {
	switch {
	case e == nil || e.Offset == nil && e.Error == "":
		return nil
	case e.Error != "":
		return []string{"lag unknown: " + e.Error}
	}
	text := "end " + OffsetText(*e.Offset, network)
	if e.Lag != nil {
		text += fmt.Sprintf(", %s offsets ahead", terminal.Count(int64(*e.Lag)))
		if *e.Lag > 0 && e.Seconds != nil {
			text += fmt.Sprintf("; the last update here is %s old",
				terminal.Brief(time.Duration(*e.Seconds*float64(time.Second))))
		}
	}
	return []string{text}
}

// verified says how far everything was verified, and what differs.
func (r *Report) verified(network bool) (lines []string) {
	v := r.Verified
	if v == nil {
		return nil
	}
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch {
	case v.Behind == nil:
	case network: // whose offsets are times
		say("up to offset %s", OffsetText(v.Offset, network))
	default:
		say("up to offset %s, %s behind the watermark", OffsetText(v.Offset, network), terminal.Count(int64(*v.Behind)))
	}
	if h := r.Transactions; h != nil && v.Seq > 0 {
		say("up to record %s of the transaction history, %s behind", terminal.Count(v.Seq), terminal.Count(h.Records-v.Seq))
	}
	of := terminal.Count(v.Windows)
	if v.Different > 0 {
		say("%s of %s windows differ from their source: run `indexer verify --repair`", terminal.Count(v.Different), of)
	}
	if v.NotShown > 0 {
		say("%s of %s windows could not be compared: their source does not show them any more",
			terminal.Count(v.NotShown), of)
	}
	if v.Pruned > 0 {
		say("%s of %s windows can't be compared: what they follow from was pruned here", terminal.Count(v.Pruned), of)
	}
	return lines
}
