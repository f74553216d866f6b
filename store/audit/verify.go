package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/pg"
)

// Verification compares what a database holds with what it was read from, and with itself, and repairs what differs if
// there is a Repairer. Its parts (Updates, Transactions, and the methods of Database) run one after the other.
type Verification struct {
	Database *Stored
	Repairer *Repairer        // nil: nothing is written
	Differs  func(Difference) // is called once for each difference
	Progress func(Progress)
	Logger   *slog.Logger
	Report

	step        string // that is under way
	steps       int    // that were begun
	found, left differences
}

// Report is what a verification has found so far. Its JSON form is for scripts.
type Report struct {
	Differences int64 `json:"differences_found"`
	// interface views, and what followed from them; these are no differences
	Rendered int64    `json:"rendered_otherwise"`
	Left     int64    `json:"-"`            // differences that are there after a repair
	Notes    []string `json:"not_compared"` // what was not compared, and why
}

// Progress is the progress of a step of the verification.
type Progress struct {
	Step     string // what is compared, for messages
	Done, Of int64  // in offsets, entries or records; Of is 0 if it is not known
}

// Begin says what is done next, or how far that has come.
func (v *Verification) Begin(p Progress) {
	if p.Step != v.step {
		v.step, v.steps = p.Step, v.steps+1
	}
	v.Progress(p)
}

func (v *Verification) begin(step string) { v.Begin(Progress{Step: step}) }

// Found counts a difference, and calls Differs, unless another step has found it.
func (v *Verification) Found(d Difference) {
	if v.found.before(d, v.steps) {
		return
	}
	if d.Rendering == nil {
		v.Differences++
	} else {
		v.Rendered++
	}
	v.Differs(d)
}

// leaves counts a difference that no repair mends, and reports whether it was not counted before. A view that is
// rendered otherwise is none, also where it can't be read again.
func (v *Verification) leaves(d Difference) bool {
	if d.Rendering != nil || v.left.before(d, v.steps) {
		return false
	}
	v.Left++
	return true
}

// remains counts a difference that is there after a repair.
func (v *Verification) remains(d Difference) {
	if v.leaves(d) {
		v.Logger.Warn("still different after it was repaired", "difference", d.String())
	}
}

// Note notes what was not compared, and why.
func (v *Verification) Note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(v.Notes, note) { // after a repair all is compared again
		v.Notes = append(v.Notes, note)
	}
}

// mostRemembered is how many differences are remembered. Later ones may be reported by more than one step.
const mostRemembered = 50_000

// differences are those that were found, with the number of the step that found them.
type differences map[sameness]int

// sameness identifies a difference, whichever step of the verification finds it.
type sameness struct {
	kind                  Disagreement
	relation, row, column string
	offset                ledger.Offset
	seq                   int64
	rendered              bool
}

// before reports whether another step found a difference before. For example, a contract that should not be active
// follows from no fact, and is not in the participant's snapshot either. Equal differences of one step are different
// rows of a table without a key.
func (f *differences) before(d Difference, step int) bool {
	if *f == nil {
		*f = differences{}
	}
	is := sameness{d.Kind, d.Relation, d.Row, d.Column, d.Offset, d.Seq, d.Rendering != nil}
	first, known := (*f)[is]
	if !known && len(*f) < mostRemembered {
		(*f)[is] = step
	}
	return known && first != step
}

// maxOffset stands for the end of what is stored, wherever that is.
const maxOffset ledger.Offset = math.MaxInt64

// indexed reads how much of the ledger the database claims to hold, and fails where that is nothing.
func indexed(ctx context.Context, db *store.Store) (store.Extent, error) {
	extent, err := db.Extent(ctx)
	if err == nil && !extent.Started {
		err = &ledger.Problem{What: "nothing has been indexed into the database yet, so there is nothing to verify",
			Do: "let the indexer, or a backfill, begin"}
	}
	return extent, err
}

// errTransactionsChanged is the error for a service that changed while it was read.
var errTransactionsChanged = errors.New("the service of the transaction history served other records in the same " +
	"place than before: it changed while it was read; verify again")

// mostTries is how often something is tried before verification gives up, which takes about two minutes.
const mostTries = 10

// Retry tries until fn succeeds, its error is lasting, or it has failed mostTries times. Verification is a command:
// unlike the daemon it does not wait for ever.
func Retry(ctx context.Context, logger *slog.Logger, fn func() error) error {
	retry := ingest.Retry{Logger: logger, Most: mostTries, Final: final}
	return retry.Do(ctx, func(context.Context) error { return fn() })
}

// withRetry is Retry for a function that returns a value.
func withRetry[T any](ctx context.Context, logger *slog.Logger, ask func() (T, error)) (answer T, err error) {
	err = Retry(ctx, logger, func() (err error) {
		answer, err = ask()
		return err
	})
	return answer, err
}

// repair is Retry for a repair, but does not repeat one that has exceeded its time limit: it would again.
func (v *Verification) repair(ctx context.Context, repair func() error) (err error) {
	defer pg.Wrap(&err, "repair")
	retry := ingest.Retry{Logger: v.Logger, Most: mostTries,
		Final: func(err error) bool { return final(err) || errors.Is(err, context.DeadlineExceeded) }}
	return retry.Do(ctx, func(context.Context) error { return repair() })
}

// final reports whether an error is permanent, or means something that the caller handles.
func final(err error) bool {
	return ingest.Lasting(err) || errors.Is(err, ledger.ErrNotOffered) || errors.Is(err, ledger.ErrNotFound) ||
		errors.Is(err, errTransactionsChanged) || errors.Is(err, errScopeChanged)
}
