package main

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"ledgerindexer/internal/check"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
)

// checkCommand takes the settings of run. None is required: what is missing is reported as not configured.
type checkCommand struct {
	LedgerURL    string        `placeholder:"URL" help:"Base URL of the participant's JSON Ledger API."`
	LedgerAccess config.Access `embed:"" prefix:"ledger-"`
	ScanURL      string        `placeholder:"URL" help:"Base URL of the Scan service."`
	ScanAccess   config.Access `embed:"" prefix:"scan-"`
	DatabaseURL  string        `placeholder:"URL" help:"PostgreSQL database, postgres://user@host/name."`
	config.Scope
	JSON bool `name:"json" env:"-" help:"Print JSON."`
}

// Run looks at everything and prints what it found.
func (c *checkCommand) Run(ctx context.Context, parsed *kong.Context, out config.Output) error {
	report := check.Run(ctx, check.Config{
		LedgerURL: c.LedgerURL, LedgerAccess: c.LedgerAccess.Domain("ledger"),
		ScanURL: c.ScanURL, ScanAccess: c.ScanAccess.Domain("scan"),
		DatabaseURL: c.DatabaseURL, Scope: c.Domain(), Args: givenFlags(parsed, "run"),
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := printReport(out, report, c.JSON); err != nil {
		return err
	}
	if report.Problems > 0 {
		return &ledger.Problem{What: "the check found what keeps the indexer from running", Do: "do what stands beneath each problem, and run the check again"}
	}
	return nil
}

func printReport(out config.Output, report check.Report, asJSON bool) error {
	if !asJSON {
		return report.Print(out)
	}
	return writeReport(out, report)
}

// givenFlags are the flags of the command line that another command takes too, quoted for a shell. What came from the
// environment is there for that command as well; secrets are never on the command line.
func givenFlags(parsed *kong.Context, command string) (args []string) {
	taken := map[string]bool{}
	for _, node := range parsed.Model.Children {
		if node.Name == command {
			for _, flags := range node.AllFlags(false) {
				for _, flag := range flags {
					taken[flag.Name] = true
				}
			}
		}
	}
	seen := map[string]bool{}
	for _, path := range parsed.Path {
		if path.Flag == nil || !taken[path.Flag.Name] || seen[path.Flag.Name] {
			continue
		}
		seen[path.Flag.Name] = true
		args = append(args, flagWords(path.Flag)...)
	}
	return args
}

// flagWords is a flag as it is written on a command line. Its value stands in the same word, and may begin with a dash.
func flagWords(flag *kong.Flag) []string {
	switch value := flag.Target; value.Kind() {
	case reflect.Bool:
		if value.Bool() {
			return []string{"--" + flag.Name}
		}
		return []string{"--no-" + flag.Name}
	case reflect.Slice:
		var items []string
		for i := range value.Len() {
			items = append(items, fmt.Sprint(value.Index(i).Interface()))
		}
		return []string{"--" + flag.Name + "=" + config.ShellWord(strings.Join(items, ","))}
	default:
		return []string{"--" + flag.Name + "=" + config.ShellWord(fmt.Sprint(value.Interface()))}
	}
}
