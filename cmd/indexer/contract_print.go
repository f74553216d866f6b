package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// print writes the report of `indexer contract` for people.
func (r *contractReport) print(out io.Writer) error {
	l := newLabelled(out)
	l.line("contract", brief(r.ContractID))
	facts, of := r.Ledger.Contract, "as the ledger shows it"
	if facts == nil {
		facts, of = r.Database.Contract, "as it is stored"
	}
	if facts != nil {
		facts.print(l)
	}
	r.Ledger.print(l)
	r.Database.print(l)
	if err := l.w.Flush(); err != nil {
		return err
	}
	if err := r.Database.printEvents(out); err != nil {
		return err
	}
	if facts != nil && facts.Payload != nil {
		fmt.Fprintf(out, "\npayload, %s\n%s\n", of, indented(facts.Payload))
	}
	return nil
}

func (f *contractFacts) print(l labelled) {
	l.line("template", brief(f.TemplateID)+" of package "+brief(f.PackageName))
	l.line("created at", f.CreatedAt.String())
	parties := func(label string, list []string) {
		if len(list) > 0 {
			l.line(label, names(list))
		}
	}
	parties("signatories", f.Signatories)
	parties("observers", f.Observers)
	parties("witnesses", f.WitnessParties)
	if f.ContractKey != nil {
		l.line("key", brief(string(f.ContractKey)))
	}
}

func names(list []string) string {
	const most = 20
	var short []string
	for _, name := range list[:min(most, len(list))] {
		short = append(short, brief(name))
	}
	if len(list) > most {
		short = append(short, fmt.Sprintf("and %d more", len(list)-most))
	}
	return strings.Join(short, ", ")
}

func (c *contractOnLedger) print(l labelled) {
	as := "asked as any party"
	if len(c.Parties) > 0 {
		as = "asked as " + names(c.Parties)
	}
	switch {
	case c.failed:
		l.line("ledger", noAnswer)
	case c.Error != "":
		l.line("ledger", c.Error)
	case c.Found:
		l.line("ledger", "knows it, "+as)
		l.line("", "a look-up returns no offset, node id, blob or interface views")
	default:
		l.line("ledger", "does not know it, or none of its stakeholders is among those who asked; "+as)
	}
}

func (c *contractStored) print(l labelled) {
	if c.Watermark == nil {
		l.line("database", c.Address+": nothing indexed yet")
		return
	}
	l.line("database", fmt.Sprintf("%s, events after offset %d up to %d", c.Address, c.HistoryFloor, *c.Watermark))
	if !c.Known {
		l.line("", "does not know it")
		return
	}
	for i, a := range c.Active {
		label := ""
		if i == 0 {
			label = "active"
		}
		l.line(label, fmt.Sprintf("on %s since offset %d, node %d, reassignment counter %d",
			text(a.SynchronizerID), a.Offset, a.NodeID, a.ReassignmentCounter))
	}
	if len(c.Active) == 0 {
		l.line("active", "no: "+c.whyNotActive())
	}
	for i, lifetime := range c.Lifetimes {
		label := ""
		if i == 0 {
			label = "was active"
		}
		l.line(label, fmt.Sprintf("on %s from offset %d, node %d, until offset %d",
			text(lifetime.SynchronizerID), lifetime.Activated, lifetime.NodeID, lifetime.Deactivated))
	}
	if c.Redacted != nil {
		l.say("content", printable(c.Redacted.String()))
	}
	if c.Lookup != nil {
		l.say("looked up", lookupSentence(c.Lookup))
	}
}

// whyNotActive derives the reason from the events. Offsets give these no order: synchronizers have none in common, and
// a participant that was restored shows assignments before unassignments. Both events of a reassignment have its
// counter, and each has a greater one.
func (c *contractStored) whyNotActive() string {
	var last *store.ContractEvent // of the reassignments; the assignment where both events of it were seen
	created, activated := false, false
	for i := len(c.Events) - 1; i >= 0; i-- {
		switch e := &c.Events[i]; e.Kind {
		case store.EventArchived:
			return fmt.Sprintf("archived at offset %d", e.Offset)
		case store.EventAssigned, store.EventUnassigned:
			n := counter(e.ReassignmentCounter)
			if last == nil || n > counter(last.ReassignmentCounter) || n == counter(last.ReassignmentCounter) &&
				e.Kind == store.EventAssigned {
				last = e
			}
		case store.EventCreated:
			created, activated = true, activated || e.ACSDelta == nil || *e.ACSDelta
		}
	}
	switch {
	case last != nil && last.Kind == store.EventUnassigned:
		return fmt.Sprintf("unassigned at offset %d to %s, and not seen to arrive there", last.Offset, text(last.Target))
	case last != nil || activated:
		return "its end was not seen: contracts of which no party is read any more, since the scope was changed, are not " +
			"active here"
	case created:
		return "its creation was only witnessed (acs_delta is false), so it is not known what became of it"
	case c.StateFloor == nil:
		return "indexing began in the middle of the ledger without a snapshot, so it is not known what was active then"
	}
	return "its creation was never seen"
}

// lookupSentence describes the outcome of a look-up.
func lookupSentence(k *store.ContractLookup) string {
	because := fmt.Sprintf("because of offset %d, node %d, without its creation", k.Offset, k.NodeID)
	switch k.Status {
	case "wanted":
		return "not yet, wanted " + because
	case "unusable":
		return fmt.Sprintf("unusable answer at %s, %s: %s", k.At, because, brief(k.Reason))
	}
	return fmt.Sprintf("%s at %s, %s", strings.ReplaceAll(string(k.Status), "_", " "), k.At, because)
}

func (c *contractStored) printEvents(out io.Writer) error {
	if len(c.Events) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	if c.Older {
		fmt.Fprintf(out, "older events are left out, the latest %d follow\n", len(c.Events))
	}
	w := newTable(out, "OFFSET", "NODE", "EVENT", "RECORD TIME", "UPDATE", "SYNCHRONIZER", "DETAILS")
	for i := range c.Events {
		e := &c.Events[i]
		row(w, strconv.FormatInt(int64(e.Offset), 10), strconv.Itoa(int(e.NodeID)), e.Kind, e.RecordTime.String(),
			brief(text(e.UpdateID)),
			brief(text(e.SynchronizerID)), eventDetails(e))
	}
	return w.Flush()
}

// eventDetails formats what only this kind of event has.
func eventDetails(e *store.ContractEvent) string {
	switch e.Kind {
	case store.EventCreated:
		details := "origin " + string(e.Origin)
		if e.ACSDelta != nil && !*e.ACSDelta {
			details += ", only witnessed"
		}
		return details
	case store.EventExercised:
		details := brief(text(e.Choice))
		if e.InterfaceID != nil {
			details += " of " + entity(*e.InterfaceID)
		}
		if e.Consuming != nil && *e.Consuming {
			details += ", consuming"
		}
		return details
	case store.EventAssigned:
		return fmt.Sprintf("from %s, counter %d", brief(text(e.Source)), counter(e.ReassignmentCounter))
	case store.EventUnassigned:
		return fmt.Sprintf("to %s, counter %d", brief(text(e.Target)), counter(e.ReassignmentCounter))
	}
	return ""
}

func counter(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// entity returns an identifier without its package.
func entity(id string) string {
	parsed, err := ledger.ParseTemplateID(id)
	if err != nil {
		return brief(id)
	}
	return brief(parsed.Module + ":" + parsed.Entity)
}
