package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/scan"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// Loaded is what reading bulk files did.
type Loaded struct {
	Updates   int64         // stored by this run
	Watermark ledger.Offset // afterwards
	End       ledger.Offset // of the last update in the files
}

// RunNetworkFiles reads the updates of a network from bulk files, from the watermark on. With a Scan service it first downloads the files
// that are missing. When ctx ends, it finishes the transactions under way and returns ctx's error: the next run resumes there.
func RunNetworkFiles(ctx context.Context, cfg NetworkBackfill, logger *slog.Logger) (loaded Loaded, err error) {
	if cfg.AtOffset != nil || cfg.Restart {
		return loaded, &config.UsageError{Err: errors.New("--at-offset and --restart are for a snapshot, which --files does not read")}
	}
	endPprof, err := startPprof(ctx, cfg.Profile, logger)
	if err != nil {
		return loaded, err
	}
	defer endPprof()
	logger = networkLogger(logger)
	cfg.Schemas.Network = true
	files, err := fetchFiles(ctx, cfg.Scan, cfg.Files.Files, logger)
	if err != nil {
		return loaded, err
	}
	loaded.End = files.End()
	db, err := store.Open(cfg.Store(logger))
	if err != nil {
		return loaded, &config.UsageError{Err: err}
	}
	defer db.Close()
	of := identityOf(files.Party())
	check := func(ctx context.Context) error {
		err := db.CheckIdentity(ctx, of.id, of.scope)
		if problem, ok := errors.AsType[*ledger.Problem](err); ok && problem.Err == nil {
			return otherNetwork(err, db.Address(), "the bulk files", "--files")
		}
		return err
	}
	err = await(ctx, logger, "waiting for the database", func(ctx context.Context) error {
		if _, err := db.Migrate(ctx); err != nil {
			return err
		}
		return check(ctx)
	})
	if err != nil {
		return loaded, err
	}
	unfinished, err := db.UnfinishedSnapshot(ctx)
	if err != nil {
		return loaded, err
	}
	if unfinished != nil {
		return loaded, &ledger.Problem{
			What: fmt.Sprintf("the snapshot at offset %d is not finished", unfinished.At),
			Do:   "run `backfill network` without --files to finish it; `backfill network history --files` reads what lies below",
		}
	}
	j := job[*store.UpdatesWriter]{
		db: db, role: store.RoleUpdates, take: db.LeadUpdates, stream: "updates", logger: logger, show: cfg.Show,
		busy: "stop it before reading bulk files; or read those below what is stored with `backfill network history --files`",
	}
	err = j.run(ctx, func(ctx context.Context, leader *store.UpdatesWriter, report func(ledger.Progress)) (err error) {
		loop := ingest.Files{
			Source: files, Sink: updatesSink{leader, audit.New(db), &hosting{}}, Scope: of.scope, ParticipantID: of.id, Logger: logger,
			Check: func(ctx context.Context) error {
				if err := check(ctx); err != nil {
					return err
				}
				return leader.RecordIdentity(ctx, of.id, of.scope)
			},
			Watch: ingest.Watch{
				Committed: func(_, _ ledger.Offset, n int) { loaded.Updates += int64(n) },
				Progress:  report,
			},
		}
		loaded.Watermark, err = loop.Run(ctx)
		return err
	})
	return loaded, err
}

// fetchFiles opens the bulk files of a folder, after downloading what it lacks if there is a Scan service.
func fetchFiles(ctx context.Context, cfg config.Scan, folder string, logger *slog.Logger) (*scan.Files, error) {
	if len(cfg.ScanURL) > 0 {
		client, err := newScanClient(cfg.ScanURL[0], cfg.ScanAccess, logger, observation{})
		if err != nil {
			return nil, err
		}
		defer client.Close()
		err = await(ctx, logger, "downloading bulk files", func(ctx context.Context) error {
			return scan.NewUpdates(client).DownloadFiles(ctx, folder, func(n, of int) {
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

func checkFilesOf(files *scan.Files, party string) error {
	if files == nil || files.Party() == party {
		return nil
	}
	return &ledger.Problem{
		What: fmt.Sprintf("the bulk files are of the network that %s operates, and the Scan service and the database of that of %s", files.Party(), party),
		Do:   "correct --files, or --scan-url and --database-url",
	}
}
