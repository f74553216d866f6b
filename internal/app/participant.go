package app

import (
	"context"
	"errors"
	"sync/atomic"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
)

// participantUpdates implements origin for a participant.
type participantUpdates struct {
	*indexer
	*participant.Client
	scope  ledger.Scope
	start  ingest.Start
	server atomic.Pointer[participant.Server] // what the participant last reported of itself
}

func newParticipantUpdates(x *indexer) (*participantUpdates, error) {
	u := &participantUpdates{indexer: x, scope: x.cfg.Domain()}
	var err error
	if u.start, err = ingest.ParseStart(x.cfg.Start); err != nil {
		return nil, err
	}
	u.Client, err = participant.New(participant.Config{
		URL: x.cfg.LedgerURL, Access: x.cfg.LedgerAccess.Domain("ledger"), Logger: x.logger, Observe: x.metrics.Request, NotJSON: x.metrics.NotJSON,
		MaxRequests: x.cfg.MaxRequests, MaxRate: x.cfg.MaxRate,
	}, u.scope)
	if err != nil {
		return nil, &config.UsageError{Err: err}
	}
	return u, nil
}

// ping asks for the ledger's end. A server that does not offer that has answered too.
func (u *participantUpdates) ping(ctx context.Context) error {
	_, err := u.LedgerEnd(ctx)
	if errors.Is(err, ledger.ErrNotOffered) {
		return nil
	}
	return err
}

// identify implements origin.
func (u *participantUpdates) identify(ctx context.Context) (identity, error) {
	server, err := u.Discover(ctx)
	if err != nil {
		return identity{}, err
	}
	u.server.Store(&server)
	return identity{server.ParticipantID, u.scope}, nil
}

// release implements origin.
func (u *participantUpdates) release(context.Context) string {
	if server := u.server.Load(); server != nil {
		return server.Version
	}
	return ""
}

// refusal implements origin.
func (u *participantUpdates) refusal(err error) error { return err }

// resumes implements origin.
func (u *participantUpdates) resumes(ledger.Offset) {}
