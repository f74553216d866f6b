package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/scan"
	"ledgerindexer/store"
)

// networkOffsets is about how many offsets go by from one update of a network to the next: they are microseconds.
const networkOffsets = 1_000_000

// networkUpdates implements origin for the updates of a network, which a Scan service has. They are a ledger of their own, in a pair of
// schemas of its own.
type networkUpdates struct {
	*indexer
	*scan.Updates
	client *scan.Client
}

// newNetworkUpdates opens the pair of schemas of the network in the database of another one. Nothing is looked up in a Scan service, and
// no package read.
func newNetworkUpdates(other *indexer) (*networkUpdates, error) {
	x := &indexer{daemon: other.daemon, cfg: other.cfg, logger: other.logger.With("ledger", "network"), metrics: other.metrics.OfNetwork()}
	if x.cfg.LedgerURL != "" { // whose updates are shown
		x.cfg.Show = nil
	}
	client, err := scan.New(scan.Config{
		URL: x.cfg.ScanURL, Access: x.cfg.ScanAccess.Domain("scan"), Logger: x.logger,
		Observe: func(operation string, status int, d time.Duration, bytes int64) {
			other.metrics.Request("scan-"+operation, status, d, bytes)
		},
		NotJSON: func(operation string) { other.metrics.NotJSON("scan-" + operation) },
	})
	if err != nil {
		return nil, &config.UsageError{Err: err}
	}
	if err := x.open(config.NetworkSchemas, networkOffsets); err != nil {
		client.Close()
		return nil, err
	}
	return &networkUpdates{indexer: x, Updates: scan.NewUpdates(client), client: client}, nil
}

// Close closes the service's connections and the store.
func (n *networkUpdates) Close() {
	n.client.Close()
	waitOrAbandon(n.store.Close)
}

// ping asks for the service's release. A service that does not return it has answered too.
func (n *networkUpdates) ping(ctx context.Context) error {
	_, err := n.client.Version(ctx)
	if errors.Is(err, ledger.ErrNotOffered) {
		return nil
	}
	return err
}

// identify implements origin. The network's party is in the place of a participant, and the scope is what it sees.
func (n *networkUpdates) identify(ctx context.Context) (identity, error) {
	party, err := n.Party(ctx)
	if err != nil {
		return identity{}, err
	}
	return identity{party, ledger.Scope{Parties: []string{party}, Shape: ledger.ShapeLedgerEffects, Reassignments: true}}, nil
}

// release implements origin.
func (n *networkUpdates) release(ctx context.Context) string {
	release, err := n.client.Version(ctx)
	if err != nil { // ping says so
		return ""
	}
	return release
}

// refusal implements origin. A problem that has a cause is the database's own.
func (n *networkUpdates) refusal(err error) error {
	var problem *ledger.Problem
	if !errors.As(err, &problem) || problem.Err != nil {
		return err
	}
	return &ledger.Problem{
		What: fmt.Sprintf("schema %s of database %s holds the updates of another network than that of the Scan service", config.NetworkSchemas.Views, n.store.Address()),
		Do:   "correct --scan-url or --database-url; each network needs a database of its own",
		Err:  err,
	}
}

// resumes implements origin. A Scan service that has not come as far as what is stored lags behind, and is no fork.
func (n *networkUpdates) resumes(stored ledger.Offset) { n.Expect(stored) }

// startTasks implements origin: beside these updates nothing is read.
func (n *networkUpdates) startTasks(ctx context.Context, leader *store.UpdatesWriter) *background {
	b := &background{}
	n.startPruning(ctx, b, leader)
	return b
}

// LedgerEnd returns the offset of the newest update. A service without updates is a *ledger.Problem: it can't be read without its end.
func (n *networkUpdates) LedgerEnd(ctx context.Context) (ledger.Offset, error) {
	end, err := n.Updates.LedgerEnd(ctx)
	if errors.Is(err, ledger.ErrNotOffered) {
		return 0, &ledger.Problem{
			What: fmt.Sprintf("the Scan service does not serve the updates of its network (POST /v2/updates): %v", err),
			Do:   "check --scan-url; services of Splice 0.4.2 or later have them. To read the transaction history instead, give --scan-history=transactions",
		}
	}
	return end, err
}
