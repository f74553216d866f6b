package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// verifyCommand is `indexer verify`: it compares what is stored with the ledger and with itself, and repairs it.
type verifyCommand struct {
	config.Database
	optionalSources
	config.RequestLimits
	config.Verify
	Show int `default:"100" env:"-" placeholder:"N" help:"Print this many differences; the rest is counted. Default: ${default}."`
	jsonFlag
}

// Validate refuses contradictions. Those within the settings that are embedded are refused by these.
func (c *verifyCommand) Validate() error {
	if c.Show < 0 {
		return fmt.Errorf("--show must be at least 0, not %d", c.Show)
	}
	if c.Offline {
		return nil
	}
	if c.OfNetwork() && len(c.ScanURL) == 0 {
		return errors.New("--scan-url is missing: the updates of a network are compared with those of a Scan service")
	}
	return config.Sources(c.optionalSources).Validate()
}

// verifyReport is what the command prints; its JSON form is for scripts.
type verifyReport struct {
	Result result `json:"result"` // equal, repaired, different or not_compared
	Error  string `json:"error,omitempty"`
	app.VerifyResult
	Left      int64                `json:"differences_remaining"`
	Relations []relationDifference `json:"by_relation"`
	First     []audit.Difference   `json:"differences"`

	repairs bool
}

type relationDifference struct {
	Relation string             `json:"relation"`
	Kind     audit.Disagreement `json:"kind"`
	Count    int64              `json:"count"`
}

const resultRepaired result = "repaired"

func (c *verifyCommand) Run(ctx context.Context, logger *slog.Logger, out config.Output) error {
	r := verifyReport{First: []audit.Difference{}, Relations: []relationDifference{}, repairs: c.Repair}
	counts := map[relationDifference]int64{}
	cfg := app.VerifyConfig{Database: c.Database, Sources: config.Sources(c.optionalSources),
		RequestLimits: c.RequestLimits, Verify: c.Verify}
	verified, err := app.RunVerify(ctx, cfg, logger, func(d audit.Difference) {
		if d.Rendering == nil {
			counts[relationDifference{Relation: d.Relation, Kind: d.Kind}]++
		}
		if len(r.First) == c.Show {
			return
		}
		r.First = append(r.First, d)
		if !c.JSON {
			fmt.Fprintln(out, harmless(d.String()))
		}
	})
	for d, n := range counts {
		d.Count = n
		r.Relations = append(r.Relations, d)
	}
	slices.SortFunc(r.Relations, func(a, b relationDifference) int {
		return cmp.Or(cmp.Compare(a.Relation, b.Relation), cmp.Compare(a.Kind, b.Kind))
	})
	r.VerifyResult = verified
	r.Notes = append([]string{}, verified.Notes...)
	r.conclude(c, err)
	if c.JSON {
		if written := writeReport(out, r); written != nil {
			return written
		}
	} else if written := r.print(out); written != nil {
		return written
	}
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("stopped before everything was compared")
	case err != nil:
		return err
	case r.Left > 0:
		return fmt.Errorf("%d differences; %s", r.Left, r.advice(c))
	case r.Result == resultNotCompared:
		return errors.New("nothing " + r.chosen() + "was compared with the ledger, so it is not known whether the database " +
			"is equal; what was not compared is listed with the reason")
	}
	return nil
}

func (r *verifyReport) conclude(c *verifyCommand, err error) {
	r.Left = r.Remaining(c.Repair)
	switch {
	case err != nil:
		r.Result, r.Error = resultNotCompared, errorText(err)
	case r.Left > 0:
		r.Result = resultDifferent
	case r.Differences > 0:
		r.Result = resultRepaired
	case !r.Compared():
		r.Result = resultNotCompared
	default:
		r.Result = resultEqual
	}
}

func (r *verifyReport) advice(c *verifyCommand) string {
	all := "`indexer verify --all"
	if c.Network {
		all = "`indexer verify --network --all"
	}
	switch {
	case r.Contradictions > 0:
		return "nothing is repaired by rows that contradict one another: restore what is wrong from a backup of the " +
			"database, or index into a new one beside it (docs/operations.md)"
	case c.Offline:
		return all + " --repair` writes again what the ledger still has; what it has not is to be restored from a backup " +
			"of the database"
	case c.Repair:
		return "they could not be repaired: see the log, and docs/operations.md"
	case c.All:
		return all + " --repair` writes again what differs"
	default:
		return all + "` looks at everything, and with --repair writes again what differs"
	}
}

// print prints the report. The differences were printed as they were found.
func (r *verifyReport) print(out config.Output) error {
	l := newLabelled(out)
	if more := r.Differences + r.Rendered - int64(len(r.First)); more > 0 {
		fmt.Fprintf(out, "... and %d more\n", more)
	}
	if u := r.Updates; u != nil {
		l.say("updates", fmt.Sprintf("%d read again, of the offsets after %d up to %d", u.Updates, u.HistoryFloor,
			u.Watermark))
		if u.Seed != 0 {
			l.say("", fmt.Sprintf("at random: --seed %d chooses the same places again", u.Seed))
		}
		if u.Carried > 0 {
			l.say("snapshot", fmt.Sprintf("%d entries of the snapshot that is carried", u.Carried))
		}
		if u.Active > 0 {
			l.say("active contracts", fmt.Sprintf("%d at offset %d", u.Active, u.ActiveAt))
		}
	}
	if h := r.Transactions; h != nil {
		l.say("transactions", fmt.Sprintf("%d records read again", h.Records))
	}
	if r.Amulets != nil {
		l.say("amulets", sumsText(r.Amulets))
	}
	if r.Sealed > 0 {
		l.say("sealed windows", fmt.Sprint(r.Sealed))
	}
	if r.RedactedContracts+r.RedactedUpdates > 0 {
		l.say("redacted", fmt.Sprintf("%d contracts and %d updates, compared without what was erased", r.RedactedContracts,
			r.RedactedUpdates))
	}
	for _, note := range r.Notes {
		l.say("not compared", note)
	}
	if r.Rendered > 0 {
		l.say("rendered otherwise", fmt.Sprintf("%d interface views, which the ledger computes when it is asked, or what "+
			"follows from them: no difference%s", r.Rendered, r.refreshed()))
	}
	for _, d := range r.Relations {
		l.say("difference", fmt.Sprintf("%s: %d %s", d.Relation, d.Count, d.Kind))
	}
	switch r.Result {
	case resultEqual:
		l.say("result", "equal"+r.exceptions())
	case resultRepaired:
		l.say("result", fmt.Sprintf("%d differences were found and repaired", r.Differences))
	case resultDifferent:
		l.say("result", fmt.Sprintf("%d differences", r.Left))
	case resultNotCompared:
		if r.Error != "" {
			l.say("result", "not everything was compared (see the error)")
		} else {
			l.say("result", "nothing "+r.chosen()+"was compared with the ledger")
		}
	}
	return l.w.Flush()
}

// chosen names what was to be compared, where nothing of that was.
func (r *verifyReport) chosen() string {
	if r.Updates != nil && r.Updates.Unread && r.Updates.Compared {
		return "of the range that was chosen "
	}
	return ""
}

// refreshed says what becomes of views that are rendered otherwise.
func (r *verifyReport) refreshed() string {
	if r.repairs {
		return "; they were stored as it shows them now"
	}
	return " (--repair stores them as it shows them now)"
}

// exceptions qualifies a result that does not hold for everything.
func (r *verifyReport) exceptions() string {
	if len(r.Notes) == 0 {
		return ""
	}
	return " in what was compared"
}

// sumsText says whether the sums of a network's updates agree.
func sumsText(a *store.AmuletSums) string {
	text := fmt.Sprintf("%d updates, each of which creates and burns what it archives and mints",
		a.Updates-a.Unbalanced-a.Unproved)
	if a.Unproved > 0 {
		text += fmt.Sprintf("; %d of which something is not stored, or was redacted", a.Unproved)
	}
	if a.Unbalanced > 0 {
		text += fmt.Sprintf("; %d whose sums do not agree: the first is %s at offset %d (see network.amulet_sums)",
			a.Unbalanced, a.FirstID, a.First)
	}
	return text
}
