package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/export"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// Import says what is imported, and into which database.
type Import struct {
	config.Database
	From string // a folder, or s3://bucket/prefix
	// Show, if set, is called with the progress, about four times a second.
	Show func(ledger.Progress) `kong:"-"`
}

// Imported is what an import did.
type Imported struct {
	Entries   int64         // of the snapshot that are stored; 0: there is none
	Updates   int64         // stored by this run
	Watermark ledger.Offset // afterwards
	Floor     ledger.Offset // events are complete after here
	Seals     int           // windows that have the digest that they had
	Packages  int
}

// RunImport makes a database of an export, or continues one that was begun. When ctx ends, it finishes the transactions under way and returns ctx's
// error: the next run resumes there. What does not fit is a *ledger.Problem.
func RunImport(ctx context.Context, cfg Import, logger *slog.Logger) (done Imported, err error) {
	if cfg.OfNetwork() {
		logger = networkLogger(logger)
	}
	place, err := export.Open(cfg.From, false)
	if err != nil {
		return done, &config.UsageError{Err: err}
	}
	source, err := export.BeginImport(ctx, place, cfg.OfNetwork())
	if err != nil {
		return done, err
	}
	defer source.Close()
	if err := refuseNewer(place, source); err != nil {
		return done, err
	}
	db, err := store.Open(cfg.Store(logger))
	if err != nil {
		return done, &config.UsageError{Err: err}
	}
	defer db.Close()
	err = await(ctx, logger, "waiting for the database", func(ctx context.Context) error {
		if _, err := db.Migrate(ctx); err != nil {
			return err
		}
		if err := refuseOtherNetwork(ctx, cfg.Database, source); err != nil {
			return err
		}
		return refuseOther(ctx, db, place, source)
	})
	if err != nil {
		return done, err
	}
	j := job[*store.UpdatesWriter]{
		db: db, role: store.RoleUpdates, take: db.LeadUpdates, busy: "stop it before importing, or wait for the other import", stream: "updates",
		logger: logger, show: cfg.Show,
	}
	err = j.run(ctx, func(ctx context.Context, leader *store.UpdatesWriter, report func(ledger.Progress)) error {
		i := importing{db: db, place: place, source: source, leader: leader, logger: logger, report: report, done: &done}
		return i.run(ctx)
	})
	return done, err
}

// refuseNewer refuses ranges that a newer release wrote, because there may be columns that this one does not know.
func refuseNewer(place export.Place, source *export.Import) error {
	known, err := store.SchemaVersion()
	if err != nil {
		return err
	}
	version, manifest := source.SchemaVersion()
	if version > known {
		return &ledger.Problem{
			What: fmt.Sprintf("%s in %s is of schema version %d, and this program knows only %d", manifest, place, version, known),
			Do:   "use the release of the indexer that wrote it, or a newer one",
		}
	}
	return nil
}

// refuseOther refuses a database that holds something else than what an import of this export has stored so far.
func refuseOther(ctx context.Context, db *store.Store, place export.Place, source *export.Import) error {
	another := func(what string) error {
		return &ledger.Problem{
			What: fmt.Sprintf("database %s can't take the export in %s: %s", db.Address(), place, what),
			Do:   "import into a new database, or a participant's updates into a new pair of schemas (--tables-schema, --views-schema)",
		}
	}
	if err := db.CheckIdentity(ctx, source.Participant(), source.Scope); err != nil {
		if problem := (*ledger.Problem)(nil); errors.As(err, &problem) {
			return another(fmt.Sprintf("it holds another ledger or scope than that of %s, %s", source.Participant(), source.Scope.Canonical()))
		}
		return err
	}
	floor, state := source.Floor()
	unfinished, err := db.UnfinishedSnapshot(ctx)
	if err != nil {
		return err
	}
	if unfinished != nil && (unfinished.At != floor || !state) {
		return another(fmt.Sprintf("it holds an unfinished snapshot at offset %d", unfinished.At))
	}
	bounds, started, err := db.Bounds(ctx)
	if err != nil || !started {
		return err
	}
	switch {
	case bounds.Floor != floor || (bounds.StateFloor != nil) != state:
		return another(fmt.Sprintf("its events begin after offset %d, and those of the export after offset %d", bounds.Floor, floor))
	case bounds.Watermark > source.End():
		return another(fmt.Sprintf("it goes up to offset %d, and the export only up to %d", bounds.Watermark, source.End()))
	}
	at, stored, err := db.LastUpdate(ctx, bounds.Watermark)
	if err != nil || at <= floor {
		return err
	}
	exported, ok, err := source.UpdateID(ctx, at)
	if err == nil && (!ok || exported != stored) {
		err = another(fmt.Sprintf("its last update, %s at offset %d, is not in the export", stored, at))
	}
	return err
}

// refuseOtherNetwork refuses a database with data from a Scan service of another network, in the pair of schemas of a participant or in that of the
// network's updates.
func refuseOtherNetwork(ctx context.Context, cfg config.Database, source *export.Import) error {
	for _, schemas := range []store.Schemas{{Tables: cfg.TablesSchema, Views: cfg.ViewsSchema}, config.NetworkSchemas} {
		stored, err := networkIn(ctx, cfg.DatabaseURL, schemas)
		if err != nil {
			return err
		}
		if known := source.Network(); stored != "" && known != "" && stored != known {
			return &ledger.Problem{
				What: fmt.Sprintf("the export is of the network that %s operates, and the database holds data from a Scan service of the network that %s operates", known, stored),
				Do:   "import into another database",
			}
		}
	}
	return nil
}

// networkIn returns the party that operates the network of which a pair of schemas holds something; empty: of none.
func networkIn(ctx context.Context, databaseURL string, schemas store.Schemas) (string, error) {
	db, err := store.Open(config.StoreOf(databaseURL, schemas, nil))
	if err != nil {
		return "", &config.UsageError{Err: err}
	}
	defer db.Close()
	updates, history, err := db.Begun(ctx)
	switch {
	case err != nil:
		return "", err
	case updates && schemas == config.NetworkSchemas:
		return db.ParticipantID(ctx)
	case history:
		return db.Network(ctx)
	}
	return "", nil
}

// importing is a running import.
type importing struct {
	db     *store.Store
	place  export.Place
	source *export.Import
	leader *store.UpdatesWriter
	logger *slog.Logger
	report func(ledger.Progress)
	done   *Imported
}

func (i *importing) run(ctx context.Context) error {
	// What was redacted is noted first: from then on nobody brings it back.
	err := i.patiently(ctx, func(ctx context.Context) error { return i.leader.ImportRedactions(ctx, i.source.Redactions()) })
	if err != nil {
		return err
	}
	if err := i.patiently(ctx, i.begin); err != nil {
		return err
	}
	loop := ingest.Files{
		Source: i.source, Sink: updatesSink{i.leader, audit.New(i.db), &hosting{}}, Scope: i.source.Scope, ParticipantID: i.source.Participant(), Logger: i.logger,
		Watch: ingest.Watch{
			Committed: func(_, _ ledger.Offset, n int) { i.done.Updates += int64(n) },
			Progress:  i.report,
		},
	}
	if i.done.Watermark, err = loop.Run(ctx); err != nil {
		return err
	}
	if err := i.packages(ctx); err != nil {
		return err
	}
	return i.seal(ctx)
}

func (i *importing) patiently(ctx context.Context, fn func(context.Context) error) error {
	return await(ctx, i.logger, "importing", fn)
}

// begin stores what was active where the updates begin, if they don't begin with the ledger.
func (i *importing) begin(ctx context.Context) error {
	floor, state := i.source.Floor()
	i.done.Floor = floor
	_, started, err := i.leader.Watermark(ctx)
	if err != nil || floor == 0 {
		return err
	}
	if !state {
		if started {
			return nil
		}
		return i.leader.Start(ctx, i.source.Participant(), i.source.Scope, floor, false)
	}
	if !started {
		loop := ingest.Snapshot{
			Source: i.source, Sink: i.leader, Scope: i.source.Scope, ParticipantID: i.source.Participant(), At: &floor, Logger: i.logger, Progress: i.report,
		}
		progress, err := loop.Run(ctx)
		if i.done.Entries = progress.Entries; err != nil {
			return err
		}
	}
	carried, to, pruned := i.source.Pruned()
	if !pruned {
		return nil
	}
	return i.leader.ImportPruned(ctx, carried, to)
}

// packages stores the packages that the export has, with their types.
func (i *importing) packages(ctx context.Context) error {
	types := newTypes(ctx, i.source, i.leader, i.logger)
	ids := i.source.Packages()
	i.done.Packages = len(ids)
	return i.patiently(ctx, func(ctx context.Context) error { return types.StoreAll(ctx, ids) })
}

// seal compares the rows of every window that was sealed with its digest, and seals it again.
func (i *importing) seal(ctx context.Context) error {
	sealer := audit.NewSealer(i.db, i.leader.Leader)
	seals := i.source.Seals()
	i.done.Seals = 0 // a later term seals all of them again
	for _, seal := range seals {
		err := i.patiently(ctx, func(ctx context.Context) error {
			ok, err := sealer.ImportSeal(ctx, seal)
			if err == nil && !ok {
				err = &ledger.Problem{
					What: fmt.Sprintf("what was imported from %s of %s after offset %d up to %d does not have the digest with which it was sealed at %s",
						i.place, seal.Stream, seal.From, seal.To, seal.VerifiedAt.Format(time.RFC3339)),
					Do: "export again, which writes again what changed since, and import into a new database; if that does not help, and the database that was exported " +
						"is whole (`indexer verify --offline`), report this",
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		i.done.Seals++
	}
	return nil
}
