package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

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
	made     map[string]bool // the databases whose copies are measured
	isApart  bool            // PostgreSQL has processors of its own
}

// newHarness builds the programs and starts the database.
func newHarness(ctx context.Context, f *flags, say func(format string, args ...any)) (h *harness, err error) {
	h = &harness{flags: f, say: say, report: f.report(), made: map[string]bool{}}
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
	if h.db, err = startDatabase(ctx, f.WarmUp, f.Fsync, f.Setting); err != nil {
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

// updates returns a data set of updates.
func (h *harness) updates(ctx context.Context, o updatesOptions) (*dataset, string, error) {
	effects := 0
	if o.Shape == sandbox.LedgerEffects {
		effects = 1
	}
	name := fmt.Sprintf("updates-%d-%d-%d-%d-%d-%t", o.N, o.Events, effects, o.First, o.Parties, o.Views)
	return h.dataset(name, func(name string) error { return buildUpdates(ctx, name, o) })
}

// prepared returns a new database with pairs of schemas, or with the one that is measured: a copy of one that is kept.
func (h *harness) prepared(ctx context.Context, pairs ...store.Schemas) (url string, err error) {
	if len(pairs) == 0 {
		pairs = append(pairs, h.db.pair)
	}
	template := databaseName
	for _, pair := range pairs {
		template += "_" + pair.Tables
	}
	if !h.made[template] {
		if err := h.db.server.CreateDatabase(ctx, template); err != nil {
			return "", err
		}
		for _, pair := range pairs {
			if err := migrated(ctx, h.db.server.URL(template), pair); err != nil {
				return "", err
			}
		}
		h.made[template] = true
	}
	if err := h.db.server.DropDatabase(ctx, databaseName); err != nil {
		return "", err
	}
	if err := h.db.server.CloneDatabase(ctx, databaseName, template); err != nil {
		return "", err
	}
	return h.db.url(), h.db.settle(ctx)
}

// migrated makes a pair of schemas in a database.
func migrated(ctx context.Context, url string, pair store.Schemas) error {
	s, err := store.Open(config.StoreOf(url, pair, nil))
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Migrate(ctx)
	return err
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

// source is what a run of the indexer reads.
type source struct {
	serveOptions
	pair store.Schemas    // where it is written
	rows map[string]int64 // that must be there afterwards
	last int64            // offset of its last update; 0: nobody looks when that is visible
}

// flags returns the indexer's flags for a source that is served at a URL.
func (s *source) flags(url string) []string {
	switch s.Kind {
	case serveHistory:
		return []string{"--scan-url=" + url, "--scan-history=transactions"}
	case serveNetwork:
		return []string{"--scan-url=" + url, "--scan-history=updates"}
	default:
		return []string{"--ledger-url=" + url}
	}
}

// run is one run of the indexer over everything that servers have.
type run struct {
	usage
	asked   stats            // of the first source
	rows    map[string]int64 // of the first source, in the database afterwards, by table
	visible []time.Duration  // from the start until the last update of each source was visible
}

// index runs the indexer in a new database until it has caught up with a participant, and checks the rows.
func (h *harness) index(ctx context.Context, o serveOptions, served map[string]int64, flags ...string) (run, error) {
	return h.indexAll(ctx, []source{{serveOptions: o, pair: h.db.pair, rows: served}}, flags...)
}

// indexAll does the same with several sources at once.
func (h *harness) indexAll(ctx context.Context, sources []source, flags ...string) (r run, err error) {
	args := []string{"run", "--until-current", "--verify-rate=0", "--listen="} // verifying would be waited for
	var servers []*server
	var pairs []store.Schemas
	for i := range sources {
		s, failed := startServer(ctx, sources[i].serveOptions)
		if failed != nil {
			return r, failed
		}
		defer func() { err = errors.Join(err, s.stop()) }()
		servers, pairs = append(servers, s), append(pairs, sources[i].pair)
		args = append(args, sources[i].flags(s.url)...)
	}
	url, err := h.prepared(ctx, pairs...)
	if err != nil {
		return r, err
	}
	look, stop := context.WithCancel(ctx)
	defer stop()
	visible := lookFor(look, url, sources)
	if r.usage, err = h.run(ctx, "indexer", url, slices.Concat(args, flags, h.IndexerFlag)...); err != nil {
		return r, err
	}
	time.AfterFunc(timeout, stop)
	r.visible = visible()
	if r.asked, err = servers[0].stats(ctx); err != nil {
		return r, err
	}
	for i := range sources {
		rows, err := h.db.of(sources[i].pair).holds(ctx, sources[i].rows)
		if err != nil {
			return r, err
		}
		if i == 0 {
			r.rows = rows
		}
		if sources[i].last > 0 && r.visible[i] == 0 {
			return r, fmt.Errorf("the last update of the %s did not become visible", sources[i].Kind)
		}
	}
	return r, nil
}

// lookFor looks, until ctx ends, when the last update of each source is visible. The function that it returns waits for
// that.
func lookFor(ctx context.Context, url string, sources []source) (took func() []time.Duration) {
	list := make([]time.Duration, len(sources))
	var looking sync.WaitGroup
	for i := range sources {
		if sources[i].last > 0 {
			looking.Go(func() { list[i] = whenVisible(ctx, url, sources[i].pair.Views, sources[i].last) })
		}
	}
	return func() []time.Duration {
		looking.Wait()
		return list
	}
}

// whenVisible returns after what time the update at an offset is visible; 0: ctx ended before.
func whenVisible(ctx context.Context, url, views string, offset int64) time.Duration {
	began := time.Now()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for at := int64(0); sleep(ctx, 2*lookEvery) == nil; {
		query := "SELECT coalesce(" + pgx.Identifier{views, "latest_offset"}.Sanitize() + "(), 0)"
		if err := conn.QueryRow(ctx, query).Scan(&at); err != nil {
			return 0
		}
		if at >= offset {
			return time.Since(began)
		}
	}
	return 0
}
