package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/sync/errgroup"

	"ledgerindexer/internal/base/version"
	"ledgerindexer/internal/config"
	"ledgerindexer/sandbox"
)

// flags are the command line; every flag has an environment variable SANDBOX_….
type flags struct {
	Listen             string        `default:"127.0.0.1:7575" help:"Address to listen on."`
	Seed               uint64        `default:"1" help:"Seed of the ledger: the same seed gives the same ledger."`
	Updates            int           `default:"10000" help:"Updates that the ledger has at the start."`
	Elsewhere          bool          `help:"Let the network show what parties hosted elsewhere do too: allocations, names, preapprovals, mining rounds, coupons, commands, version 2 of the token standard."`
	Rate               float64       `default:"0" help:"Add this many updates per second while it runs."`
	Release            string        `default:"3.5" enum:"3.4,3.5.5,3.5,3.6" help:"Simulated release: 3.4, 3.5.5, 3.5 (its newest, 3.5.10) or 3.6."`
	StrictInterface    bool          `help:"Serve only the operations of the interface document."`
	TokenFile          string        `type:"path" help:"File with the bearer token that requests must carry, those to the Scan service too. Default: none needed."`
	Latency            time.Duration `default:"0s" help:"Wait before every answer."`
	ListLimit          int           `default:"200" help:"Most elements of a list response."`
	Replay             []string      `type:"existingfile" help:"Serve these recorded responses instead of a grown ledger (JSON arrays; the flag may be repeated)."`
	ReplayFiles        []string      `arg:"" optional:"" name:"file" type:"existingfile" help:"More files for --replay."`
	CheckpointInterval time.Duration `default:"15s" help:"Time between offset checkpoints on an open-ended read."`
	PruneAt            int64         `default:"0" help:"Prune the ledger up to this offset."`
	RestoredAt         int           `default:"0" placeholder:"N" help:"Serve the ledger as if restored from a backup with the first N updates: the later ones at other offsets, and some not at all."`
	State              string        `type:"path" placeholder:"FILE" help:"Record the ledger's size in this file, to continue with the same ledger after a restart."`

	Scan        bool      `default:"true" negatable:"" help:"Serve the updates of the ledger's network and their transaction history too, as a Scan service at /api/scan."`
	ScanOptions scanFlags `embed:"" prefix:"scan-"`

	Secure secure `embed:""`

	All         bool   `help:"Add a throwaway PostgreSQL, a backfill and the indexer, and print what they store."`
	Once        bool   `help:"With --all: stop when the indexer has caught up."`
	DatabaseURL string `placeholder:"URL" help:"With --all: use this database, which must be empty, instead of a throwaway PostgreSQL."`

	version.Flag
}

// shutdownTimeout is how long open-ended reads may take to end before they are cut.
const shutdownTimeout = 5 * time.Second

// run serves until the context is done.
func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	f, err := parse(args, stdout)
	if err != nil {
		return err
	}
	if f.All {
		return f.demo(ctx, stdout)
	}
	if f.Once || f.DatabaseURL != "" {
		return errors.New("--once and --database-url are for --all")
	}
	if err := f.Secure.check(); err != nil {
		return err
	}
	opts, err := f.serverOptions()
	if err != nil {
		return err
	}
	config, err := f.Secure.tlsConfig()
	if err != nil {
		return err
	}
	history, grow, err := f.history()
	if err != nil {
		return err
	}
	opts.Down = ctx.Done()
	if opts.Authority, err = f.Secure.authority(history.ParticipantID()); err != nil {
		return err
	}
	scan, err := f.scan(history, opts.Token)
	if err != nil {
		return err
	}
	handler := withScan(scan, sandbox.NewServer(history, opts))
	work := []func(context.Context) error{grow}
	if f.Secure.Auth {
		handler = withTokens(opts.Authority, handler)
	}
	if f.Secure.WriteTokens != "" {
		if err := f.Secure.writeTokens(opts.Authority); err != nil {
			return err
		}
		tick := time.NewTicker(f.Secure.TokenLifetime / 2)
		defer tick.Stop()
		work = append(work, func(ctx context.Context) error { return f.Secure.keepTokens(ctx, opts.Authority, tick.C) })
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.Listen)
	if err != nil {
		return fmt.Errorf("listen for clients (change --listen if the address is taken): %w", err)
	}
	url := "http://" + listener.Addr().String()
	if config != nil {
		url = "https://" + listener.Addr().String()
	}
	fmt.Fprintf(stdout, "sandbox: %s on %s\n%s%s", f.describe(history), url, describeScan(scan, url),
		f.Secure.howToConnect(url, scan != nil, partiesOf(history)))
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, TLSConfig: config}
	return serve(ctx, server, listener, work...)
}

// parse reads the command line and the environment. --help and --version print and end.
func parse(args []string, stdout io.Writer) (f *flags, err error) {
	f = &flags{}
	build, err := version.Read()
	if err != nil {
		return nil, err
	}
	err = config.ParseTool(f, args, stdout, kong.Name("sandbox"), kong.Vars{"version": build.Line("sandbox")},
		kong.DefaultEnvars("SANDBOX"),
		kong.Description("Serves a simulated ledger participant, and a Scan service of its transaction history, over HTTP."))
	f.Replay = append(f.Replay, f.ReplayFiles...)
	return f, err
}

func (f *flags) serverOptions() (sandbox.ServerOptions, error) {
	opts := sandbox.ServerOptions{
		Version: f.Release, StrictInterface: f.StrictInterface, Latency: f.Latency,
		ListLimit: f.ListLimit, CheckpointInterval: f.CheckpointInterval,
	}
	if f.TokenFile != "" {
		if f.Secure.Auth {
			return opts, errors.New("--token-file is one token for everybody, --auth has one for each user: leave one of " +
				"them out")
		}
		token, err := readSecret("--token-file", f.TokenFile)
		if err != nil {
			return opts, err
		}
		opts.Token = token
	}
	return opts, nil
}

// history returns the history to serve, and the function that makes it grow.
func (f *flags) history() (sandbox.History, func(context.Context) error, error) {
	if len(f.Replay) > 0 {
		if f.PruneAt > 0 || f.Rate > 0 || f.State != "" || f.RestoredAt > 0 {
			return nil, nil, errors.New("--prune-at, --rate, --restored-at and --state are for a grown ledger: leave them " +
				"out, or --replay")
		}
		r, err := sandbox.LoadReplay(f.Replay...)
		return r, func(context.Context) error { return nil }, err
	}
	l, live, err := f.grown()
	if err != nil {
		return nil, nil, err
	}
	if f.RestoredAt > 0 {
		if f.State != "" {
			return nil, nil, errors.New("--state records a ledger as it was grown: leave out --restored-at")
		}
		l.Redeal(f.RestoredAt, f.Seed)
	}
	if err := l.Prune(f.PruneAt); err != nil {
		return nil, nil, fmt.Errorf("--prune-at: %w", err)
	}
	return l, live, nil
}

func (f *flags) options() sandbox.Options {
	return sandbox.Options{Seed: f.Seed, Elsewhere: f.Elsewhere, Believable: f.All}
}

// grown returns the ledger, and the function that makes it grow, which records its size if --state is given.
func (f *flags) grown() (*sandbox.Ledger, func(context.Context) error, error) {
	if f.State != "" {
		s, l, err := growAgain(f.State, f.options(), f.Updates)
		return l, func(ctx context.Context) error { return s.live(ctx, l, f.Rate) }, err
	}
	l := sandbox.NewLedger(f.options())
	l.Grow(f.Updates)
	return l, func(ctx context.Context) error {
		l.RunLive(ctx, f.Rate)
		return nil
	}, nil
}

// describe describes what is served.
func (f *flags) describe(h sandbox.History) string {
	if r, ok := h.(*sandbox.Replay); ok {
		return fmt.Sprintf("replaying %d recorded updates (ledger end %d) and %d active contracts", r.Len(), r.End(),
			r.Entries())
	}
	l := h.(*sandbox.Ledger)
	text := fmt.Sprintf("serving %d updates (ledger end %d) grown from seed %d, as release %s", l.Len(), l.End(), f.Seed,
		f.Release)
	if f.PruneAt > 0 {
		text += fmt.Sprintf(", pruned up to %d", f.PruneAt)
	}
	if f.RestoredAt > 0 {
		text += fmt.Sprintf(", restored from a backup with %d updates", f.RestoredAt)
	}
	if f.Rate > 0 {
		text += fmt.Sprintf(", growing by %g updates a second", f.Rate)
	}
	return text
}

// partiesOf returns the parties of a grown ledger; those of a recording are not known.
func partiesOf(h sandbox.History) []string {
	if l, ok := h.(*sandbox.Ledger); ok {
		return l.Parties()
	}
	return nil
}

// serve serves, and runs the background work, until the context is done; then requests in progress may finish.
func serve(ctx context.Context, server *http.Server, listener net.Listener, work ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, do := range work {
		group.Go(func() error { return do(ctx) })
	}
	group.Go(func() error {
		start := server.Serve
		if server.TLSConfig != nil {
			start = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
		}
		if err := start(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve clients: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		late, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer stop()
		if server.Shutdown(late) != nil {
			return server.Close()
		}
		return nil
	})
	return group.Wait()
}
