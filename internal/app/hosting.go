package app

import (
	"context"
	"log/slog"
	"sync"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// hosting watches the topology events that are written, and warns when a party is onboarded to the participant or leaves it.
type hosting struct {
	participant string // its id; empty: not known
	logger      *slog.Logger
	count       func(kind string)

	mu     sync.Mutex
	warned map[string]bool // the events that a warning was logged about: kind and party
}

// mostHostingWarnings is how many are logged: a ledger that is read from its beginning may have thousands of such events.
const mostHostingWarnings = 10

// note looks for such events in pages that were stored.
func (h *hosting) note(ctx context.Context, pages []ledger.Page) {
	for i := range pages {
		for j := range pages[i].Updates {
			u := &pages[i].Updates[j]
			for k := range u.Topology {
				h.event(ctx, u.Offset, &u.Topology[k])
			}
		}
	}
}

func (h *hosting) event(ctx context.Context, at ledger.Offset, e *ledger.TopologyEvent) {
	if e.PartyID == nil || e.ParticipantID == nil || h.participant == "" || *e.ParticipantID != h.participant {
		return
	}
	h.count(string(e.Kind))
	if e.Kind != ledger.TopologyOnboarding && e.Kind != ledger.TopologyRevoked {
		return // TopologyAdded needs no warning, because its updates come from now on, and TopologyChanged none, because nothing follows
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := string(e.Kind) + " " + *e.PartyID
	if h.warned[key] || len(h.warned) > mostHostingWarnings {
		return
	}
	if h.warned == nil {
		h.warned = map[string]bool{}
	}
	h.warned[key] = true
	if len(h.warned) > mostHostingWarnings {
		h.logger.WarnContext(ctx, "further parties were onboarded to the participant or have left it; hosting_changes_total counts them, and ledger.topology_events has them",
			"stream", "updates", "offset", int64(at))
		return
	}
	logger := h.logger.With("stream", "updates", "party", *e.PartyID, "offset", int64(at))
	if e.Kind == ledger.TopologyRevoked {
		logger.WarnContext(ctx, "a party has left the participant: none of its updates come any more, and its contracts stay as they were last seen; "+
			"take it out of --parties (--change-scope), or read it from a participant that hosts it")
		return
	}
	logger.WarnContext(ctx, "a party is onboarded to the participant: contracts that it brings along are in no update; `indexer verify` names those that are missing, "+
		"and a new database that is seeded with `backfill` has them")
}

// updatesSink implements ingest.UpdateSink.
type updatesSink struct {
	*store.UpdatesWriter
	*audit.Stored
	hosting *hosting
}

func (s updatesSink) Append(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
	err := s.UpdatesWriter.Append(ctx, scope, pages)
	if err == nil {
		s.hosting.note(ctx, pages)
	}
	return err
}

func (s updatesSink) WriteAhead(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
	err := s.UpdatesWriter.WriteAhead(ctx, scope, pages)
	if err == nil {
		s.hosting.note(ctx, pages)
	}
	return err
}
