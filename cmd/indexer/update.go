package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// updateCommand is `indexer update`: it shows an update as it is stored and as the ledger shows it, and compares the
// two.
type updateCommand struct {
	ID string `arg:"" help:"Update id."`
	config.Database
	config.Sources
	jsonFlag
}

func (c *updateCommand) Validate() error {
	if c.ID == "" {
		return errors.New("the update's id is empty")
	}
	if err := c.Database.Validate(); err != nil {
		return err
	}
	if !c.OfNetwork() {
		return c.Ledger().Validate()
	}
	if len(c.ScanURL) == 0 {
		return errors.New("--scan-url is missing: the updates of a network are those of a Scan service")
	}
	return c.Scan().Validate()
}

type result string

const (
	resultEqual       result = "equal"
	resultDifferent   result = "different"
	resultUnknown     result = "unknown"             // to both
	resultBeyond      result = "beyond_watermark"    // the ledger has it, and indexing has not come so far
	resultBelow       result = "below_history_floor" // the ledger has it from before indexing began
	resultPruned      result = "pruned"              // it is stored, and the participant has pruned it
	resultNotCompared result = "not_compared"        // the ledger could not answer
)

// updateReport is what the command prints; its JSON form is for scripts.
type updateReport struct {
	UpdateID    string             `json:"update_id"`
	Result      result             `json:"result"`
	Explanation string             `json:"explanation"`
	Ledger      updateOnLedger     `json:"ledger"`
	Database    updateStored       `json:"database"`
	Differences []audit.Difference `json:"differences"`

	update *ledger.Update // nil: the ledger does not show it, or could not answer
}

type updateOnLedger struct {
	Found  bool          `json:"found"`
	Pruned ledger.Offset `json:"pruned_offset,omitempty"` // asked where the ledger does not show what is stored
	Error  string        `json:"error,omitempty"`         // why it could not answer
	Raw    ledger.JSON   `json:"raw,omitempty"`           // what it answered
}

type updateStored struct {
	Address      string                   `json:"address"`
	Watermark    ledger.Offset            `json:"watermark"`
	HistoryFloor ledger.Offset            `json:"history_floor"`
	Offsets      []ledger.Offset          `json:"stored_at"` // where an update with this id is stored
	Rows         map[string][]ledger.JSON `json:"rows"`      // by relation, at these offsets and at the ledger's
}

func (c *updateCommand) Run(ctx context.Context, logger *slog.Logger, db *store.Store, out config.Output) error {
	scope, indexed, err := db.Scope(ctx)
	if err != nil {
		return err
	}
	if !indexed {
		return db.NothingIndexed(ctx, "compare with")
	}
	r := updateReport{UpdateID: c.ID, Differences: []audit.Difference{}}
	failed, err := c.compare(ctx, logger, db, scope, &r)
	if err != nil {
		return err
	}
	switch err := c.show(out, &r); {
	case err != nil:
		return err
	case failed != nil:
		return failed
	case r.Result == resultUnknown, r.Result == resultDifferent:
		return fmt.Errorf("update %s: %s", printable(brief(c.ID)), r.Explanation)
	}
	return nil
}

// updateSource is where an update is looked up.
type updateSource struct {
	lookUp
	same func(ctx context.Context, db *store.Store) error // refuses a ledger that the database does not belong to
}

type lookUp interface {
	UpdateOfScope(ctx context.Context, updateID string) (ledger.Update, ledger.JSON, error)
	PrunedOffset(ctx context.Context) (ledger.Offset, error)
	Close()
}

// open opens the participant or, for the updates of a network, the Scan service.
func (c *updateCommand) open(scope ledger.Scope, logger *slog.Logger) (updateSource, error) {
	if c.OfNetwork() {
		network, err := app.OpenNetwork(c.Scan(), logger)
		if err != nil {
			return updateSource{}, err
		}
		return updateSource{network, network.SameNetwork}, nil
	}
	client, err := openLedger(c.Ledger(), scope, logger)
	if err != nil {
		return updateSource{}, err
	}
	return updateSource{client,
		func(ctx context.Context, db *store.Store) error { return sameLedger(ctx, db, client, scope) }}, nil
}

// compare fills the report. A ledger that can't answer is part of it, and its error is returned as failed.
func (c *updateCommand) compare(ctx context.Context, logger *slog.Logger, db *store.Store, scope ledger.Scope,
	r *updateReport) (failed, err error) {
	from, err := c.open(scope, logger)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	asking, cancel := context.WithTimeout(ctx, commandPatience)
	defer cancel()
	update, raw, failed := c.lookUp(asking, logger, db, from)
	var record audit.UpdateRecord
	switch {
	case failed == nil:
		r.Ledger.Found, r.Ledger.Raw, r.update = true, raw, &update
		record, err = audit.New(db).CompareUpdate(ctx, c.ID, &update)
	case errors.Is(failed, ledger.ErrNotFound):
		failed = nil
		record, err = audit.New(db).CompareUpdate(ctx, c.ID, nil)
	default:
		if errors.Is(failed, ledger.ErrNotOffered) {
			failed = &ledger.Problem{
				What: "the server does not offer to look updates up, so nothing was compared", Err: failed,
				Do: "check --ledger-url: it must be the base of the participant's JSON API, with its path prefix where it has " +
					"one; for a network --scan-url, mostly https://HOST/api/scan",
			}
		}
		r.Ledger.Error = errorText(failed)
		record, err = audit.New(db).StoredUpdate(ctx, c.ID)
	}
	if err != nil {
		return nil, err
	}
	r.stored(db.Address(), &record)
	if r.update == nil && failed == nil && len(record.Offsets) > 0 {
		// What is stored may be older than what the participant still has. One that does not report it has not pruned, as far
		// as is known.
		r.Ledger.Pruned, err = from.PrunedOffset(asking)
		if err != nil && !errors.Is(err, ledger.ErrNotOffered) {
			r.Ledger.Error, failed = errorText(err), err
		}
	}
	r.conclude(&record)
	return failed, nil
}

// lookUp asks for the update in the scope in which it is stored. Of one that is not stored, the scope in force says
// where it would be.
func (c *updateCommand) lookUp(ctx context.Context, logger *slog.Logger, db *store.Store,
	from updateSource) (update ledger.Update, raw ledger.JSON, err error) {
	if err := from.same(ctx, db); err != nil {
		return update, raw, err
	}
	at, stored, err := db.UpdateOffset(ctx, c.ID)
	if err == nil && !stored {
		update, raw, err = from.UpdateOfScope(ctx, c.ID)
		at = update.Offset
	}
	if err != nil {
		return update, raw, err
	}
	scope, inForce, _, err := db.ScopeAt(ctx, at-1)
	if err != nil || inForce && !stored {
		return update, raw, err
	}
	if !inForce {
		if from, err = c.open(scope, logger); err != nil {
			return update, raw, err
		}
		defer from.Close()
	}
	return from.UpdateOfScope(ctx, c.ID)
}

func (r *updateReport) stored(address string, record *audit.UpdateRecord) {
	r.Database = updateStored{
		Address: address, Watermark: record.Watermark, HistoryFloor: record.HistoryFloor,
		Offsets: append([]ledger.Offset{}, record.Offsets...), Rows: map[string][]ledger.JSON{},
	}
	for _, row := range record.Rows {
		r.Database.Rows[row.Relation] = append(r.Database.Rows[row.Relation], row.Columns)
	}
	r.Differences = append(r.Differences, record.Differences...)
}

// conclude sets the result of the comparison.
func (r *updateReport) conclude(record *audit.UpdateRecord) {
	say := func(result result, format string, args ...any) {
		r.Result, r.Explanation = result, fmt.Sprintf(format, args...)
	}
	different := 0
	for i := range r.Differences {
		if r.Differences[i].Rendering == nil {
			different++
		}
	}
	switch {
	case r.Ledger.Error != "":
		r.Differences = []audit.Difference{}
		say(resultNotCompared, "not compared: the ledger could not answer")
	case r.update == nil && len(record.Offsets) == 0:
		say(resultUnknown, "neither the ledger nor the database knows it")
	case r.update == nil && slices.Max(record.Offsets) <= r.Ledger.Pruned:
		r.Differences = []audit.Difference{}
		say(resultPruned, "not compared: it is stored, and the participant can't show it because it is pruned up to offset "+
			"%d", r.Ledger.Pruned)
	case r.update == nil:
		say(resultDifferent, "it is stored at offset %d, and the ledger does not show it", record.Offsets[0])
	case different == 1:
		say(resultDifferent, "the database differs from the ledger in one place")
	case different > 1:
		say(resultDifferent, "the database differs from the ledger in %d places", different)
	case record.Beyond:
		say(resultBeyond, "not stored yet: its offset %d is beyond the watermark %d", r.update.Offset, record.Watermark)
	case record.Below:
		say(resultBelow, "not stored: its offset %d is not above %d, the offset after which events are complete",
			r.update.Offset, record.HistoryFloor)
	case record.Redacted != nil:
		say(resultEqual, "stored as the ledger shows it, without its content: %s", printable(record.Redacted.String()))
	default:
		say(resultEqual, "stored as the ledger shows it")
	}
	if rendered := len(r.Differences) - different; rendered > 0 {
		r.Explanation += fmt.Sprintf(
			"; rendered otherwise since: %d interface views (`indexer verify --repair` stores them so)", rendered)
	}
}
