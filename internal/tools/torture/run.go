package torture

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Config says what to run.
type Config struct {
	Programs string        // folder of the programs indexer and backfill
	Folder   string        // for the programs' logs
	Seed     uint64        // of the first round; each next round has the next one
	Rounds   int           // how many
	Faults   int           // a stage of a round ends after this many effective faults,
	Longest  time.Duration // or after this time
	Say      func(format string, args ...any)
}

// Failure is a round that went wrong.
type Failure struct {
	Seed   uint64 // repeats the round
	Folder string // of the logs
	Err    error
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%v\n\nlogs: %s\nto repeat it: make torture SEED=%d ROUNDS=1", f.Err, f.Folder, f.Seed)
}

func (f *Failure) Unwrap() error { return f.Err }

// Run runs the rounds in sequence, up to the first that fails: a *Failure. The tally is valid with an error, too.
func Run(ctx context.Context, c Config) (t *Tally, err error) {
	t = newTally()
	p, err := startPostgres(ctx)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if p.noDisk != nil {
		c.Say("no real disk becomes full here, only the error is injected: %v", p.noDisk)
	} else {
		c.Say("PostgreSQL's data is on a file system of %d MB, which becomes full", diskSize>>20)
	}
	for i := range c.Rounds {
		seed := c.Seed + uint64(i)
		began, before := time.Now(), t.Total()
		if err := runRound(ctx, c, seed, p, t); err != nil {
			return t, &Failure{Seed: seed, Folder: c.Folder, Err: fmt.Errorf("round %d, seed %d: %w", i+1, seed, err)}
		}
		c.Say("round %d of %d: %d faults, %v; so far %d faults", i+1, c.Rounds, t.Total()-before,
			time.Since(began).Round(100*ms), t.Total())
	}
	return t, nil
}
