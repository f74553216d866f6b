package config

import (
	"context"
	"fmt"
	"log/slog"

	"ledgerindexer/store"
)

// ScanHistory says what is read from a Scan service; empty: auto.
type ScanHistory string

// What may be read from a Scan service.
const (
	ScanUpdates      ScanHistory = "updates"
	ScanTransactions ScanHistory = "transactions"
	ScanBoth         ScanHistory = "both"
)

// Auto reports whether what is read depends on what the database began with, and on what the service has.
func (h ScanHistory) Auto() bool { return h == "" || h == "auto" }

// Transactions reports whether the transaction history is read.
func (h ScanHistory) Transactions() bool { return h == ScanTransactions || h == ScanBoth }

// Updates reports whether the updates of the network are read.
func (h ScanHistory) Updates() bool { return h == ScanUpdates || h == ScanBoth }

// Histories says which histories a database has begun to hold, or a Scan service has.
type Histories struct{ Updates, Transactions bool }

// Choose returns what is read if the flags leave it open, and why. A database continues with what it has begun to hold,
// even if the service does not have that any more: the stream then says what to do. An empty database begins with the
// updates, or with the transaction history if the service has only that. read is empty if the service has neither.
//
// served is called only for an empty database. An error is always that of served.
func Choose(begun Histories, served func() (Histories, error)) (read ScanHistory, because string, err error) {
	switch {
	case begun.Updates && begun.Transactions:
		return ScanBoth, "the database began with both", nil
	case begun.Updates:
		return ScanUpdates, "the database began with the updates", nil
	case begun.Transactions:
		return ScanTransactions, "the database began with the transaction history", nil
	}
	now, err := served()
	switch {
	case err != nil:
		return "", "", err
	case now.Updates:
		return ScanUpdates, "the service has the updates of its network", nil
	case now.Transactions:
		return ScanTransactions, "the service has no updates of its network", nil
	}
	return "", "", nil
}

// Begun returns which histories a database has begun to hold. history opens the pair of schemas with the transaction
// history, network the pair of the network's updates.
func Begun(ctx context.Context, history, network *store.Store) (begun Histories, err error) {
	if _, begun.Transactions, err = history.Begun(ctx); err != nil {
		return Histories{}, fmt.Errorf("look whether a transaction history is stored: %w", err)
	}
	if begun.Updates, _, err = network.Begun(ctx); err != nil {
		return Histories{}, fmt.Errorf("look whether updates of a network are stored: %w", err)
	}
	return begun, nil
}

// NetworkBegun reports whether a database holds updates of a network, beside the pair of schemas that is asked for. A
// reader of that pair need not have the right to know: then false is returned.
func NetworkBegun(ctx context.Context, databaseURL string, logger *slog.Logger) bool {
	db, err := store.Open(StoreOf(databaseURL, NetworkSchemas, logger))
	if err == nil {
		defer db.Close()
		var begun bool
		if begun, _, err = db.Begun(ctx); err == nil {
			return begun
		}
	}
	logger.DebugContext(ctx, "whether updates of a network are stored is not known", "error", err)
	return false
}
