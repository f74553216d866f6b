package config

import (
	"context"
	"log/slog"

	"ledgerindexer/store"
)

// ScanHistory says what is read from a Scan service.
type ScanHistory string

// What may be read from a Scan service.
const (
	ScanUpdates      ScanHistory = "updates"
	ScanTransactions ScanHistory = "transactions"
)

// NetworkBegun reports whether a database holds updates of a network, beside the pair of schemas that is asked for. A
// reader of that pair need not have the right to know: then false is returned.
func NetworkBegun(ctx context.Context, databaseURL string, logger *slog.Logger) bool {
	db, err := store.Open(StoreOf(databaseURL, NetworkSchemas, logger))
	if err == nil {
		defer db.Close()
		var begun bool
		if begun, err = db.Begun(ctx); err == nil {
			return begun
		}
	}
	logger.DebugContext(ctx, "whether updates of a network are stored is not known", "error", err)
	return false
}
