package check

import "strings"

// goOn proposes the commands that come next, where nothing is in the way.
func (c *checker) goOn() {
	if c.report.Problems > 0 || c.ledger.because != "" || !c.ledger.reads || !c.stored.usable {
		return
	}
	run, backfill := c.command("indexer run"), c.command("backfill")
	pruned := c.ledger.pruned != nil && *c.ledger.pruned > 0
	switch {
	case c.stored.contents.Snapshot != nil, c.stored.empty && pruned:
		c.report.Next = []string{backfill, run}
	default:
		c.report.Next = []string{run}
	}
}

func (c *checker) command(name string) string {
	return strings.TrimSpace(name + " " + strings.Join(c.cfg.Args, " "))
}
