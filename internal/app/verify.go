package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// VerifyConfig is the configuration of a verification.
type VerifyConfig struct {
	config.Database
	config.Sources
	config.RequestLimits
	config.Verify
}

// VerifyResult says what was compared, with which result.
type VerifyResult struct {
	Updates      *audit.UpdatesResult      `json:"updates"`      // nil: the updates were not compared
	Transactions *audit.TransactionsResult `json:"transactions"` // nil: the transaction history was not compared
	// of the updates of a network; nil: they were not added up
	Amulets *store.AmuletSums `json:"amulet_sums,omitempty"`
	Sealed  int64             `json:"sealed_windows"` // windows whose digest was compared
	audit.Report
	Contradictions int64 `json:"-"` // in what is held, which a repair leaves

	// What was redacted, and so was compared without what was erased.
	RedactedContracts int64 `json:"redacted_contracts"`
	RedactedUpdates   int64 `json:"redacted_updates"`
}

// Compared reports whether anything was compared with the source, or with the digests of what was compared before; of a
// range that was chosen, something in it. That the tables agree with one another says nothing about the ledger.
func (v *VerifyResult) Compared() bool {
	if v.Updates != nil && v.Updates.Unread {
		return false
	}
	return v.Updates != nil && v.Updates.Compared || v.Transactions != nil && v.Transactions.Compared || v.Sealed > 0
}

// Remaining returns the number of differences that are there now: all that were found or, after a repair, those that it
// left.
func (v *VerifyResult) Remaining(repaired bool) int64 {
	if !repaired {
		return v.Differences
	}
	return v.Left
}

type verifyRun struct {
	audit.Verification
	cfg    VerifyConfig
	result VerifyResult
}

// RunVerify compares the database with its sources, or with the digests of what was compared before, and repairs what
// differs where the configuration says so. found is called for each difference; the result says what was
// compared, also where an error ended it.
func RunVerify(ctx context.Context, cfg VerifyConfig, logger *slog.Logger,
	found func(audit.Difference)) (VerifyResult, error) {
	db, err := cfg.Open(ctx, logger)
	if err != nil {
		return VerifyResult{}, err
	}
	defer db.Close()
	progress, end := meterSteps(ctx, logger)
	defer end()
	v := verifyRun{cfg: cfg, Verification: audit.Verification{Database: audit.New(db), Differs: found,
		Progress: progress, Logger: logger}}
	err = v.run(ctx)
	v.result.Report = v.Report
	return v.result, err
}

func (v *verifyRun) run(ctx context.Context) error {
	var err error
	if v.result.RedactedContracts, v.result.RedactedUpdates, err = v.Database.Redacted(ctx); err != nil {
		return err
	}
	if v.cfg.Offline {
		return v.offline(ctx)
	}
	updates, history, err := v.Database.Held(ctx)
	if err != nil {
		return err
	}
	if !updates && !history {
		return v.nothingHeld(ctx)
	}
	if v.cfg.Repair {
		if err := v.lead(ctx); err != nil {
			return err
		}
		defer v.Repairer.Close()
	}
	if err := v.held(ctx); err != nil || v.result.Contradictions > 0 {
		return err
	}
	if err := v.types(ctx); err != nil {
		return err
	}
	network := v.cfg.OfNetwork()
	switch {
	case v.cfg.LedgerURL == "" && !network:
		v.Note("the updates: no --ledger-url is given")
	case !updates:
		v.Note("the updates: nothing of them has been indexed yet")
	default:
		if err := v.updates(ctx); err != nil {
			return err
		}
	}
	if network {
		return v.networkRecords(ctx, updates, history)
	}
	return v.servedHistory(ctx, history)
}

// lead takes the lead for repairs. The caller closes the repairer.
func (v *verifyRun) lead(ctx context.Context) error {
	repairer, ok, err := audit.LeadRepair(ctx, v.Database.Store)
	if err != nil {
		return err
	}
	if !ok {
		return &ledger.Problem{What: fmt.Sprintf("another process repairs database %s", v.Database.Address()),
			Do: "wait until it is done"}
	}
	v.Repairer = repairer
	return nil
}

// held compares what the database says that it holds with itself. Where that contradicts itself nothing else is
// compared, or repaired, by it.
func (v *verifyRun) held(ctx context.Context) error {
	v.Begin(audit.Progress{Step: "what is held"})
	err := v.Database.CompareHeld(ctx, func(d audit.Difference) {
		v.result.Contradictions++
		v.Left++
		v.Found(d)
	})
	if err == nil && v.result.Contradictions > 0 {
		v.Note("anything else: what the database says that it holds contradicts itself. Restore what is wrong from a " +
			"backup of the database, or index into a new one beside it (docs/operations.md)")
	}
	return err
}

// networkRecords compares the records that follow from the stored updates of a network, and the sums of amulets.
func (v *verifyRun) networkRecords(ctx context.Context, updates, history bool) error {
	if updates {
		sums, err := v.Database.AmuletSums(ctx,
			func(at ledger.Offset) { v.Begin(audit.Progress{Step: "sums of amulets", Done: int64(at)}) })
		if err != nil {
			return err
		}
		v.result.Amulets = &sums
	}
	if !history {
		v.Note("the records that follow from the updates: none has been written yet")
		return nil
	}
	return v.history(ctx, audit.Transactions{Derived: true})
}

// servedHistory compares the transaction history of a Scan service.
func (v *verifyRun) servedHistory(ctx context.Context, history bool) error {
	served := len(v.cfg.ScanURL) > 0
	switch {
	case !history && served && config.NetworkBegun(ctx, v.cfg.DatabaseURL, v.Logger):
		v.Note("the updates of the network: `indexer verify --network` compares them with those of the Scan service")
		return nil
	case !history && served:
		v.Note("the transaction history: nothing of it has been indexed yet")
		return nil
	case !history:
		return nil
	case !served:
		v.Note("the transaction history: no --scan-url is given")
		return v.history(ctx, audit.Transactions{})
	}
	service, err := newTransactionsService(v.cfg.Sources, v.Logger, observation{})
	if err != nil {
		return err
	}
	defer service.Close()
	return v.history(ctx, audit.Transactions{Source: service})
}

// nothingHeld is the error for a database that has nothing to compare.
func (v *verifyRun) nothingHeld(ctx context.Context) error {
	unfinished, err := v.Database.UnfinishedSnapshot(ctx)
	if err != nil {
		return err
	}
	if unfinished == nil {
		return v.Database.NothingIndexed(ctx, "verify")
	}
	return &ledger.Problem{
		What: fmt.Sprintf("the snapshot at offset %d is not finished in database %s, so there is nothing to verify yet",
			unfinished.At, v.Database.Address()),
		Do: fmt.Sprintf("run `%s` again: it continues where it was", v.Database.Backfill()),
	}
}

func (v *verifyRun) offline(ctx context.Context) error {
	v.Note("nothing was read from the ledger: sealed windows were compared with their digests")
	err := v.Database.CompareSeals(ctx, func(done, of int64) {
		v.result.Sealed = done
		v.Begin(audit.Progress{Step: "sealed windows", Done: done, Of: of})
	}, v.Found)
	switch {
	case err != nil:
		return err
	case v.result.Sealed == 0:
		v.Note("anything: no window is sealed yet (`indexer run` seals what it has compared, at --verify-rate)")
		return nil
	}
	if err := v.unsealed(ctx); err != nil || !v.cfg.OfNetwork() {
		return err
	}
	updates, history, err := v.Database.Held(ctx)
	if err != nil {
		return err
	}
	return v.networkRecords(ctx, updates, history)
}

// unsealed notes what is shown and lies in no sealed window.
func (v *verifyRun) unsealed(ctx context.Context) error {
	updates, err := v.Database.Unsealed(ctx, store.StreamUpdates)
	if err != nil {
		return err
	}
	for _, gap := range updates {
		v.Note("the updates after offset %d up to %d: they are not sealed yet", gap.From, gap.To)
	}
	records, err := v.Database.Unsealed(ctx, store.StreamTransactions)
	if err != nil {
		return err
	}
	if v.cfg.OfNetwork() { // which follow from updates, and are not sealed
		records = nil
	}
	for _, gap := range records {
		v.Note("the records of the transaction history after %d up to %d: they are not sealed yet", gap.From, gap.To)
	}
	snapshot, err := v.Database.SnapshotWindow(ctx, math.MaxInt64)
	if err == nil && snapshot != nil && !snapshot.Again {
		v.Note("the snapshot at offset %d, which is carried: it is not sealed yet", snapshot.To)
	}
	return err
}

// types compares the stored packages with their ids, and what is stored of their types with what they say.
func (v *verifyRun) types(ctx context.Context) error {
	list, err := v.Database.Packages(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	c := typesComparison{db: v.Database, found: v.Found}
	c.packages.Content = func(id string) ([]byte, error) { return v.Database.PackageContent(ctx, id) }
	for i, p := range list {
		v.Begin(audit.Progress{Step: "packages, with their hashes", Done: int64(i), Of: int64(len(list))})
		if err := c.compare(ctx, p.ID); err != nil {
			return fmt.Errorf("compare package %s with its content: %w", p.ID, err)
		}
	}
	if v.Repairer == nil || len(c.again)+len(c.forget) == 0 {
		return nil
	}
	err = audit.Retry(ctx, v.Logger, func() error { return v.Repairer.RepairPackages(ctx, c.again, c.forget) })
	if err != nil {
		return fmt.Errorf("repair what packages say of types: %w", err)
	}
	if len(c.forget) > 0 {
		v.Note("packages %v: their content was damaged and is gone; `indexer run` reads it again", c.forget)
	}
	return nil
}

// updates compares the updates with those of their source, in the stored scope.
func (v *verifyRun) updates(ctx context.Context) error {
	scope, indexed, err := v.Database.Scope(ctx)
	if err != nil {
		return err
	}
	if !indexed {
		return &ledger.Problem{
			What: fmt.Sprintf("the scope of what is stored is missing in database %s, so it is not known what belongs there",
				v.Database.Address()),
			Do: "start `indexer run` with exactly the scope flags that the database was begun with: it records them again",
		}
	}
	from, err := v.open(scope, observation{})
	if err != nil {
		return err
	}
	defer from.Close()
	err = audit.Retry(ctx, v.Logger, func() error {
		_, err := checkSameLedger(ctx, v.Database.Store, from)
		return err
	})
	if err != nil {
		return err
	}
	if err := tellStored(ctx, v.Database.Store, from); err != nil {
		return err
	}
	stored := newSourceByScope(v.Database.Store, from, scope,
		func(earlier ledger.Scope) (source, error) { return v.open(earlier, observation{reached: true}) })
	defer stored.Close()
	updates := audit.Updates{Verification: &v.Verification, Source: stored, Scope: scope, Selection: v.cfg.Selection()}
	if network, ok := from.(*Network); ok {
		updates.Stretches = network.Stretches
	}
	result, err := updates.Run(ctx)
	v.result.Updates = &result
	return err
}

func (v *verifyRun) open(scope ledger.Scope, seen observation) (source, error) {
	if v.cfg.OfNetwork() {
		return newNetwork(v.cfg.Scan(), v.Logger, seen)
	}
	return newParticipantSource(v.cfg.Ledger(), v.cfg.RequestLimits, scope, v.Logger, seen)
}

// tellStored passes to a source how far its updates are stored.
func tellStored(ctx context.Context, db *store.Store, from source) error {
	held, err := db.Extent(ctx)
	if err != nil || !held.Started {
		return err
	}
	last, _, err := db.LastUpdate(ctx, held.Watermark)
	if err != nil {
		return err
	}
	from.setMinimum(last)
	return nil
}

// meterSteps returns a function that takes the progress of a verification: it logs each step when it begins, also
// again, and measures it. end ends the last step.
func meterSteps(ctx context.Context, logger *slog.Logger) (report func(audit.Progress), end func()) {
	var now audit.Progress
	var meter *ingest.Meter
	end = func() {
		if meter != nil {
			meter.Idle()
		}
	}
	return func(p audit.Progress) {
		if meter == nil || p.Step != now.Step || p.Done < now.Done {
			end()
			logger.InfoContext(ctx, "verifying", "step", p.Step)
			meter = ingest.NewMeter(logger, ledger.Progress{Stream: p.Step, End: p.Of}, nil)
			now = audit.Progress{}
		}
		meter.SetEnd(p.Of)
		meter.Add(ctx, p.Done, int(p.Done-now.Done))
		now = p
	}, end
}

// history compares the transaction history.
func (v *verifyRun) history(ctx context.Context, of audit.Transactions) error {
	of.Verification = &v.Verification
	result, err := of.Run(ctx)
	v.result.Transactions = &result
	if errors.Is(err, ledger.ErrNotOffered) {
		v.Note("the transaction history: the service has none")
		return nil
	}
	return err
}
