// Package check checks everything that the indexer depends on, step by step: the participant, the token, the scope and
// the ledger's position, the Scan service, the database, the clocks. Each step reports what is right, what is wrong and
// what to do. It only reads and changes nothing.
package check

import (
	"context"
	"slices"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// Config says what to check. The report notes an empty setting as not configured.
type Config struct {
	LedgerURL    string
	LedgerAccess access.Config
	ScanURL      string
	OtherScans   []string // further services of the same network
	ScanAgree    int      // how many have to agree; 0 counts as 1
	ScanAccess   access.Config
	ScanHistory  config.ScanHistory
	DatabaseURL  string
	Schemas      store.Schemas
	Scope        ledger.Scope
	Start        ingest.Start // where a daemon would begin in an empty database
	NoMigrate    bool         // a daemon would not bring the schema up to date
	ChangeScope  bool         // a daemon would put Scope in force

	// Args and BackfillArgs are the arguments, quoted for a shell, of the commands `indexer run` and `backfill` that the
	// report proposes. They contain no secrets.
	Args, BackfillArgs []string
	// Timeout limits each step; 0 means 10 s.
	Timeout time.Duration
}

// checker runs the steps. Later ones use the results of earlier ones.
type checker struct {
	cfg     Config
	timeout time.Duration
	report  *Report

	ledger ledgerState
	scan   scanState
	clocks []clock
	stored storedState
	redact []func(string) string // each removes known secrets
}

// Run runs all checks. After a failure it skips only the checks that depend on what failed.
func Run(ctx context.Context, cfg Config) Report {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	c := &checker{cfg: cfg, timeout: cfg.Timeout, report: &Report{Findings: []Finding{}, Next: []string{}}}
	c.checkLedger(ctx)
	if c.ledger.client != nil {
		defer c.ledger.client.Close()
	}
	c.checkScan(ctx)
	c.checkDatabase(ctx)
	c.checkStart()
	c.checkClocks()
	c.proposeNext()
	// The checks of ledger and token depend on each other and alternate: group their findings.
	slices.SortStableFunc(c.report.Findings, func(a, b Finding) int {
		return slices.Index(groups, a.Group) - slices.Index(groups, b.Group)
	})
	c.hideSecrets()
	return *c.report
}

// hideSecrets removes secrets from the findings: a server may echo what it received.
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

// step returns a context with the timeout of a step.
func (c *checker) step(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout)
}
