package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// world is a ledger that is indexed to its end in a scope, once in the process. Each test has a copy of the database, and
// a ledger of its own that is the same and grows as it would.
type world struct {
	options sandbox.Options
	updates int
	scope   config.Scope
	typed   bool // with the types of everything on it
}

var (
	// deltasWorld is that of backedUp.
	deltasWorld = &world{sandbox.Options{Seed: 61}, 200, defaultScope(), false}
	smallWorld  = &world{sandbox.Options{Seed: 63, ActiveShare: 0.4}, 100, everything("ledger-effects"), false}
	typedWorld  = &world{sandbox.Options{Seed: 63}, 500, effects(), true}
)

// indexed returns a database of the world, its ledger, and where that is served.
func (w *world) indexed(t *testing.T) (database string, l *sandbox.Ledger, ledgerURL string) {
	t.Helper()
	l = w.ledger()
	return throwaway.Prepared(t, migrate, w, w.index), l, serve(t, l, sandbox.ServerOptions{})
}

func (w *world) ledger() *sandbox.Ledger {
	l := sandbox.NewLedger(w.options)
	l.Grow(w.updates)
	return l
}

func (w *world) index(ctx context.Context, database string) error {
	server := httptest.NewServer(sandbox.NewServer(w.ledger(), sandbox.ServerOptions{}))
	defer server.Close()
	cfg := indexerFor(database, server.URL, w.scope)
	if !w.typed {
		return RunIndexer(ctx, cfg, slog.New(slog.DiscardHandler))
	}
	cfg.UntilCurrent, cfg.PackagesInterval = false, often
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- RunIndexer(ctx, cfg, slog.New(slog.DiscardHandler)) }()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	for known := false; err == nil && !known; time.Sleep(20 * time.Millisecond) {
		err = conn.QueryRow(ctx, "SELECT ledger.latest_offset() >= $1 AND "+everyTypeKnown, lastUpdate(w.ledger())).Scan(&known)
	}
	err = errors.Join(err, conn.Close(ctx))
	stop()
	return errors.Join(err, <-ended)
}

// indexedNetwork is a network whose updates are indexed, and how, with its service and its ledger. It is a world, too.
func indexedNetwork(t *testing.T) (cfg Indexer, scan *sandbox.Scan, l *sandbox.Ledger) {
	t.Helper()
	network := func() (*sandbox.Ledger, *sandbox.Scan) {
		return scanOf(89, 600, sandbox.ScanOptions{BalanceChanges: true})
	}
	l, scan = network()
	database := throwaway.Prepared(t, migrateNetwork, "a network", func(ctx context.Context, database string) error {
		_, scan := network()
		server := httptest.NewServer(scan)
		defer server.Close()
		return RunIndexer(ctx, networkFor(database, server.URL), slog.New(slog.DiscardHandler))
	})
	return networkFor(database, serveScan(t, scan)), scan, l
}
