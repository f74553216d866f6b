package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ledgerindexer/internal/config"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// harness is what the parts share.
type harness struct {
	*flags
	say      func(format string, args ...any)
	folder   string // for files of this process
	db       *database
	programs *programs
	report   *report
	isApart  bool // PostgreSQL has processors of its own
}

// newHarness builds the programs and starts the database.
func newHarness(ctx context.Context, f *flags, say func(format string, args ...any)) (h *harness, err error) {
	h = &harness{flags: f, say: say, report: f.report()}
	if h.folder, err = os.MkdirTemp("", "bench-"); err != nil {
		return nil, err
	}
	defer func(folder string) {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}(h.folder)
	if h.Data == "" {
		h.Data = filepath.Join(h.folder, "data")
	}
	h.programs = &programs{folder: f.Programs, profile: f.Profile}
	if f.Programs == "" {
		h.programs.folder = filepath.Join(h.folder, "bin")
	}
	for _, folder := range []string{h.Data, h.programs.folder, h.Profile} {
		if folder == "" {
			continue
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
	}
	if f.Programs == "" {
		h.say("building the programs")
		if err := buildPrograms(ctx, h.programs.folder); err != nil {
			return nil, err
		}
	}
	h.say("starting PostgreSQL, and writing %d MB of its log so that segments are recycled", f.WarmUp)
	if h.db, err = startDatabase(ctx, f.WarmUp, f.Fsync); err != nil {
		return nil, err
	}
	if err := h.describeMachine(ctx); err != nil {
		return nil, errors.Join(err, h.db.server.Stop())
	}
	return h, nil
}

func (h *harness) close() error { return errors.Join(h.db.server.Stop(), os.RemoveAll(h.folder)) }

// apartSuffix marks what was measured where PostgreSQL had processors of its own.
const apartSuffix = "; PostgreSQL apart"

func (h *harness) target(t target) {
	if h.isApart {
		t.what += apartSuffix
	}
	h.report.target(t)
}

func (h *harness) add(s section) {
	if h.isApart {
		s.title += apartSuffix
	}
	h.report.add(s)
}

// dataset opens a data set, and builds it if it does not exist.
func (h *harness) dataset(name string, build func(name string) error) (*dataset, string, error) {
	path := filepath.Join(h.Data, name)
	if _, err := os.Stat(path + shapeSuffix); errors.Is(err, os.ErrNotExist) {
		began := time.Now()
		h.say("making the data: %s", name)
		if err := build(path); err != nil {
			return nil, "", fmt.Errorf("make data set %s: %w", name, err)
		}
		h.say("made the data in %v", time.Since(began).Round(time.Second))
	}
	d, err := openDataset(path)
	return d, path, err
}

// updates is a data set of updates.
func (h *harness) updates(ctx context.Context, o updatesOptions) (*dataset, string, error) {
	effects := 0
	if o.Shape == sandbox.LedgerEffects {
		effects = 1
	}
	name := fmt.Sprintf("updates-%d-%d-%d-%d-%d-%t", o.N, o.Events, effects, o.First, o.Parties, o.Views)
	return h.dataset(name, func(name string) error { return buildUpdates(ctx, name, o) })
}

// prepared is a new database with the schemas that are measured, and more.
func (h *harness) prepared(ctx context.Context, more ...store.Schemas) (url string, err error) {
	if url, err = h.db.fresh(ctx); err != nil {
		return "", err
	}
	for _, pair := range append(more, h.db.pair) {
		s, err := store.Open(config.StoreOf(url, pair, nil))
		if err != nil {
			return "", err
		}
		defer s.Close()
		if _, err := s.Migrate(ctx); err != nil {
			return "", err
		}
	}
	return url, h.db.settle(ctx)
}

// run runs a program, which must succeed.
func (h *harness) run(ctx context.Context, name, url string, args ...string) (u usage, err error) {
	beside, err := h.db.measured(func() (err error) {
		u, err = h.programs.run(ctx, name, url, args...)
		return err
	})
	u.postgres = beside.postgres
	return u, err
}

// run is one run of the indexer over everything that a server has.
type run struct {
	usage
	asked stats
	rows  map[string]int64 // in the database afterwards, by table
}

// index runs the indexer in a new database until it has caught up, and checks the rows.
func (h *harness) index(ctx context.Context, o serveOptions, served map[string]int64, flags ...string) (r run, err error) {
	server, err := startServer(ctx, o)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	url, err := h.prepared(ctx)
	if err != nil {
		return r, err
	}
	args := append([]string{"run", "--ledger-url=" + server.url, "--until-current", "--listen="}, flags...)
	if r.usage, err = h.run(ctx, "indexer", url, append(args, h.IndexerFlag...)...); err != nil {
		return r, err
	}
	if r.asked, err = server.stats(ctx); err != nil {
		return r, err
	}
	r.rows, err = h.db.holds(ctx, served)
	return r, err
}
