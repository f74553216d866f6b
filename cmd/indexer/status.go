package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/status"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// statusCommand is `indexer status`: it says where the database stands, and how far behind the ledger.
type statusCommand struct {
	config.Database
	LedgerURL    string        `placeholder:"URL" help:"Base URL of the participant, to compare with the ledger's end; empty, or with --network: don't."`
	LedgerAccess access.Config `embed:"" prefix:"ledger-"`
	jsonFlag
}

// ledgerPatience is how long status waits for the ledger.
const ledgerPatience = 10 * time.Second

func (c *statusCommand) Run(ctx context.Context, logger *slog.Logger, db *store.Store, out config.Output) error {
	from, err := db.Status(ctx)
	if err != nil {
		return err
	}
	sizes, err := db.DiskUse(ctx)
	if err != nil {
		return err
	}
	r := status.New(db, from)
	r.Sized(sizes)
	r.Network = !c.OfNetwork() && config.NetworkBegun(ctx, c.DatabaseURL, logger)
	if c.LedgerURL != "" && !c.OfNetwork() { // else it is given with the daemon's environment, for the other ledger
		r.Ledger = c.askLedger(ctx, logger, r)
	}
	if c.JSON {
		return writeReport(out, r)
	}
	return printStatus(out, r, c.Domain() == config.NetworkSchemas)
}

// askLedger compares with the ledger's end. A failure becomes a part of the report.
func (c *statusCommand) askLedger(ctx context.Context, logger *slog.Logger, r *status.Report) *status.End {
	client, err := openLedger(config.Ledger{LedgerURL: c.LedgerURL, LedgerAccess: c.LedgerAccess},
		ledger.Scope{Shape: ledger.ShapeACSDelta}, logger)
	if err != nil {
		return &status.End{Error: err.Error()}
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	participantID, offset, err := client.Peek(ctx)
	if participantID != "" && r.ParticipantID != "" && participantID != r.ParticipantID {
		return &status.End{Error: fmt.Sprintf("the ledger URL leads to another participant, %s: check --ledger-url and "+
			"--database-url", participantID)}
	}
	if errors.Is(err, ledger.ErrNotOffered) {
		return &status.End{Error: "the server does not report its ledger end"}
	}
	if err != nil {
		return &status.End{Error: err.Error()}
	}
	e := &status.End{Offset: &offset}
	if len(r.Streams) > 0 {
		lag := max(0, offset-r.Streams[0].Watermark)
		e.Lag = &lag
		if newest := r.Streams[0].RecordTime; !newest.IsZero() {
			e.Seconds = new(max(0, time.Since(newest).Seconds())) // the ledger's clock may be ahead
		}
	}
	return e
}
