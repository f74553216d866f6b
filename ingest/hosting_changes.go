package ingest

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"ledgerindexer/ledger"
)

// HostingChanges watches the topology events that are written, counts them, and says when a party that the scope names
// comes to the participant, or is not hosted there any more. Where the scope names no party, nobody has to act.
type HostingChanges struct {
	Participant string // its id; empty: not known
	Logger      *slog.Logger
	Count       func(kind string)

	mu   sync.Mutex
	said map[string]bool // the events of which a line was logged: kind, party and synchronizer
}

// mostHostingLines is how many are logged: a ledger that is read from its beginning may have thousands of such events.
const mostHostingLines = 10

// Watch returns a sink that writes to another one, and has what was stored looked through.
func (h *HostingChanges) Watch(sink UpdateSink) UpdateSink { return watchedSink{sink, h} }

type watchedSink struct {
	UpdateSink
	changes *HostingChanges
}

func (s watchedSink) Append(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
	err := s.UpdateSink.Append(ctx, scope, pages)
	if err == nil {
		s.changes.note(ctx, scope, pages)
	}
	return err
}

func (s watchedSink) WriteAhead(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
	err := s.UpdateSink.WriteAhead(ctx, scope, pages)
	if err == nil {
		s.changes.note(ctx, scope, pages)
	}
	return err
}

// note looks for such events in pages that were stored.
func (h *HostingChanges) note(ctx context.Context, scope ledger.Scope, pages []ledger.Page) {
	for i := range pages {
		for j := range pages[i].Updates {
			u := &pages[i].Updates[j]
			for k := range u.Topology {
				e := &u.Topology[k]
				if e.PartyID == nil || e.ParticipantID == nil || h.Participant == "" || *e.ParticipantID != h.Participant {
					continue
				}
				h.Count(string(e.Kind))
				if slices.Contains(scope.Parties, *e.PartyID) {
					h.say(ctx, u, e)
				}
			}
		}
	}
}

// say logs an onboarding or a revocation once. TopologyAdded needs no line, because its updates come from now on, and
// TopologyChanged none, because nothing follows.
func (h *HostingChanges) say(ctx context.Context, u *ledger.Update, e *ledger.TopologyEvent) {
	if e.Kind != ledger.TopologyOnboarding && e.Kind != ledger.TopologyRevoked {
		return
	}
	synchronizer := ""
	if u.SynchronizerID != nil {
		synchronizer = *u.SynchronizerID
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := string(e.Kind) + " " + *e.PartyID + " " + synchronizer
	if h.said[key] || len(h.said) > mostHostingLines {
		return
	}
	if h.said == nil {
		h.said = map[string]bool{}
	}
	h.said[key] = true
	logger := h.Logger.With("stream", "updates", "offset", int64(u.Offset))
	if len(h.said) > mostHostingLines {
		logger.WarnContext(ctx, "further parties were onboarded, or are not hosted any more; hosting_changes_total counts "+
			"them, and ledger.topology_events has them")
		return
	}
	logger = logger.With("party", *e.PartyID, "synchronizer", synchronizer)
	if e.Kind == ledger.TopologyRevoked {
		logger.WarnContext(ctx, "the participant does not host a party on a synchronizer any more: no updates of it come "+
			"from there, and its contracts there stay as they were last seen; where it is hosted on no other, take it out of "+
			"--parties (--change-scope), or read it from "+
			"a participant that hosts it")
		return
	}
	logger.InfoContext(ctx, "a party is onboarded to the participant; `indexer verify` names contracts that it brings "+
		"along, if no update shows them")
}
