package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// The demonstration (sandbox --all, see demo) runs a database and the indexer beside the ledger, with these settings.
const (
	demoDatabase = "ledger"
	demoRate     = 5 // updates a second that the live ledger grows by, unless --rate says otherwise
	reportEvery  = 10 * time.Second

	// The settings of the role that docs/operations.md describes for readers.
	readerOptions = "-c search_path=ledger -c timezone=UTC -c jit=off -c default_transaction_read_only=on -c " +
		"statement_timeout=60s -c join_collapse_limit=16"
)

// demo is the whole product on one machine: a ledger, a database, a backfill and the indexer.
type demo struct {
	flags     *flags
	out       io.Writer
	started   time.Time
	ledger    *sandbox.Ledger
	ledgerURL string
	scanURL   string // empty: there is none
	database  string
	logger    *slog.Logger
}

func (f *flags) demo(ctx context.Context, stdout io.Writer) error {
	if len(f.Replay) > 0 || f.TokenFile != "" || f.StrictInterface || f.Secure.on() {
		return errors.New("--all shows a grown ledger that asks for no token: leave out --replay, --strict-interface, " +
			"--token-file, --auth and --tls-cert, with all that belongs to them")
	}
	if f.State != "" {
		return errors.New("--all shows a ledger with a database that begins with it: leave out --state")
	}
	if f.ScanOptions.Backfilling {
		return errors.New("--all reads the history to its end: leave out --scan-backfilling")
	}
	// No warnings: parties of the simulated ledger come and go all the time, and the daemon warns of each.
	d := &demo{flags: f, out: stdout, started: time.Now(),
		logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))}
	return d.run(ctx)
}

// say prints what is being done, with the time since the start.
func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.out, "[%5.1fs] %s\n", time.Since(d.started).Seconds(), fmt.Sprintf(format, args...))
}

func (d *demo) run(ctx context.Context) (err error) {
	d.say("starting PostgreSQL")
	postgres, err := throwaway.Start(ctx, throwaway.Options{URL: d.flags.DatabaseURL, URLFrom: "--database-url"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, postgres.Stop()) }()
	d.database = postgres.URL("")
	if postgres.Kind() != throwaway.Given {
		if err := postgres.CreateDatabase(ctx, demoDatabase); err != nil {
			return err
		}
		d.database = postgres.URL(demoDatabase)
	}

	group, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := d.serveLedger(ctx, group); err != nil {
		return err
	}
	group.Go(func() error {
		defer stop()
		return d.index(ctx)
	})
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// serveLedger makes the ledger and serves it on --listen, or on a free port where that one is taken.
func (d *demo) serveLedger(ctx context.Context, group *errgroup.Group) error {
	opts, err := d.flags.serverOptions()
	if err != nil {
		return err
	}
	history, grow, err := d.flags.history()
	if err != nil {
		return err
	}
	d.ledger = history.(*sandbox.Ledger) // --replay was refused
	scan, err := d.flags.scan(history, opts.Token)
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", d.flags.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		listener, err = listen.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return fmt.Errorf("listen for the indexer (change --listen): %w", err)
	}
	d.ledgerURL = "http://" + listener.Addr().String()
	d.say("simulated participant: %s on %s", d.flags.describe(history), d.ledgerURL)
	if scan != nil {
		d.scanURL = d.ledgerURL + scanPath
		d.say("simulated Scan service: release %s, on %s", d.flags.ScanOptions.Release, d.scanURL)
	}
	server := &http.Server{Handler: withScan(scan, sandbox.NewServer(history, opts)), ReadHeaderTimeout: 10 * time.Second}
	if !d.flags.Once && d.flags.Rate == 0 {
		grow = func(ctx context.Context) error {
			d.ledger.RunLive(ctx, demoRate)
			return nil
		}
	}
	group.Go(func() error { return serve(ctx, server, listener, grow) })
	return nil
}

// scans returns the Scan service, or none.
func (d *demo) scans() []string {
	if d.scanURL == "" {
		return nil
	}
	return []string{d.scanURL}
}

// index seeds the database from the middle of the ledger, catches up, shows it, and follows the live ledger.
func (d *demo) index(ctx context.Context) error {
	scope := config.Scope{Shape: "ledger-effects", Contracts: config.Contracts{Interfaces: sandbox.InterfaceNames()},
		Reassignments: true, Topology: true}
	at := d.middle()
	d.say("backfill: seeding from the contracts that are active at offset %d", at)
	progress, err := app.RunBackfill(ctx, app.Backfill{
		Database: config.Database{DatabaseURL: d.database}, Ledger: config.Ledger{LedgerURL: d.ledgerURL}, Scope: scope,
		Snapshot: config.Snapshot{AtOffset: &at},
	}, d.logger, nil)
	if err != nil {
		return err
	}
	d.say("backfill: stored %d contracts", progress.Entries)

	indexer := app.Indexer{
		Database: config.Database{DatabaseURL: d.database}, Sources: config.Sources{LedgerURL: d.ledgerURL,
			ScanURL: d.scans()}, Scope: scope,
		Run: config.Run{ // the rest are the daemon's defaults; what is verified is not waited for
			Start: "genesis", UntilCurrent: true, Migrate: "auto", LookupRate: 5, PackagesInterval: 10 * time.Minute,
		},
	}
	d.say("indexer: reading the updates from offset %d to the ledger's end %d%s", at, d.ledger.End(),
		d.ifScan(", and the updates of its network"))
	if err := app.RunIndexer(ctx, indexer, d.logger); err != nil || ctx.Err() != nil {
		return err
	}
	d.say("indexer: caught up")
	views, err := app.CreateViews(ctx, app.Views{
		ViewsSchema: app.ViewsSchema{Database: config.Database{DatabaseURL: d.database}, Schema: "typed"}, All: true,
	}, d.logger)
	if err != nil {
		return err
	}
	d.say("indexer views: made %d views with a column for each field, in schema typed", len(views))

	conn, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	queries := demoQueries
	if d.scanURL != "" {
		queries = slices.Concat(queries, networkQueries)
	}
	if err := printQueries(ctx, d.out, conn, queries); err != nil {
		return err
	}
	if !d.flags.Once || d.flags.DatabaseURL != "" { // else the database goes with the demo
		fmt.Fprintf(d.out, "\nLook for yourself, in another terminal:\n\n    PGOPTIONS='%s' psql '%s'\n", readerOptions,
			d.database)
	}
	if d.flags.Once {
		if err := printRows(ctx, d.out, conn, d.scanURL != ""); err != nil {
			return err
		}
		d.say("done")
		return nil
	}
	return d.follow(ctx, indexer, conn)
}

// connect reads the database as a reader's role does.
func (d *demo) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(d.database)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["options"] += " " + readerOptions
	return pgx.ConnectConfig(ctx, config)
}

// ifScan returns text if there is a Scan service, else "".
func (d *demo) ifScan(text string) string {
	if d.scanURL == "" {
		return ""
	}
	return text
}

// middle returns an offset in the middle of the ledger at which no reassignment is in flight: a participant serves no
// other past snapshots.
func (d *demo) middle() int64 {
	for i := d.ledger.Len() / 2; i < d.ledger.Len(); i++ {
		if at := d.ledger.Offset(i); !d.ledger.InFlight(at) {
			return at
		}
	}
	return d.ledger.End()
}

// follow keeps indexing the live ledger until ctx ends.
func (d *demo) follow(ctx context.Context, indexer app.Indexer, conn *pgx.Conn) error {
	indexer.UntilCurrent, indexer.VerifyRate = false, 500
	var listen net.ListenConfig
	page, err := listen.Listen(ctx, "tcp", "127.0.0.1:0") // a port that nobody has
	if err != nil {
		return fmt.Errorf("find a port for the status page: %w", err)
	}
	indexer.Listen = page.Addr().String()
	if err := page.Close(); err != nil {
		return fmt.Errorf("find a port for the status page: %w", err)
	}
	fmt.Fprintln(d.out)
	d.say("indexer: following the live ledger, with its status page on http://%s/; Ctrl-C stops it and removes a "+
		"throwaway database", indexer.Listen)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return app.RunIndexer(ctx, indexer, d.logger) })
	group.Go(func() error {
		ticker := time.NewTicker(reportEvery)
		defer ticker.Stop()
		for {
			var watermark, active, records int64
			query := "SELECT ledger.latest_offset(), (SELECT count(*) FROM ledger.active_contracts), 0"
			if d.scanURL != "" {
				query = strings.TrimSuffix(query, "0") + "(SELECT count(*) FROM network.transactions)"
			}
			err := conn.QueryRow(ctx, query).Scan(&watermark, &active, &records)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			d.say("indexer: everything up to offset %d is here, the ledger ends at %d; %d contracts are active%s", watermark,
				d.ledger.End(), active,
				d.ifScan(fmt.Sprintf("; %d transfers and other records of the network", records)))
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
		}
	})
	return group.Wait()
}
