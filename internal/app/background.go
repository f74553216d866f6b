package app

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
	"ledgerindexer/store"
)

// background is what runs beside the stream while this process leads. It never ends the stream and never holds it up.
type background struct {
	committed chan struct{} // has room for one: a batch was committed
	running   sync.WaitGroup
}

// startBackground starts the tasks that are wanted; they end with ctx.
func (x *indexer) startBackground(ctx context.Context, leader *store.Leader) *background {
	b := &background{committed: make(chan struct{}, 1)}
	if x.cfg.LookupRate > 0 {
		lookups := ingest.Lookups{
			Source: contracts{x.client}, Sink: leader, Parties: x.scope.Parties, Rate: x.cfg.LookupRate, Wake: b.committed,
			Logger: x.logger, Watch: x.watchTask(ingest.TaskLookups),
			Saved: func(status ledger.LookupStatus) { x.metrics.LookedUp(string(status)) },
		}
		b.running.Go(func() { lookups.Run(ctx) })
	}
	if x.cfg.PackagesInterval > 0 {
		packages := ingest.Packages{
			Read: x.vettedPackages, Sink: leader, Every: x.cfg.PackagesInterval, Logger: x.logger,
			Watch: x.watchTask(ingest.TaskPackages), Saved: x.metrics.PackagesRead,
		}
		b.running.Go(func() { packages.Run(ctx) })
	}
	return b
}

// longestGoodbye is how long the end of a term waits for each of the things that end with it.
const longestGoodbye = 3 * time.Second

// ending calls fn and waits until it is done, but not longer than longestGoodbye: then it returns what is closed when fn
// is done, else nil. Tasks end sooner by themselves, and so does a leader, but not where the database hangs: its
// connections take 15 s to be given up.
func ending(fn func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		fn()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(longestGoodbye):
		return done
	}
}

// wake tells that a batch was committed. It does not wait for anybody to hear it.
func (b *background) wake() {
	select {
	case b.committed <- struct{}{}:
	default:
	}
}

// contracts is the participant as look-ups need it.
type contracts struct{ client *participant.Client }

// ContractByID tells answers that are wrong about one contract from a participant that fails.
func (c contracts) ContractByID(ctx context.Context, id string, queryingParties []string) (ledger.Contract, ledger.JSON, error) {
	contract, body, err := c.client.ContractByID(ctx, id, queryingParties)
	var answer *participant.Error
	aboutIt := errors.As(err, &answer) && answer.Operation == "contract-by-id" && !errors.Is(err, participant.ErrCutOff)
	if aboutIt && (answer.Status == http.StatusOK || answer.Status == http.StatusBadRequest) {
		err = &ingest.UnusableError{Err: err}
	}
	return contract, body, err
}

func (x *indexer) watchTask(name string) ingest.TaskWatch {
	return ingest.TaskWatch{
		Retrying: func() { x.metrics.Retrying(name) },
		Failing:  func(failing bool) { x.metrics.TaskFailing(name, failing) },
	}
}

// vettedPackages reads what the participant itself has vetted: it also knows what others have.
func (x *indexer) vettedPackages(ctx context.Context) ([]ledger.VettedPackages, error) {
	id := x.server.Load().ParticipantID
	if id == "" {
		// A server that has no such list is not to be cured by another user.
		if _, err := x.client.ListVettedPackages(ctx, participant.VettingFilter{}); err != nil {
			return nil, err
		}
		return nil, &ledger.Problem{
			What: "the participant does not tell its id, so its own vetted packages can't be told from those of others",
			Do:   "use a participant and a user that may ask for it, or end the tries with --packages-interval=0",
		}
	}
	return x.client.ListVettedPackages(ctx, participant.VettingFilter{ParticipantIDs: []string{id}})
}
