package ingest

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"ledgerindexer/ledger"
)

// How often, and how much at once, the task PackageContents reads packages for their types.
const (
	// The database is asked which packages are wanted after commits, at most this often,
	packagesEvery = time.Second
	// and this often where nothing is committed.
	idlePackages = time.Minute
	// Time limit for the whole content of a package.
	packagePatience = 5 * time.Minute
	// mostWanted is how many packages are asked for before the database is asked again.
	mostWanted = 20
)

// PackageSource has packages.
type PackageSource interface {
	// Package returns the content of a package, whose hash is the id. Errors: ledger.ErrNotFound; an *UnusableError if the
	// answer for this package is of no use; ledger.ErrNotOffered if the source serves no packages at all.
	Package(ctx context.Context, id string) ([]byte, error)
}

// PackageSink stores packages.
type PackageSink interface {
	TaskSink
	// WantedPackages returns the ids of packages that are referred to, not stored, and due, at most limit.
	WantedPackages(ctx context.Context, limit int) ([]string, error)
	// CompletablePackages returns the ids of stored packages that lacked another one which is stored now.
	CompletablePackages(ctx context.Context) ([]string, error)
	// PackageContent returns the content of a stored package; ledger.ErrNotFound: it is not stored.
	PackageContent(ctx context.Context, id string) ([]byte, error)
	// SavePackage stores a package and its types, in place of what was stored of it.
	SavePackage(ctx context.Context, p *ledger.Package) error
	// MissPackage records why a package could not be read. It is wanted again after a long wait.
	MissPackage(ctx context.Context, id, failure string) error
}

// PackageContents is the background task that stores each package that events refer to, with its types. It is used
// once.
type PackageContents struct {
	Source PackageSource
	Sink   PackageSink
	// Read computes the types of a package. It may use other packages that are stored.
	Read func(id string, content []byte) (ledger.Package, error)
	// Forget, if set, is called after some packages, to free what Read remembers.
	Forget func()
	// Wake, if not nil, wakes the task after a commit, which may refer to more packages.
	Wake   <-chan struct{}
	Finish <-chan struct{} // see TaskReport
	Logger *slog.Logger
	Watch  TaskWatch
	// Outcome, if set, is called for each package that was stored ("stored"), stored without its types ("unreadable") or
	// could not be read ("missing").
	Outcome func(outcome string)
}

// Run works until ctx ends or nothing is wanted after Finish. Its error is that of RunTask.
func (t *PackageContents) Run(ctx context.Context) error {
	task := newTask(TaskReport{Name: TaskPackages, Sink: t.Sink, Logger: t.Logger, Watch: t.Watch, Finish: t.Finish})
	task.retry.Rest, task.retry.Final = restFor, lastingOrNotOffered
	warned := map[string]bool{} // packages that can't be had
	round := func(ctx context.Context) (more bool, err error) {
		n, err := t.round(ctx, warned)
		if t.Forget != nil {
			t.Forget()
		}
		return n > 0, err
	}
	return task.run(ctx, func(ctx context.Context, worked func()) error {
		return task.rounds(ctx, worked, schedule{wake: t.Wake, every: packagesEvery, idle: idlePackages}, round)
	})
}

// round asks for packages that are wanted, and returns how many there were.
func (t *PackageContents) round(ctx context.Context, warned map[string]bool) (int, error) {
	wanted, err := t.Sink.WantedPackages(ctx, mostWanted)
	if err != nil {
		return 0, err
	}
	for _, id := range wanted {
		if err := t.get(ctx, id, warned); err != nil {
			return 0, err
		}
	}
	completed, err := t.complete(ctx)
	return len(wanted) + completed, err
}

// complete computes the types again of packages that lacked others, and returns how many there were.
func (t *PackageContents) complete(ctx context.Context) (int, error) {
	incomplete, err := t.Sink.CompletablePackages(ctx)
	if err != nil {
		return 0, err
	}
	for _, id := range incomplete {
		content, err := t.Sink.PackageContent(ctx, id)
		if err == nil {
			err = t.save(ctx, id, content)
		}
		if err != nil {
			return 0, err
		}
	}
	return len(incomplete), nil
}

func (t *PackageContents) get(ctx context.Context, id string, warned map[string]bool) error {
	var content []byte
	err := withTimeout(ctx, packagePatience, func(ctx context.Context) (err error) {
		content, err = t.Source.Package(ctx, id)
		return err
	})
	var useless *UnusableError
	if errors.Is(err, ledger.ErrNotFound) || errors.As(err, &useless) {
		reason := Reason(err)
		if !warned[id] {
			warned[id] = true
			t.Logger.WarnContext(ctx, "a package can't be had; the types of its templates stay unknown", "package_id", id,
				"error", reason)
		}
		if err := t.Sink.MissPackage(ctx, id, reason); err != nil {
			return err
		}
		t.outcome("missing")
		return nil
	}
	if err != nil {
		return err
	}
	return t.save(ctx, id, content)
}

func (t *PackageContents) save(ctx context.Context, id string, content []byte) error {
	p, err := t.Read(id, content)
	if err != nil {
		return err
	}
	err = t.Sink.SavePackage(ctx, &p)
	if Lasting(err) && len(p.Definitions) > 0 { // names too long for an index, say
		p.Definitions, p.Failure = nil, Reason(err)
		err = t.Sink.SavePackage(ctx, &p)
	}
	if err != nil {
		return err
	}
	switch {
	case p.Failure != "":
		t.Logger.WarnContext(ctx, "not all types of a package are known", "package_id", id,
			"error", Reason(errors.New(p.Failure)))
		t.outcome("unreadable")
	case len(p.Needs) == 0:
		t.outcome("stored")
	}
	return nil
}

func (t *PackageContents) outcome(outcome string) {
	if t.Outcome != nil {
		t.Outcome(outcome)
	}
}
