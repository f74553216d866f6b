package app

import (
	"context"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// participantUpdates implements origin for a participant.
type participantUpdates struct {
	*indexer
	*participantSource
	start ingest.Start
}

func newParticipantUpdates(x *indexer) (*participantUpdates, error) {
	start, err := ingest.ParseStart(x.cfg.Start)
	if err != nil {
		return nil, err
	}
	from, err := newParticipantSource(x.cfg.Ledger(), x.cfg.Pace, x.cfg.Domain(), x.logger, observed(x.metrics))
	if err != nil {
		return nil, err
	}
	return &participantUpdates{x, from, start}, nil
}

func (u *participantUpdates) ping(ctx context.Context) error {
	_, err := u.LedgerEnd(ctx)
	return reachable(err)
}

func (u *participantUpdates) release(context.Context) string {
	if server := u.server.Load(); server != nil {
		return server.Version
	}
	return ""
}

func (u *participantUpdates) ofScope(scope ledger.Scope) (source, error) {
	return newParticipantSource(u.cfg.Ledger(), u.cfg.Pace, scope, u.logger, observed(u.metrics))
}
