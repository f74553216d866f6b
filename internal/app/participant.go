package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// participantUpdates implements daemonSource for a participant.
type participantUpdates struct {
	*indexer
	*participantSource
	start ingest.Start
}

func newParticipantUpdates(x *indexer) (*participantUpdates, error) {
	start, err := ingest.ParseStart(x.cfg.Start)
	if err != nil {
		return nil, err
	}
	from, err := newParticipantSource(x.cfg.Ledger(), x.cfg.RequestLimits, x.cfg.Domain(), x.logger, observed(x.metrics))
	if err != nil {
		return nil, err
	}
	return &participantUpdates{x, from, start}, nil
}

func (u *participantUpdates) ping(ctx context.Context) error {
	_, err := u.LedgerEnd(ctx)
	return reachable(err)
}

func (u *participantUpdates) release(context.Context) string {
	if server := u.server.Load(); server != nil {
		return server.Version
	}
	return ""
}

func (u *participantUpdates) ofScope(scope ledger.Scope) (source, error) {
	seen := observed(u.metrics)
	seen.reached = true
	return newParticipantSource(u.cfg.Ledger(), u.cfg.RequestLimits, scope, u.logger, seen)
}

// startTasks implements daemonSource: it starts the tasks that are configured; they end with ctx.
func (u *participantUpdates) startTasks(ctx context.Context, leader *store.UpdatesWriter,
	past audit.UpdateSource) *background {
	b := newBackground()
	if u.cfg.LookupRate > 0 {
		u.startLookups(ctx, b, leader, ingest.Lookups{Source: contracts{u.Client}, Parties: u.scope.Parties,
			Rate: u.cfg.LookupRate})
	}
	if u.cfg.PackagesInterval > 0 {
		packages := ingest.Vetting{
			Read: u.vettedPackages, Sink: leader, Every: u.cfg.PackagesInterval, Logger: u.logger,
			Watch: u.watchTask(ingest.TaskVetting), Saved: u.metrics.PackagesRead, Finish: b.current,
		}
		vetted := make(chan struct{}) // closed when no more are vetted, whose types are read
		b.start(ingest.TaskVetting, func() error {
			defer close(vetted)
			return packages.Run(ctx)
		})
		b.start(ingest.TaskPackages, func() error { return u.readTypes(ctx, leader, b.forPackages, vetted) })
	}
	hosting := ingest.Hosting{
		Hosted: u.hostedParties, Sink: leader, Named: u.scope.Parties, Wake: b.forHosting, Logger: u.logger,
		Watch:  u.watchTask(ingest.TaskHosting),
		Finish: b.current,
	}
	b.start(ingest.TaskHosting, func() error { return hosting.Run(ctx) })
	u.startPruning(ctx, b, leader)
	u.startSealing(ctx, b, leader, past)
	return b
}

// contracts implements ingest.LookupSource with a participant.
type contracts struct{ client *participant.Client }

// ContractByID returns an *ingest.UnusableError for an answer that is wrong about this contract only, and not because
// the participant, or a proxy before it, fails.
func (c contracts) ContractByID(ctx context.Context, id string,
	queryingParties []string) (ledger.Contract, ledger.JSON, error) {
	contract, body, err := c.client.ContractByID(ctx, id, queryingParties)
	var answer *participant.Error
	aboutIt := errors.As(err, &answer) && answer.Operation == "contract-by-id" && !errors.Is(err, jsonhttp.ErrCutOff) &&
		!errors.Is(err, jsonhttp.ErrNotJSON)
	if aboutIt && (answer.Status == http.StatusOK || answer.Status == http.StatusBadRequest) {
		err = &ingest.UnusableError{Err: err}
	}
	return contract, body, err
}

// vettedPackages reads what the participant itself has vetted. It lists the packages of other participants too.
func (u *participantUpdates) vettedPackages(ctx context.Context) ([]ledger.VettedPackages, error) {
	id := u.server.Load().ParticipantID
	if id == "" {
		// A server that has no such list returns ledger.ErrNotOffered, which comes before the cure below.
		if _, err := u.Client.ListVettedPackages(ctx, participant.VettingFilter{}); err != nil {
			return nil, err
		}
		return nil, &ledger.Problem{
			What: "the participant does not report its id, so its own vetted packages can't be distinguished from those of " +
				"others",
			Do: "use a participant and a user that may ask for it, or end the tries with --packages-interval=0",
		}
	}
	return u.Client.ListVettedPackages(ctx, participant.VettingFilter{ParticipantIDs: []string{id}})
}

// hostedParties asks which parties the participant hosts. To users who may not ask it does not offer that.
func (u *participantUpdates) hostedParties(ctx context.Context, parties []string) (map[string]bool, error) {
	hosted, err := u.Client.Hosted(ctx, parties)
	var answer *participant.Error
	if errors.As(err, &answer) && answer.Status == http.StatusForbidden {
		err = fmt.Errorf("%w: %w", ledger.ErrNotOffered, err)
	}
	return hosted, err
}

// readTypes stores the packages that events name or that are vetted, and what they say of types, until ctx ends
// or, after finish, all are stored. The error is that of ingest.RunTask.
func (u *participantUpdates) readTypes(ctx context.Context, leader *store.UpdatesWriter, wake,
	finish <-chan struct{}) error {
	types := newTypes(ctx, packageSource{u.Client}, leader, u.logger)
	types.Wake, types.Finish, types.Watch, types.Outcome = wake, finish, u.watchTask(ingest.TaskPackages),
		u.metrics.PackageTypes
	return types.Run(ctx)
}

// packageSource implements ingest.PackageSource with a participant.
type packageSource struct{ client *participant.Client }

// Package returns an *ingest.UnusableError for an answer that is wrong about this package only, and not because the
// participant, or a proxy before it, fails.
func (p packageSource) Package(ctx context.Context, id string) ([]byte, error) {
	content, err := p.client.Package(ctx, id)
	var answer *participant.Error
	aboutIt := errors.As(err, &answer) && !errors.Is(err, jsonhttp.ErrCutOff) && !errors.Is(err, jsonhttp.ErrNotJSON)
	if aboutIt && answer.Status == 200 {
		err = &ingest.UnusableError{Err: err}
	}
	return content, err
}
