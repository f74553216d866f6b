package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"ledgerindexer/internal/admin"
	"ledgerindexer/internal/config"
)

// startPprof serves profiles, if configured, until end is called.
func startPprof(ctx context.Context, cfg config.Profile, logger *slog.Logger) (end func(), err error) {
	if cfg.Pprof == "" {
		return func() {}, nil
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", cfg.Pprof)
	if err != nil {
		return nil, fmt.Errorf("--pprof: %w", err)
	}
	logger.InfoContext(ctx, "profiles are served", "url", fmt.Sprintf("http://%s/debug/pprof/", listener.Addr()))
	ctx, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if err := admin.ServePprof(ctx, listener); err != nil {
			logger.WarnContext(ctx, "profiles are not served any more", "error", err)
		}
	}()
	return func() {
		stop()
		<-stopped
	}, nil
}
