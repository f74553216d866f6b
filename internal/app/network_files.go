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
	"ledgerindexer/scan"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// NetworkBackfill is the configuration of the snapshot backfill of a network.
type NetworkBackfill struct {
	config.Database
	config.Scan
	config.Snapshot
	config.Files
	config.Profile
	ActiveOnly bool `env:"-" help:"From --files, store the contracts that are active at the newest snapshot in them, or the newest up to --at-offset, and no updates."`
}

// Loaded is what reading bulk files did.
type Loaded struct {
	Updates   int64         // stored by this run
	Watermark ledger.Offset // afterwards
	End       ledger.Offset // of the last update in the files
}

// RunNetworkFiles reads the updates of a network from bulk files, from the watermark on. With a Scan service it first
// downloads the files that are missing. When ctx ends, it finishes the transactions under way and returns ctx's error:
// the next run resumes there.
func RunNetworkFiles(ctx context.Context, cfg NetworkBackfill, logger *slog.Logger) (loaded Loaded, err error) {
	if cfg.AtOffset != nil || cfg.Restart {
		return loaded, &config.UsageError{Err: errors.New("--at-offset and --restart are for a snapshot, which --files " +
			"reads with --active-only")}
	}
	endPprof, err := startPprof(ctx, cfg.Profile, logger)
	if err != nil {
		return loaded, err
	}
	defer endPprof()
	logger = networkLogger(logger)
	cfg.Schemas.Network = true
	files, err := fetchFiles(ctx, cfg.Scan, cfg.Files.Files, nil, logger)
	if err != nil {
		return loaded, err
	}
	db, err := store.Open(cfg.Store(logger))
	if err != nil {
		return loaded, &config.UsageError{Err: err}
	}
	defer db.Close()
	l := filesLoad{files: files, db: db, of: identityOf(files.Party()), logger: logger, loaded: Loaded{End: files.End()}}
	err = await(ctx, logger, "waiting for the database", func(ctx context.Context) error {
		if _, err := db.Migrate(ctx); err != nil {
			return err
		}
		return l.check(ctx)
	})
	if err != nil {
		return l.loaded, err
	}
	if err := refuseUnfinished(ctx, db, "finish it with the command that began it"); err != nil {
		return l.loaded, err
	}
	j := job[*store.UpdatesWriter]{
		db: db, lease: store.LeaseUpdates, take: db.LeadUpdates, stream: "updates", logger: logger,
		busy: "stop it before reading bulk files",
	}
	err = j.run(ctx, l.term)
	return l.loaded, err
}

// refuseUnfinished refuses a database whose snapshot is not finished; do says how to finish it.
func refuseUnfinished(ctx context.Context, db *store.Store, do string) error {
	unfinished, err := db.UnfinishedSnapshot(ctx)
	if err != nil || unfinished == nil {
		return err
	}
	return &ledger.Problem{What: fmt.Sprintf("the snapshot at offset %d is not finished", unfinished.At), Do: do}
}

// filesLoad stores the updates of bulk files.
type filesLoad struct {
	files  *scan.Files
	db     *store.Store
	of     identity
	logger *slog.Logger
	loaded Loaded
}

// check checks that the database belongs to the network of the files.
func (l *filesLoad) check(ctx context.Context) error {
	return refuseFiles(l.db.CheckIdentity(ctx, l.of.id, l.of.scope), l.db.Address())
}

func (l *filesLoad) term(ctx context.Context, leader *store.UpdatesWriter, report func(ledger.Progress)) (err error) {
	loop := ingest.Files{
		Source: l.files, Sink: updatesSink{leader, audit.New(l.db)}, Scope: l.of.scope, ParticipantID: l.of.id,
		Logger: l.logger,
		Check: func(ctx context.Context) error {
			if err := l.check(ctx); err != nil {
				return err
			}
			return leader.RecordIdentity(ctx, l.of.id, l.of.scope)
		},
		Watch: ingest.Watch{
			Committed: func(_, _ ledger.Offset, n int) { l.loaded.Updates += int64(n) },
			Progress:  report,
		},
	}
	l.loaded.Watermark, err = loop.Run(ctx)
	return err
}

// fetchFiles opens the bulk files of a folder, after downloading what it lacks if there is a Scan service; with
// snapshotUpTo also the files of the newest snapshot up to that offset.
func fetchFiles(ctx context.Context, cfg config.Scan, folder string, snapshotUpTo *ledger.Offset,
	logger *slog.Logger) (*scan.Files, error) {
	if len(cfg.ScanURL) > 0 {
		client, err := newScanClient(cfg.ScanURL[0], cfg.ScanAccess, logger, observation{})
		if err != nil {
			return nil, err
		}
		defer client.Close()
		err = await(ctx, logger, "downloading bulk files", func(ctx context.Context) error {
			return scan.NewUpdates(client).DownloadFiles(ctx, folder, snapshotUpTo, func(n, of int) {
				if n == of {
					logger.InfoContext(ctx, "the bulk files are there", "folder", folder, "files", of)
				}
			})
		})
		if err != nil {
			return nil, err
		}
	}
	return scan.OpenFiles(folder)
}

// filesSeed seeds a database from a snapshot in bulk files. It implements seeder. The files are opened when it is asked
// whose they are: by then it can be read which snapshot the database has begun with.
type filesSeed struct {
	*scan.FilesSnapshot // nil: not opened
	cfg                 NetworkBackfill
	db                  *store.Store
	logger              *slog.Logger
	of                  identity
}

func (f *filesSeed) name() string { return "the bulk files" }

func (f *filesSeed) identify(ctx context.Context) (identity, error) {
	if f.FilesSnapshot != nil {
		return f.of, nil
	}
	upTo, err := f.upTo(ctx)
	if err != nil {
		return f.of, err
	}
	files, err := fetchFiles(ctx, f.cfg.Scan, f.cfg.Files.Files, &upTo, f.logger)
	if err != nil {
		return f.of, err
	}
	f.FilesSnapshot, f.of = files.Snapshots(), identityOf(files.Party())
	return f.of, nil
}

// upTo returns the offset up to which the newest snapshot is wanted: that of the one which was begun is the newest up
// to its own.
func (f *filesSeed) upTo(ctx context.Context) (ledger.Offset, error) {
	if at := f.cfg.Snapshot.Offset(); at != nil {
		return *at, nil
	}
	if !f.cfg.Restart {
		switch unfinished, err := f.db.UnfinishedSnapshot(ctx); {
		case err != nil:
			return 0, err
		case unfinished != nil:
			return unfinished.At, nil
		}
	}
	return math.MaxInt64, nil
}

// Close ends the reading of the files.
func (f *filesSeed) Close() {
	if f.FilesSnapshot != nil {
		f.FilesSnapshot.Close()
	}
}

func (f *filesSeed) refusal(err error, database string) error { return refuseFiles(err, database) }

// refuseFiles returns the error for a database of another network than that of bulk files. A problem that has a cause
// is the database's own.
func refuseFiles(err error, database string) error {
	if problem, ok := errors.AsType[*ledger.Problem](err); ok && problem.Err == nil {
		return otherNetwork(err, database, "the bulk files", "--files")
	}
	return err
}
