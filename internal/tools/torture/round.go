package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ledgerindexer/sandbox"
)

// How long a round waits for a program to end.
const (
	stopLimit   = 90 * time.Second // of a program after SIGTERM
	finishLimit = 5 * time.Minute  // of a program without faults
)

// round is a test of one database with one ledger.
type round struct {
	Config
	plan        plan
	tally       *Tally
	postgres    *postgres
	ledger      *sandbox.Ledger
	scan        *sandbox.Scan
	at          int64 // the snapshot's offset, or up to where was pruned; 0: genesis
	participant *participant
	history     *front
	others      []*front // further Scan services, which have no faults
	folder      string
	outages     atomic.Int64 // beginnings and ends of faults of the database so far, delivered or not

	contracts, updates map[string]bool // that were redacted
}

// runRound runs the round of a seed.
func runRound(ctx context.Context, c Config, seed uint64, p *postgres, tally *Tally) error {
	r := &round{
		Config: c, plan: newPlan(seed), tally: tally, postgres: p, folder: filepath.Join(c.Folder,
			fmt.Sprintf("seed-%d", seed)),
		contracts: map[string]bool{}, updates: map[string]bool{},
	}
	if err := os.MkdirAll(r.folder, 0o700); err != nil {
		return err
	}
	r.Say("seed %d: %v", seed, r.plan)
	if err := r.prepare(ctx); err != nil {
		return err
	}
	defer r.participant.close()
	defer r.history.close()
	defer func() {
		for _, other := range r.others {
			other.close()
		}
	}()
	if r.plan.snapshot {
		if err := r.backfill(ctx); err != nil {
			return err
		}
	}
	stages := r.plan.stages
	if r.plan.restored {
		stages++
	}
	for stage := range stages {
		if stage == r.plan.stages {
			if err := r.restore(ctx); err != nil {
				return err
			}
		}
		if err := r.index(ctx, stage); err != nil {
			return err
		}
		r.Say("    stage %d is over: the database must hold %d updates, with all derived rows", stage+1, r.ledger.Len())
		if err := r.compare(ctx); err != nil {
			return err
		}
		if r.participant.version == r.plan.version { // another release shows more of what was read from the one before
			if err := r.verify(ctx); err != nil {
				return err
			}
		}
	}
	tally.round()
	return nil
}

// prepare creates the ledger, the servers and an empty database.
func (r *round) prepare(ctx context.Context) error {
	r.ledger = sandbox.NewLedger(sandbox.Options{Seed: r.plan.seed, ActiveShare: r.plan.activeShare})
	r.ledger.Grow(r.plan.updates)
	if r.plan.snapshot {
		r.at = r.quiet()
	}
	if err := r.postgres.fresh(ctx, "torture_"+strconv.FormatUint(r.plan.seed, 10)); err != nil {
		return err
	}
	var err error
	if r.participant, err = startParticipant(ctx, r.plan, r.ledger, r.folder); err != nil {
		return err
	}
	r.history = &front{}
	options := sandbox.ScanOptions{
		BalanceChanges: r.plan.balanceChanges, PageLimit: r.plan.scanPage, Latency: r.plan.latency, Fault: r.history.fault,
		MigrateAfter: r.plan.updates / 2, SnapshotEvery: 10 * time.Second,
	}
	r.scan = sandbox.NewScan(r.ledger, options)
	r.history.turnTo(r.scan)
	for i := range r.plan.otherScans {
		other := &front{}
		options.PageLimit, options.Fault, options.LieAbout = options.PageLimit+13, nil, 0
		if i == 0 && r.plan.lies() {
			options.LieAbout = r.shown()
		}
		other.turnTo(sandbox.NewScan(r.ledger, options))
		if err := other.open(ctx); err != nil {
			return err
		}
		r.others = append(r.others, other)
	}
	return r.history.open(ctx)
}

// shown returns the offset of a transaction in the middle that the network shows.
func (r *round) shown() int64 {
	transactions := map[string]bool{}
	for _, row := range r.scan.NetworkTruth()["updates"] {
		if row["kind"] == "transaction" {
			transactions[fmt.Sprint(row["update_id"])] = true
		}
	}
	for i := r.ledger.Len() / 2; ; i = (i + 1) % r.ledger.Len() {
		if transactions[r.ledger.UpdateID(i)] {
			return r.ledger.Offset(i)
		}
	}
}

// quiet returns an offset in the middle at which no reassignment is in flight, so that every release serves its
// snapshot.
func (r *round) quiet() int64 {
	for i := r.ledger.Len() / 2; ; i++ {
		if i == r.ledger.Len() {
			r.ledger.Grow(1)
		}
		if at := r.ledger.Offset(i); !r.ledger.InFlight(at) {
			return at
		}
	}
}

func (r *round) path(command string) string { return filepath.Join(r.Programs, command) }

// environment configures the programs.
func (r *round) environment() []string {
	scans := "http://" + r.history.address
	for _, other := range r.others {
		scans += ",http://" + other.address
	}
	return append(r.plan.environment(), fmt.Sprintf("INDEXER_SCAN_AGREE=%d", r.plan.agree()),
		"INDEXER_DATABASE_URL="+r.postgres.wire.URL(), "INDEXER_LEDGER_URL=http://"+r.participant.address,
		"INDEXER_LEDGER_TOKEN_FILE="+r.participant.tokenFile, "INDEXER_SCAN_URL="+scans,
		"INDEXER_LISTEN=", "INDEXER_PACKAGES_INTERVAL=1s", "INDEXER_LOOKUP_RATE=50",
	)
}

func (r *round) program(name, command string, kill faultKind, args ...string) *program {
	return &program{
		path: r.path(command), folder: r.folder, name: name, args: args, env: r.environment(), kill: kill, tally: r.tally,
	}
}

// backfill seeds the database under fire.
func (r *round) backfill(ctx context.Context) error {
	return r.finish(ctx, r.program("backfill", "backfill", killBackfill, "--at-offset", strconv.FormatInt(r.at, 10)),
		"backfill")
}

// restore restores the participant from a backup, so that the daemon stops, and reanchors the database under fire.
func (r *round) restore(ctx context.Context) error {
	random := randomOf(r.plan.seed, "restore")
	begun := 20 // updates that the backup has for certain, beyond a snapshot
	for r.ledger.Offset(begun-20) <= r.at {
		begun++
	}
	r.ledger.Redeal(begun+random.IntN(r.ledger.Len()-begun), r.plan.seed)
	r.tally.hit(restoreServer)
	cmd := exec.CommandContext(ctx, r.path("indexer"), "run", "--until-current")
	cmd.Env = append(cmd.Environ(), r.environment()...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !bytes.Contains(out, []byte("`indexer reanchor`")) {
		return errors.Join(err, fmt.Errorf("indexer run does not stop as it should where the participant was restored:\n%s",
			out))
	}
	return r.finish(ctx, r.program("reanchor", "indexer", killReanchor, "reanchor", "--apply"), "reanchor")
}

// finish runs a program under fire until it is done.
func (r *round) finish(ctx context.Context, p *program, purpose string) error {
	p.forgiven = r.forgiving() // the next run continues, or begins again
	ctx, cancel := context.WithTimeout(ctx, r.Longest+finishLimit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.keep(ctx) }()
	fireCtx, cease := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		err := <-done
		cease()
		ended <- err
	}()
	err := r.fire(fireCtx, p, p.kill, purpose)
	if err != nil {
		cancel()
	}
	return errors.Join(err, <-ended)
}

// forgiving forgives a program that it ends when the database goes away.
func (r *round) forgiving() func(code int) bool {
	seen := int64(-1)
	return func(code int) bool {
		outages := r.outages.Load()
		defer func() { seen = outages }()
		return code == 1 && (outages != seen || outages%2 == 1)
	}
}

// index lets the daemon follow the growing ledger under fire, and then catch up without faults.
func (r *round) index(ctx context.Context, stage int) error {
	if stage > 0 {
		r.ledger.Grow(r.plan.updates / 3)
	}
	daemon := r.program(fmt.Sprintf("indexer-%d", stage), "indexer", killIndexer, "run")
	keepCtx, kill := context.WithCancel(ctx)
	defer kill()
	ended := make(chan error, 1)
	fireCtx, cease := context.WithCancel(ctx)
	defer cease()
	go func() {
		defer cease()
		ended <- daemon.keep(keepCtx)
	}()
	err := r.fire(fireCtx, daemon, killIndexer, fmt.Sprintf("stage %d", stage))
	daemon.stop()
	select {
	case ending := <-ended:
		err = errors.Join(err, ending)
	case <-time.After(stopLimit):
		daemon.dump()
		err = errors.Join(err, fmt.Errorf("the indexer does not end within %v of SIGTERM: its stacks are in its log",
			stopLimit), <-ended)
	}
	if err != nil {
		return err
	}
	last := r.program(fmt.Sprintf("indexer-%d-until-current", stage), "indexer", "", "run", "--until-current")
	ctx, cancel := context.WithTimeout(ctx, finishLimit)
	defer cancel()
	return last.keep(ctx)
}

// target is something that faults hit.
type target struct {
	name     string
	schedule *schedule
	strike   func(context.Context, fault) (bool, error)
}

// fire injects the faults of all schedules while the ledger grows, until enough took effect, the time is over, or ctx
// ends. When it returns, everything works again.
func (r *round) fire(ctx context.Context, p *program, kill faultKind, purpose string) error {
	random := func(target string) *rand.Rand { return randomOf(r.plan.seed, purpose+" "+target) }
	targets := []target{
		{"program", programFaults(random("program"), kill), p.strike},
		{"postgres", postgresFaults(random("postgres"), r.postgres.disk != nil),
			func(ctx context.Context, f fault) (bool, error) {
				r.outages.Add(1)
				defer r.outages.Add(1)
				return r.postgres.strike(ctx, f)
			}},
		{"participant", participantFaults(random("participant")), r.strikeParticipant(kill)},
		{"scan", scanFaults(random("scan")), r.history.strike},
	}
	if kill != killIndexer {
		targets = targets[:3] // only the daemon reads of the Scan
	}
	ctx, cease := context.WithTimeout(ctx, r.Longest)
	defer cease()
	group, ctx := errgroup.WithContext(ctx)
	if kill == killIndexer && (r.plan.redacts || r.plan.prunes) {
		o := &operator{round: r, random: random("operator"), name: strings.ReplaceAll(purpose, " ", "-")}
		targets = append(targets, target{"operator", erasureFaults(random("erasure")), o.strike})
		group.Go(func() error { return o.work(ctx) })
	}
	most := r.tally.Total() + r.Faults
	for _, t := range targets {
		group.Go(func() error {
			for {
				f := t.schedule.next()
				pause(ctx, f.wait)
				if ctx.Err() != nil {
					return nil
				}
				took, err := t.strike(ctx, f)
				if took {
					r.tally.hit(f.kind)
				}
				if err != nil {
					return fmt.Errorf("%s: %s: %w", t.name, f.kind, err)
				}
				if r.tally.Total() >= most {
					cease()
				}
			}
		})
	}
	if kill == killIndexer {
		group.Go(func() error {
			r.grow(ctx, purpose)
			return nil
		})
	}
	return group.Wait()
}

// strikeParticipant returns the participant's strike. The first restart under the daemon upgrades it to the next
// release.
func (r *round) strikeParticipant(kill faultKind) func(context.Context, fault) (bool, error) {
	return func(ctx context.Context, f fault) (bool, error) {
		if f.kind == restartServer && kill == killIndexer && r.plan.next != "" && r.participant.version != r.plan.next {
			r.tally.hit(upgradeRelease)
			return false, r.participant.upgrade(ctx, f.long)
		}
		return r.participant.strike(ctx, f)
	}
}

// grow adds the stage's updates, a few at a time, for as long as faults may come.
func (r *round) grow(ctx context.Context, purpose string) {
	random := randomOf(r.plan.seed, purpose+" growth")
	each := r.Longest / time.Duration(r.plan.growth)
	for ctx.Err() == nil {
		n := 1 + random.IntN(6)
		r.ledger.Grow(n)
		pause(ctx, time.Duration(n)*each)
	}
}
