package app

import (
	"context"
	"log/slog"
	"net/http"

	"golang.org/x/sync/errgroup"

	"ledgerindexer/internal/base/version"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/admin"
	"ledgerindexer/internal/features/status"
	"ledgerindexer/internal/features/statuspage"
	"ledgerindexer/store"
)

// newPage returns the daemon's status page, which shows each of its streams.
func (x *indexer) newPage(build version.Build, journal *statuspage.Journal) *statuspage.Page {
	cfg := statuspage.Config{Build: build, Holder: config.Holder(), Health: x.health, Journal: journal,
		Hosts: x.cfg.PageHosts}
	place := map[string]int{}
	for _, s := range x.streams {
		name := "ledger"
		if s.indexer != x {
			name = "network"
		}
		i, known := place[name]
		if !known {
			i = len(cfg.Ledgers)
			place[name] = i
			cfg.Ledgers = append(cfg.Ledgers, statuspage.Ledger{Name: name, Store: s.store,
				Sized: func(sizes store.DiskUse) { s.metrics.Sized(sizes.Ledger, sizes.Partitions) }})
		}
		cfg.Ledgers[i].Streams = append(cfg.Ledgers[i].Streams, s.onPage())
	}
	return statuspage.New(cfg)
}

func (s *stream) onPage() statuspage.Stream {
	shown := statuspage.Stream{Title: s.title, Kind: s.name(), Source: s.sourceName, Version: s.work.release,
		Lag: func() admin.Lag { return s.metrics.Lag(s.name()) }}
	if u, ofUpdates := s.work.(*updates); ofUpdates {
		shown.End = u.origin.LedgerEnd
	}
	return shown
}

// serve serves the endpoints that are configured, until ctx ends.
func (x *indexer) serve(ctx context.Context, group *errgroup.Group, page *statuspage.Page) error {
	listens := false
	for _, at := range []struct{ flag, address string }{{"--listen", x.cfg.Listen}, {"--page-listen", x.cfg.PageListen}} {
		if at.address == "" {
			continue
		}
		mux := http.NewServeMux()
		if at.flag == "--listen" {
			mux = admin.Probes(x.health, x.metrics, status.Public)
		}
		withPage := at.flag == "--page-listen" || x.cfg.PageListen == ""
		if withPage {
			page.Register(mux)
		}
		listens = true
		if err := listen(ctx, group, x.logger, at.flag, at.address, mux); err != nil {
			return err
		}
	}
	if listens { // the metrics have some of what is measured
		group.Go(func() error {
			page.Run(ctx)
			return nil
		})
	}
	return nil
}

func listen(ctx context.Context, group *errgroup.Group, logger *slog.Logger, flag, address string,
	handler http.Handler) error {
	listener, err := listenAt(ctx, flag, address)
	if err != nil {
		return err
	}
	logger.InfoContext(ctx, "listening", "address", listener.Addr().String())
	group.Go(func() error { return admin.Serve(ctx, listener, handler, logger.With("listener", flag)) })
	return nil
}
