package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/admin"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
	"ledgerindexer/scan"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// source is where the updates of a ledger are read from: a participant, or a Scan service.
type source interface {
	seeder
	ingest.UpdateSource
	audit.UpdateSource
	// setMinimum is called before updates are read, with an offset at or above which an update is stored.
	setMinimum(stored ledger.Offset)
}

// seeder is where a snapshot is read from.
type seeder interface {
	ingest.SnapshotSource
	// name returns what it is, for messages.
	name() string
	// identify asks the source who it is.
	identify(ctx context.Context) (identity, error)
	// refusal returns the error for a database of another ledger or scope, from that of the store.
	refusal(err error, database string) error
	Close()
}

// identity identifies the ledger that a database holds, and in which scope.
type identity struct {
	id    string // empty: the source does not report it
	scope ledger.Scope
}

// observation has the callbacks for requests. Each may be nil.
type observation struct {
	request func(ctx context.Context, operation string, status int, d time.Duration, bytes int64)
	decoded func(ctx context.Context, operation string, d time.Duration)
	notJSON func(operation string)
	passed  func(service, reason string) // of several Scan services one is passed over
	reached bool                         // another client got usable answers from the server
}

// observed returns the callbacks that count requests in m. A process counts them once: those of a network too in the
// metrics of the first ledger, as operations that begin with scan-.
func observed(m *admin.Metrics) observation {
	return observation{request: m.Request, decoded: m.Decoded, notJSON: m.NotJSON, passed: m.ScanPassed}
}

// participantSource implements source.
type participantSource struct {
	*participant.Client
	scope  ledger.Scope
	server atomic.Pointer[participant.Server] // what the participant last reported of itself
}

func newParticipantSource(cfg config.Ledger, limits config.RequestLimits, scope ledger.Scope, logger *slog.Logger,
	seen observation) (*participantSource, error) {
	client, err := participant.New(participant.Config{
		URL: cfg.LedgerURL, Access: cfg.LedgerAccess, Logger: logger, Observe: seen.request, Decoded: seen.decoded,
		NotJSON: seen.notJSON, Reached: seen.reached,
		MaxRequests: limits.MaxRequests, MaxRate: limits.MaxRate,
	}, scope)
	if err != nil {
		return nil, &config.UsageError{Err: err}
	}
	return &participantSource{Client: client, scope: scope}, nil
}

func (p *participantSource) name() string { return "the participant" }

func (p *participantSource) identify(ctx context.Context) (identity, error) {
	server, err := p.Discover(ctx)
	if err != nil {
		return identity{}, err
	}
	p.server.Store(&server)
	return identity{server.ParticipantID, p.scope}, nil
}

func (p *participantSource) refusal(err error, _ string) error { return err }

func (p *participantSource) setMinimum(ledger.Offset) {}

// Network reads the updates of a network from its Scan services. It implements source.
type Network struct{ networkReader }

// networkReader reads the updates of a network: from one Scan service ([scan.Updates]) or from several
// ([scan.Quorum]).
type networkReader interface {
	ingest.UpdateSource
	ingest.SnapshotSource
	// Party returns the party that operates the network.
	Party(ctx context.Context) (string, error)
	// SetMinimum says that an update at or above an offset was served before.
	SetMinimum(offset ledger.Offset)
	// Stretches returns the parts of a range in which there are updates.
	Stretches(ctx context.Context, r ledger.Range) ([]ledger.Range, error)
	// Version returns the release of the service, of the first one that answers if there are several.
	Version(ctx context.Context) (string, error)
	Close()
}

// OpenNetwork returns the network whose services a configuration names. It sends nothing.
func OpenNetwork(cfg config.Scan, logger *slog.Logger) (*Network, error) {
	return newNetwork(cfg, logger, observation{})
}

// SameNetwork refuses services of another network than that of the database.
func (n *Network) SameNetwork(ctx context.Context, db *store.Store) error {
	_, err := checkSameLedger(ctx, db, n)
	return err
}

func newNetwork(cfg config.Scan, logger *slog.Logger, seen observation) (*Network, error) {
	var services []*scan.Updates
	for _, url := range cfg.ScanURL {
		client, err := newScanClient(url, cfg.ScanAccess, logger, seen)
		if err != nil {
			for _, opened := range services {
				opened.Close()
			}
			return nil, err
		}
		services = append(services, scan.NewUpdates(client))
	}
	if len(services) == 1 {
		return &Network{services[0]}, nil
	}
	return &Network{scan.NewQuorum(services, scan.QuorumConfig{Agree: max(1, cfg.ScanAgree), Logger: logger,
		Passed: seen.passed})}, nil
}

func newScanClient(url string, credentials access.Config, logger *slog.Logger, seen observation) (*scan.Client, error) {
	c := scan.Config{URL: url, Access: credentials, Logger: logger}
	if seen.request != nil { // the participant has operations of the same names
		c.Observe = func(ctx context.Context, operation string, status int, d time.Duration, bytes int64) {
			seen.request(ctx, "scan-"+operation, status, d, bytes)
		}
	}
	if seen.decoded != nil {
		c.Decoded = func(ctx context.Context, operation string, d time.Duration) { seen.decoded(ctx, "scan-"+operation, d) }
	}
	if seen.notJSON != nil {
		c.NotJSON = func(operation string) { seen.notJSON("scan-" + operation) }
	}
	client, err := scan.New(c)
	if err != nil {
		return nil, &config.UsageError{Err: err}
	}
	return client, nil
}

func (n *Network) name() string { return "the Scan service" }

// identify implements source. The network's party is in the place of a participant, and the scope is what it sees.
func (n *Network) identify(ctx context.Context) (identity, error) {
	party, err := n.Party(ctx)
	if err != nil {
		return identity{}, err
	}
	return identityOf(party), nil
}

// identityOf returns the identity of the network that a party operates.
func identityOf(party string) identity {
	return identity{party, ledger.Scope{Parties: []string{party}, Shape: ledger.ShapeLedgerEffects, Reassignments: true}}
}

// refusal implements source. A problem that has a cause is the database's own.
func (n *Network) refusal(err error, database string) error {
	var problem *ledger.Problem
	if !errors.As(err, &problem) || problem.Err != nil {
		return err
	}
	return otherNetwork(err, database, "the Scan service", "--scan-url")
}

// otherNetwork is the error for a database of another network than that of what a flag names.
func otherNetwork(err error, database, of, flag string) error {
	return &ledger.Problem{
		What: fmt.Sprintf("schema %s of database %s holds the updates of another network than that of %s",
			config.NetworkSchemas.Views, database, of),
		Do:  fmt.Sprintf("correct %s or --database-url; each network needs a database of its own", flag),
		Err: err,
	}
}

// setMinimum implements source. A Scan service that has not come as far as what is stored lags behind, and is no fork.
func (n *Network) setMinimum(stored ledger.Offset) { n.SetMinimum(stored) }

// LedgerEnd returns the offset of the newest update. A service without updates is a *ledger.Problem: it can't be read
// without its end.
func (n *Network) LedgerEnd(ctx context.Context) (ledger.Offset, error) {
	end, err := n.networkReader.LedgerEnd(ctx)
	if errors.Is(err, ledger.ErrNotOffered) {
		return 0, &ledger.Problem{
			What: fmt.Sprintf("the Scan service does not serve the updates of its network (POST /v2/updates): %v", err),
			Do: "check --scan-url; services of Splice 0.4.2 or later have them. What is stored of them stays. To read the " +
				"transaction history instead, into schema ledger, give --scan-history=transactions",
		}
	}
	return end, err
}

// ContractByID returns ledger.ErrNotFound: a Scan service can't be asked for a contract by its id.
func (n *Network) ContractByID(context.Context, string, []string) (ledger.Contract, ledger.JSON, error) {
	return ledger.Contract{}, nil, ledger.ErrNotFound
}

// checkSameLedger asks a source for its identity, and checks that the database holds the same ledger in the same scope.
func checkSameLedger(ctx context.Context, db *store.Store, from seeder) (identity, error) {
	return checkSameLedgerBy(ctx, db, from, db.CheckIdentity)
}

// checkSameLedgerBy is checkSameLedger with another check of the database.
func checkSameLedgerBy(
	ctx context.Context, db *store.Store, from seeder, check func(ctx context.Context, participantID string,
		scope ledger.Scope) error,
) (identity, error) {
	known, err := from.identify(ctx)
	if err != nil {
		return known, err
	}
	if err := check(ctx, known.id, known.scope); err != nil {
		return known, from.refusal(err, db.Address())
	}
	return known, nil
}

// networkLogger returns a logger whose lines say that they are of a network's updates.
func networkLogger(logger *slog.Logger) *slog.Logger { return logger.With("ledger", "network") }

// tellLeftOut logs, when a database begins, what its scope leaves out for good.
func tellLeftOut(ctx context.Context, logger *slog.Logger, scope ledger.Scope) {
	if left := scope.LeftOut(); len(left) > 0 {
		logger.InfoContext(ctx, "the database begins without what its scope leaves out; to have it later takes another "+
			"database or pair of schemas",
			"left_out", strings.Join(left, "; "), "shape", scope.Shape)
	}
}

// updatesSink implements ingest.UpdateSink.
type updatesSink struct {
	*store.UpdatesWriter
	stored *audit.Stored
}

func (s updatesSink) Deviation(ctx context.Context, page ledger.Page) (ingest.Deviation, error) {
	return s.stored.Deviation(ctx, page)
}
