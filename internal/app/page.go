package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"golang.org/x/sync/errgroup"

	"ledgerindexer/internal/admin"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/statuspage"
	"ledgerindexer/internal/version"
	"ledgerindexer/store"
)

// newPage returns the status page of all streams.
func (x *indexer) newPage(build version.Build, journal *statuspage.Journal) *statuspage.Page {
	cfg := statuspage.Config{Build: build, Holder: config.Holder(), Health: x.health, Journal: journal, Hosts: x.cfg.PageHosts}
	place := map[*indexer]int{}
	for _, s := range x.streams {
		i, known := place[s.indexer]
		if !known {
			i = len(cfg.Ledgers)
			place[s.indexer] = i
			name := "ledger"
			if s.indexer != x {
				name = "network"
			}
			cfg.Ledgers = append(cfg.Ledgers, statuspage.Ledger{Name: name, Store: s.store})
		}
		cfg.Ledgers[i].Streams = append(cfg.Ledgers[i].Streams, statuspage.Stream{
			Title: s.title, Kind: s.name(), Source: s.source, Lag: s.lag, Version: s.work.release,
		})
	}
	return statuspage.New(cfg)
}

// lag returns how far the stream is behind its source. A leader knows; another process asks, where a question tells.
func (s *stream) lag(ctx context.Context, at store.Place) admin.Lag {
	known := s.metrics.Lag(s.name())
	u, ofUpdates := s.work.(*updates)
	if known.Leads || !ofUpdates {
		return known
	}
	end, err := u.origin.LedgerEnd(ctx)
	if err != nil { // readyz and the log say why
		return admin.Lag{}
	}
	return statuspage.Behind(at, end, &s.caughtUp)
}

// serve serves the endpoints that are configured, until ctx ends.
func (x *indexer) serve(ctx context.Context, group *errgroup.Group, page *statuspage.Page) error {
	paged := false
	for _, at := range []struct{ flag, address string }{{"--listen", x.cfg.Listen}, {"--page-listen", x.cfg.PageListen}} {
		if at.address == "" {
			continue
		}
		mux := http.NewServeMux()
		if at.flag == "--listen" {
			mux = admin.Probes(x.health, x.metrics)
		}
		withPage := at.flag == "--page-listen" || x.cfg.PageListen == ""
		if withPage {
			page.Register(mux)
			paged = true
		}
		if err := listen(ctx, group, x.logger, at.flag, at.address, mux); err != nil {
			return err
		}
	}
	if paged {
		group.Go(func() error {
			page.Run(ctx)
			return nil
		})
	}
	return nil
}

func listen(ctx context.Context, group *errgroup.Group, logger *slog.Logger, flag, address string, handler http.Handler) error {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	logger.InfoContext(ctx, "listening", "address", listener.Addr().String())
	group.Go(func() error { return admin.Serve(ctx, listener, handler) })
	return nil
}
