package main

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/check"
	"ledgerindexer/ledger"
)

// daemonFlags are those of run, of which none is required.
type daemonFlags struct {
	optionalSources
	DatabaseURL string `placeholder:"URL" help:"PostgreSQL database, postgres://user@host/name."`
	config.Schemas
	config.Scope
	Daemon struct {
		config.Run
		config.RequestLimits
		config.Profile
		config.Traces
	} `embed:""`
}

// checkCommand takes every flag of run. What is missing is reported as not configured.
type checkCommand struct {
	Of daemonFlags `embed:""`
	jsonFlag
}

func (c *checkCommand) Run(ctx context.Context, parsed *kong.Context, out config.Output) error {
	start, err := ingest.ParseStart(c.Of.Daemon.Start)
	if err != nil {
		return &config.UsageError{Err: err}
	}
	args, err := givenFlags(parsed, &struct {
		app.Indexer
		config.File
		config.Log
	}{})
	if err != nil {
		return err
	}
	backfillArgs, err := givenFlags(parsed, &struct {
		app.Backfill
		config.File
		config.Log
	}{})
	if err != nil {
		return err
	}
	cfg := check.Config{
		LedgerURL: c.Of.LedgerURL, LedgerAccess: c.Of.LedgerAccess,
		ScanAgree: c.Of.ScanAgree, ScanAccess: c.Of.ScanAccess, ScanHistory: c.Of.Daemon.ScanHistory,
		DatabaseURL: c.Of.DatabaseURL, Schemas: c.Of.Schemas.Domain(), Scope: c.Of.Scope.Domain(), Start: start,
		NoMigrate:   c.Of.Daemon.Migrate != "auto",
		ChangeScope: c.Of.Daemon.ChangeScope,
		Args:        args, BackfillArgs: backfillArgs,
	}
	if len(c.Of.ScanURL) > 0 {
		cfg.ScanURL, cfg.OtherScans = c.Of.ScanURL[0], c.Of.ScanURL[1:]
	}
	report := check.Run(ctx, cfg)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := printReport(out, report, c.JSON); err != nil {
		return err
	}
	if report.Problems > 0 {
		return &ledger.Problem{What: "the check found what keeps the indexer from running", Do: "do what stands beneath " +
			"each problem, and run the check again"}
	}
	return nil
}

func printReport(out config.Output, report check.Report, asJSON bool) error {
	if !asJSON {
		return report.Print(out)
	}
	return writeReport(out, report)
}

// givenFlags returns the flags of the command line that another program accepts too, quoted for a shell. That program's
// flags are the fields of a struct. It leaves out flags from the environment, which that program will see too; secrets
// are never on the command line.
func givenFlags(parsed *kong.Context, program any) (args []string, err error) {
	other, err := kong.New(program)
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, flag := range other.Model.Flags {
		taken[flag.Name] = true
	}
	seen := map[string]bool{}
	for _, path := range parsed.Path {
		if path.Flag == nil || path.Resolved || !taken[path.Flag.Name] || seen[path.Flag.Name] {
			continue
		}
		seen[path.Flag.Name] = true
		args = append(args, flagWords(path.Flag)...)
	}
	return args, nil
}

// flagWords returns a flag as written on a command line. Its value is in the same word, because it may begin with a
// dash.
func flagWords(flag *kong.Flag) []string {
	value := flag.Target
	text := fmt.Sprint(value.Interface())
	switch value.Kind() {
	case reflect.Bool:
		if value.Bool() {
			return []string{"--" + flag.Name}
		}
	case reflect.Slice:
		var items []string
		for i := range value.Len() {
			items = append(items, fmt.Sprint(value.Index(i).Interface()))
		}
		text = strings.Join(items, ",")
	}
	return []string{"--" + flag.Name + "=" + config.ShellWord(text)}
}
