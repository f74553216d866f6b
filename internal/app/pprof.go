package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/admin"
	"ledgerindexer/ledger"
)

// startPprof serves profiles, if configured, until end is called.
func startPprof(ctx context.Context, cfg config.Profile, logger *slog.Logger) (end func(), err error) {
	if cfg.Pprof == "" {
		return func() {}, nil
	}
	listener, err := listenAt(ctx, "--pprof", cfg.Pprof)
	if err != nil {
		return nil, err
	}
	logger.InfoContext(ctx, "profiles are served", "url", fmt.Sprintf("http://%s/debug/pprof/", listener.Addr()))
	ctx, stop := context.WithCancel(ctx)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := admin.ServePprof(ctx, listener, logger.With("listener", "--pprof")); err != nil {
			logger.WarnContext(ctx, "profiles are not served any more", "error", err)
		}
	})
	return func() { stop(); serving.Wait() }, nil
}

func listenAt(ctx context.Context, flag, address string) (net.Listener, error) {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, &ledger.Problem{
			What: flag, Err: err,
			Do: fmt.Sprintf("give %s an address of this machine and a port that no other process, such as another indexer, has",
				flag),
		}
	}
	return listener, nil
}
