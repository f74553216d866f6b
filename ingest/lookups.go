package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"ledgerindexer/ledger"
)

// How often, and how patiently, the task Lookups looks up contracts that ended without having begun here.
const (
	// The outcomes of this much time are stored together.
	lookupStretch = time.Second
	// A contract whose answers are unusable is given up after this many tries, this far apart: a proxy that sends wrong
	// answers for some minutes must not spoil contracts.
	unusableTries = 5
	unusableWait  = 5 * time.Minute
	// About this many contracts with failures are remembered. If as many have unusable answers, no other is asked for
	// until one of them is given up, or answered.
	mostFailed = 1000

	// The database is asked for wanted look-ups after commits, at most this often,
	wantedEvery = 5 * time.Second
	// and this often where nothing is committed.
	idleLookups = time.Minute
)

// LookupSource is where contracts are looked up.
type LookupSource interface {
	// ContractByID reads a contract that has one of the querying parties as a stakeholder; without querying parties any
	// contract. Errors: ledger.ErrNotFound; ledger.ErrNotOffered; a *ledger.DecodeError or *UnusableError for an answer
	// that is unusable for this contract only.
	ContractByID(ctx context.Context, contractID string, queryingParties []string) (ledger.Contract, ledger.JSON, error)
}

// LookupSink knows which contracts to look up, and stores the outcomes.
type LookupSink interface {
	TaskSink
	// WantedLookups returns the ids of the contracts to look up, oldest first, at most limit.
	WantedLookups(ctx context.Context, limit int) ([]string, error)
	// SaveLookups stores outcomes; these contracts are no longer wanted.
	SaveLookups(ctx context.Context, lookups []ledger.Lookup) error
}

// Lookups is the background task that looks up contracts whose creation lies below the history floor (interface.md,
// endpoint 3). It is used once.
type Lookups struct {
	Source  LookupSource
	Sink    LookupSink
	Parties []string // the querying parties; none: any
	Rate    int      // requests per second at most, at least 1
	// Wake, if not nil, wakes the task after a commit, which may want more look-ups.
	Wake   <-chan struct{}
	Finish <-chan struct{} // see TaskReport
	Logger *slog.Logger
	Watch  TaskWatch
	// Saved, if set, is called for each outcome that was stored.
	Saved func(status ledger.LookupStatus)
}

// Run works until ctx ends or all are looked up after Finish. Its error is that of RunTask.
func (l *Lookups) Run(ctx context.Context) error {
	q := lookupQueue{
		Lookups: l, batch: l.Rate * int(lookupStretch/time.Second), failed: map[string]*contractFailures{},
		task: newTask(TaskReport{Name: TaskLookups, Sink: l.Sink, Logger: l.Logger, Watch: l.Watch, Finish: l.Finish}),
	}
	return q.task.run(ctx, q.follow)
}

// follow looks up what is wanted, until something fails, ctx ends, or nothing is left to finish.
func (q *lookupQueue) follow(ctx context.Context, worked func()) error {
	for ctx.Err() == nil {
		last := q.task.finishing()
		ids, err := q.next(ctx)
		putOff := false
		if err == nil && len(ids) > 0 {
			putOff, err = q.work(ctx, ids)
		}
		switch {
		case err != nil:
			return err
		case putOff: // the contracts that were put off decide whether the task works
		case len(ids) > 0 || q.task.failing() && len(q.failed) == 0:
			worked()
		case last && len(q.failed) == 0:
			return nil
		case last: // others have to be tried again later
			Sleep(ctx, wantedEvery)
		default:
			SleepOr(ctx, idleLookups, q.Wake, q.Finish)
			SleepOr(ctx, time.Until(q.looked.Add(wantedEvery)), q.Finish, nil)
		}
	}
	return nil
}

type lookupQueue struct {
	*Lookups
	task  *task
	batch int

	looked time.Time                    // when the database was asked what is wanted
	asked  time.Time                    // when the last request was sent
	failed map[string]*contractFailures // by contract id, of this run
}

// contractFailures records the failures of a contract. Contracts with fewer failures come first, so that one that
// always fails does not delay the others.
type contractFailures struct {
	failures  int
	unusable  int       // how many of them were unusable answers
	notBefore time.Time // when to try again
}

func (q *lookupQueue) failures(id string) int {
	if t := q.failed[id]; t != nil {
		return t.failures
	}
	return 0
}

func (q *lookupQueue) next(ctx context.Context) ([]string, error) {
	q.looked = time.Now()
	if len(q.failed) >= mostFailed { // what fails in another way is never given up, so it need not be remembered
		maps.DeleteFunc(q.failed, func(_ string, t *contractFailures) bool { return t.unusable == 0 })
	}
	limit := len(q.failed)
	if limit < mostFailed {
		limit += q.batch
	}
	ids, err := q.Sink.WantedLookups(ctx, limit)
	if err != nil {
		return nil, err
	}
	if len(ids) < limit { // these are all
		for id := range q.failed {
			if !slices.Contains(ids, id) {
				delete(q.failed, id)
			}
		}
	}
	ids = slices.DeleteFunc(ids, func(id string) bool {
		t := q.failed[id]
		return t != nil && q.looked.Before(t.notBefore)
	})
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(q.failures(a), q.failures(b)) })
	return ids[:min(len(ids), q.batch)], nil
}

// work looks contracts up until one fails, and stores the outcomes, also when the task has to end meanwhile. Contracts
// with more failures than the first are put off to the next call, so that outcomes are stored before a request that may
// take long and fail.
func (q *lookupQueue) work(ctx context.Context, ids []string) (putOff bool, err error) {
	var lookups []ledger.Lookup
	var failure error
	var began time.Time
	for i, id := range ids {
		Sleep(ctx, time.Until(q.asked.Add(time.Second/time.Duration(q.Rate))))
		if ctx.Err() != nil || i > 0 && time.Since(began) >= lookupStretch {
			break
		}
		if putOff = q.failures(id) > q.failures(ids[0]); putOff {
			break
		}
		q.asked = time.Now()
		if i == 0 {
			began = q.asked
		}
		lookup, err := q.lookUp(ctx, id)
		if err != nil {
			failure = err
			break
		}
		lookups = append(lookups, lookup)
	}
	if len(lookups) > 0 {
		saving, cancel := graceContext(ctx)
		defer cancel()
		if err := q.save(saving, lookups); err != nil {
			return false, err
		}
	}
	return putOff, failure
}

// lookUp asks for a contract. It returns an error if the contract is to be tried again.
func (q *lookupQueue) lookUp(ctx context.Context, id string) (ledger.Lookup, error) {
	var contract ledger.Contract
	err := withTimeout(ctx, lookupPatience, func(ctx context.Context) (err error) {
		contract, _, err = q.Source.ContractByID(ctx, id, q.Parties)
		return err
	})
	if err == nil && contract.ContractID != id {
		err = &UnusableError{fmt.Errorf("asked for contract %s, the answer is of contract %s", ledger.Quoted(id),
			ledger.Quoted(contract.ContractID))}
	}
	lookup := ledger.Lookup{ContractID: id, At: time.Now()}
	switch {
	case err == nil:
		lookup.Status, lookup.Contract = ledger.LookupFound, &contract
		q.task.retry.Worked()
	case errors.Is(err, ledger.ErrNotFound):
		lookup.Status = ledger.LookupNotFound
		q.task.retry.Worked()
	case ctx.Err() != nil || q.noteFailure(id, err):
		return lookup, err
	default:
		lookup.Status, lookup.Reason = ledger.LookupUnusable, Reason(err)
		q.Logger.WarnContext(ctx, "a contract can't be looked up", "contract_id", id, "error", lookup.Reason)
	}
	return lookup, nil
}

// noteFailure records a failure, and reports whether to try the contract again.
func (q *lookupQueue) noteFailure(id string, err error) bool {
	t := q.failed[id]
	if t == nil {
		t = &contractFailures{}
		q.failed[id] = t
	}
	t.failures++
	if !unusable(err) {
		return true
	}
	t.unusable++
	t.notBefore = time.Now().Add(unusableWait)
	return t.unusable < unusableTries
}

// save stores outcomes. A contract that the database refuses even alone is stored as unusable.
func (q *lookupQueue) save(ctx context.Context, lookups []ledger.Lookup) error {
	err := q.Sink.SaveLookups(ctx, lookups)
	if Lasting(err) && len(lookups) > 1 {
		for i := range lookups {
			if err := q.save(ctx, lookups[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	if Lasting(err) && lookups[0].Status == ledger.LookupFound {
		refused := ledger.Lookup{ContractID: lookups[0].ContractID, At: lookups[0].At, Status: ledger.LookupUnusable,
			Reason: Reason(err)}
		q.Logger.WarnContext(ctx, "a contract can't be looked up", "contract_id", refused.ContractID, "error", refused.Reason)
		return q.save(ctx, []ledger.Lookup{refused})
	}
	if err != nil {
		return err
	}
	for _, lookup := range lookups {
		delete(q.failed, lookup.ContractID)
		if q.Saved != nil {
			q.Saved(lookup.Status)
		}
	}
	return nil
}
