package check

import (
	"strings"

	"ledgerindexer/ingest"
)

// proposeNext proposes the next commands, if there is no problem.
func (c *checker) proposeNext() {
	reads := c.ledger.because == "" && c.ledger.reads
	if c.cfg.LedgerURL == "" {
		reads = c.scan.reads
	}
	if c.report.Problems > 0 || !reads || !c.stored.usable {
		return
	}
	run := command("indexer run", c.cfg.Args)
	pruned := c.ledger.pruned != nil && *c.ledger.pruned > 0 && c.cfg.Start == ingest.Start{}
	switch {
	case c.cfg.LedgerURL != "" && (c.stored.status.Snapshot != nil || c.stored.empty && pruned):
		c.report.Next = []string{command("backfill", c.cfg.BackfillArgs), run}
	default:
		c.report.Next = []string{run}
	}
}

func command(name string, args []string) string {
	return strings.TrimSpace(name + " " + strings.Join(args, " "))
}
