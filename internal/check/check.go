// Package check looks at everything that the indexer depends on, one step after the other: the ledger, who we are to it
// and what may be read, where it stands, the Scan service, the database, the clocks. Each step says what is right, what
// is wrong and what to do. It only reads: nothing is changed anywhere.
package check

import (
	"context"
	"slices"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/access"
	"ledgerindexer/ledger"
)

// Config says what to look at. Of what is empty the report says that it is not configured.
type Config struct {
	LedgerURL    string
	LedgerAccess access.Config
	ScanURL      string
	ScanAccess   access.Config
	DatabaseURL  string
	Scope        ledger.Scope
	Start        ingest.Start // where a daemon would begin in an empty database
	NoMigrate    bool         // a daemon would not bring the schema up to date

	// Args and BackfillArgs are the arguments, quoted for a shell, with which `indexer run` and `backfill` are to be called
	// where the report proposes them. They hold no secrets.
	Args, BackfillArgs []string
	// Patience bounds each step; 0 means 10 s.
	Patience time.Duration
}

// checker goes through the steps. Later ones see what earlier ones found.
type checker struct {
	cfg      Config
	patience time.Duration
	report   *Report

	ledger ledgerState
	scan   scanState
	clocks []clock
	stored storedState
	redact []func(string) string // take out the secrets that are known
}

// Run looks at everything and reports. It goes on after a failure wherever what comes next still makes sense.
func Run(ctx context.Context, cfg Config) Report {
	if cfg.Patience <= 0 {
		cfg.Patience = 10 * time.Second
	}
	c := &checker{cfg: cfg, patience: cfg.Patience, report: &Report{Findings: []Finding{}, Next: []string{}}}
	c.checkLedger(ctx)
	if c.ledger.client != nil {
		defer c.ledger.client.Close()
	}
	c.checkScan(ctx)
	c.checkDatabase(ctx)
	c.checkStart()
	c.keepScope()
	c.checkClocks()
	c.goOn()
	// What is asked of the ledger depends on the token, and the other way round: put together what belongs together.
	slices.SortStableFunc(c.report.Findings, func(a, b Finding) int {
		return slices.Index(groups, a.Group) - slices.Index(groups, b.Group)
	})
	c.hideSecrets()
	return *c.report
}

// hideSecrets: a server may send back what it got, as whatever it tells.
func (c *checker) hideSecrets() {
	for _, redact := range c.redact {
		for i := range c.report.Findings {
			f := &c.report.Findings[i]
			f.Text, f.Do = redact(f.Text), redact(f.Do)
			for n, line := range f.Paste {
				f.Paste[n] = redact(line)
			}
		}
	}
}

func (c *checker) section(group string) section { return section{report: c.report, group: group} }

// step bounds a step.
func (c *checker) step(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.patience)
}
