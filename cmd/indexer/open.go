package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
	"ledgerindexer/store"
)

// openLedger returns a client that reads in a scope.
func openLedger(l config.Ledger, scope ledger.Scope, logger *slog.Logger) (*participant.Client, error) {
	client, err := participant.New(participant.Config{URL: l.LedgerURL, Access: l.LedgerAccess, Logger: logger}, scope)
	if err != nil {
		return nil, &config.UsageError{Err: err}
	}
	return client, nil
}

// commandPatience is how long the look-up commands wait for the ledger. Servers give up on a request after 20 s.
const commandPatience = 30 * time.Second

// optionalSources are config.Sources without their Validate, which kong would call by itself: the command may do
// without them.
type optionalSources config.Sources

// sameLedger refuses a participant that the database does not belong to. It accepts one that does not report its id.
func sameLedger(ctx context.Context, db *store.Store, client *participant.Client, scope ledger.Scope) error {
	participantID, _, err := client.Peek(ctx)
	if err != nil && !errors.Is(err, ledger.ErrNotOffered) {
		return err
	}
	return db.CheckIdentity(ctx, participantID, scope)
}
