package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
	"ledgerindexer/store"
)

// The commands that only call another package: run, migrate, healthcheck. Each of the others has a file of its own.

// Run runs the daemon until ctx ends.
func (c *runCommand) Run(ctx context.Context, logger *slog.Logger) error {
	return app.RunIndexer(ctx, c.Indexer, logger)
}

type migrateCommand struct{ config.Database }

func (c *migrateCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	db, err := store.Open(c.Store(logger))
	if err != nil {
		return err
	}
	defer db.Close()
	applied, err := db.Migrate(ctx)
	if err != nil {
		return err
	}
	if len(applied) == 0 {
		fmt.Fprintf(out, "database %s is up to date\n", db.Address())
		return nil
	}
	fmt.Fprintf(out, "database %s: applied %s\n", db.Address(), strings.Join(applied, ", "))
	return nil
}

type healthcheckCommand struct {
	Listen string `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"The --listen address of the running indexer. Default: ${default}."`
}

// Run asks /readyz, and prints why the indexer is not ready.
func (c *healthcheckCommand) Run(ctx context.Context, out config.Output) error {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return &config.UsageError{Err: fmt.Errorf("--listen: %w", err)}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // it listens on every address, this one included
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return err
	}
	// without a proxy, which is for the daemon's own requests
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return fmt.Errorf("no indexer answers at --listen %s: start `indexer run`, or give the address that it listens on: "+
			"%w", c.Listen, err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(out, io.LimitReader(response.Body, 4096)); err != nil { // a screenful
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New("not ready")
	}
	return nil
}
