package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
)

// reanchorCommand is `indexer reanchor`: it finds where a restored participant and the database part, and resets to
// there.
type reanchorCommand struct {
	app.Reanchor
	jsonFlag
	Since string `env:"-" placeholder:"OFFSET|DATE|AGE" help:"Compare from this offset, date or time on (2026-01-31, 2026-01-31T12:00:00Z), or from this long before the last update that is stored (7d, 36h): when the backup was taken, or earlier. Default: from the first update that is stored."`
}

func (*reanchorCommand) Help() string {
	return "For a participant that was restored from a backup and has given updates other offsets: compares which " +
		"updates it shows, by their synchronizer, record time and id, and at which offsets, with those that are stored, " +
		"and says where they part, what moved, and what only one of them has. With --apply everything after the last " +
		"offset in common is removed, in one transaction, and the indexer reads it again from there. Stop the indexer before."
}

func (c *reanchorCommand) Validate() error {
	if c.Since != "" {
		since, err := config.ParseBefore(c.Since)
		if err != nil {
			return fmt.Errorf("--since: %w", err)
		}
		c.From = &since
	}
	return c.Database.Validate()
}

func (c *reanchorCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	done, err := app.RunReanchor(ctx, c.Reanchor, logger)
	if err != nil {
		return err
	}
	done.Missing = append([]ledger.UpdateRef{}, done.Missing...) // not null in JSON
	return c.show(out, &reanchorReport{done})
}

// reanchorReport is what the command prints.
type reanchorReport struct{ app.Reanchored }

func (r *reanchorReport) print(out io.Writer) error {
	if !r.Parted {
		fmt.Fprintf(out, "the participant has what is stored after offset %d, at the same offsets: %d updates. There is "+
			"nothing to do\n", r.From, r.Equal)
		return nil
	}
	if err := printDivergence(out, &r.Reanchored); err != nil {
		return err
	}
	if r.Reset == nil {
		fmt.Fprintf(out, "\nwhat is after offset %d would be removed, and read again by the indexer; nothing was changed: "+
			"add --apply\n", r.To)
		return nil
	}
	fmt.Fprintf(out, "\nthe watermark went back from offset %d to %d: start the indexer, it reads on from there\n",
		r.Reset.From, r.To)
	return nil
}

func printDivergence(out io.Writer, p *app.Reanchored) error {
	fmt.Fprintf(out, "%d updates after offset %d up to %d are at the same offsets; after it they part:\n", p.Equal, p.From,
		p.Common)
	fmt.Fprintf(out, "  the database has %s\n  the participant has %s\n\n", describeRef(p.Stored), describeRef(p.Served))
	table := newTable(out, fmt.Sprintf("AFTER OFFSET %d", p.Common), "UPDATES")
	row(table, "both have, at other offsets", fmt.Sprint(p.Moved))
	row(table, "both have, at the same offset", fmt.Sprint(p.Kept))
	row(table, "only the participant has", fmt.Sprint(p.New))
	row(table, "only the database has", fmt.Sprint(p.Lost))
	if err := table.Flush(); err != nil {
		return err
	}
	if p.Later > 0 {
		fmt.Fprintf(out, "\n%d of those that only the database has were recorded after the last that the participant shows "+
			"of their synchronizer: it may receive them yet\n", p.Later)
	}
	for i := range p.Missing {
		if i == 0 {
			fmt.Fprintf(out, "\n%d that only the database has are lost with it; the first are\n", p.Lost-p.Later)
		}
		fmt.Fprintf(out, "  %s\n", describeRef(&p.Missing[i]))
	}
	return nil
}

// describeRef describes an update in a report.
func describeRef(u *ledger.UpdateRef) string {
	if u == nil {
		return "none"
	}
	at := "at no time"
	if !u.RecordTime.IsZero() {
		at = u.RecordTime.Format(time.RFC3339Nano)
	}
	return fmt.Sprintf("%s at offset %d, recorded %s on %s", printable(u.ID), u.Offset, at,
		printable(brief(u.SynchronizerID)))
}
