package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"ledgerindexer/internal/config"
)

// flags are the command line.
type flags struct {
	Only        []string      `sep:"," placeholder:"PART" help:"Parts to run: ${parts}. Default: all of them but sql, which is run alone."`
	Runs        int           `default:"5" help:"How often each measurement is repeated; the median counts. Default: ${default}."`
	Out         string        `type:"path" placeholder:"FILE" help:"Write the report into this file, below its mark; with --only what it has of other parts stays. Default: standard output."`
	Data        string        `type:"path" placeholder:"DIR" help:"Keep the simulated ledgers in this folder, and reuse existing ones. Default: make new ones and remove them."`
	Profile     string        `type:"path" placeholder:"DIR" help:"Write CPU and allocation profiles of each of the indexer's runs into this folder."`
	Programs    string        `type:"existingdir" placeholder:"DIR" help:"Measure the indexer and backfill in this folder. Default: build them."`
	IndexerFlag []string      `sep:"none" placeholder:"FLAG" help:"One more flag for indexer run, such as --max-requests=4. May be repeated."`
	WarmUp      int           `default:"2000" placeholder:"MB" help:"Write this much of PostgreSQL's log before measuring. Default: ${default}."`
	Fsync       bool          `default:"true" negatable:"" help:"Have PostgreSQL wait for its disk, as it does. --no-fsync is for trying the benchmark: what it measures is worth nothing."`
	Servers     []string      `sep:"," placeholder:"SERVER" help:"Servers to catch up with: ${servers}. Default: all of them."`
	Limit       bool          `default:"true" negatable:"" help:"Measure what psql makes of the same rows."`
	Updates     int           `default:"500000" help:"Updates of a catch-up. Default: ${default}."`
	Contracts   int           `default:"1000000" help:"Active contracts of a snapshot. Default: ${default}."`
	Records     int           `default:"1000000" help:"Records of a transaction history. Default: ${default}."`
	Growth      int           `default:"8000000" help:"Updates of the measurement of growth. Default: ${default}."`
	Cold        bool          `default:"true" negatable:"" help:"Ask each question in SQL after a restart of PostgreSQL too."`
	Scale       float64       `default:"1" help:"Size of the database that is asked in SQL: 1 has two million creations and as many transfers. Default: ${default}."`
	TailTime    time.Duration `default:"1m" help:"How long the tail is measured at each rate. Default: ${default}."`

	Setting map[string]string `mapsep:"none" placeholder:"NAME=VALUE" help:"One more setting of PostgreSQL, such as max_wal_size=4GB, to see what it brings. May be repeated."`
}

// part is a measurement that can be run alone.
type part struct {
	name string
	run  func(*harness, context.Context) error
}

var parts = []part{
	{"catchup", (*harness).catchup},
	{"shapes", (*harness).shapes},
	{"memory", (*harness).memory},
	{"snapshot", (*harness).snapshot},
	{"history", (*harness).history},
	{"network", (*harness).network},
	{apartName, (*harness).apart},
	{"growth", (*harness).growth},
	{"tail", (*harness).tail},
	{"network-tail", (*harness).networkTail},
	{sqlName, (*harness).sql},
}

func partNames() []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// asks reports whether the part sql is to be run.
func (f *flags) asks() bool { return slices.Contains(f.Only, sqlName) }

// report returns the empty report of the parts to be run.
func (f *flags) report() *report {
	if f.asks() {
		return &report{command: "make bench-sql", title: "Questions in SQL: goals"}
	}
	return &report{command: "make bench", title: "Targets", inPieces: len(f.Only) > 0}
}

// Validate refuses unknown parts and servers, and invalid counts.
func (f *flags) Validate() error {
	for _, name := range f.Only {
		if !slices.Contains(partNames(), name) {
			return fmt.Errorf("--only: there is no part %q: choose from %s", name, strings.Join(partNames(), ", "))
		}
	}
	for _, name := range f.Servers {
		if !slices.Contains(variantNames(), name) {
			return fmt.Errorf("--servers: there is no server %q: choose from %s", name, strings.Join(variantNames(), ", "))
		}
	}
	if f.asks() && len(f.Only) > 1 {
		return fmt.Errorf("--only: the part %s has a report of its own: run it alone", sqlName)
	}
	if !(f.Scale > 0 && f.Scale <= 100) {
		return errors.New("--scale must be above 0, and at most 100")
	}
	if min(f.Runs, f.Updates, f.Contracts, f.Records, f.Growth) < 1 || f.TailTime <= 0 || f.WarmUp < 0 {
		return errors.New("--runs and how many of something there are must be at least 1, --warm-up at least 0 and " +
			"--tail-time more than that")
	}
	return nil
}

// Main runs the command, or one of its helper processes, and returns the exit code.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	code, err := 0, error(nil)
	switch {
	case len(args) == 2 && args[0] == serveCommand:
		err = serve(ctx, args[1], stdin, stdout)
	case len(args) > 3 && args[0] == profileCommand:
		code, err = profiled(ctx, args[1], args[2], args[3:], stdout, stderr)
	default:
		err = measureAll(ctx, args, stdout, stderr)
	}
	if err != nil && !errors.Is(err, config.ErrHelp) {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return max(code, 1)
	}
	return code
}

// measureAll runs the selected parts, and writes the report after each.
func measureAll(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	f, err := parse(args, stdout)
	if err != nil {
		return err
	}
	h, err := newHarness(ctx, f, func(format string, args ...any) {
		fmt.Fprintf(stderr, "%s %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	for _, p := range parts {
		if chosen := slices.Contains(f.Only, p.name); !chosen && (len(f.Only) > 0 || p.name == sqlName) {
			continue
		}
		began := time.Now()
		if err := p.run(h, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		h.say("%s: done in %v", p.name, time.Since(began).Round(time.Second))
		if f.Out != "" {
			if err := h.report.write(f.Out); err != nil {
				return err
			}
		}
	}
	if f.Out == "" {
		_, err = io.WriteString(stdout, h.report.text(""))
	}
	return err
}

// parse reads the command line. --help prints and ends.
func parse(args []string, stdout io.Writer) (*flags, error) {
	f := &flags{}
	return f, config.ParseTool(f, args, stdout, kong.Name("bench"), kong.Description("Measures the indexer against what "+
		"PostgreSQL can take at all."),
		kong.Vars{"parts": strings.Join(partNames(), ", "), "servers": strings.Join(variantNames(), ", ")})
}
