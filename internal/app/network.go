package app

import (
	"context"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// networkUpdates implements daemonSource for the updates of a network, which a Scan service has. They are a ledger of
// their own, in a pair of schemas of its own.
type networkUpdates struct {
	*indexer
	*Network
}

// newNetworkUpdates opens the pair of schemas of the network, in the database that has that of the participant.
func newNetworkUpdates(other *indexer) (*networkUpdates, error) {
	x := &indexer{daemon: other.daemon, cfg: other.cfg, logger: networkLogger(other.logger),
		metrics: other.metrics.OfNetwork()}
	if other.tracer != nil {
		x.tracer = other.tracer.OfNetwork()
	}
	from, err := newNetwork(x.cfg.Scan(), x.logger, observed(other.metrics))
	if err != nil {
		return nil, err
	}
	if err := x.open(config.NetworkSchemas); err != nil {
		from.Close()
		return nil, err
	}
	return &networkUpdates{x, from}, nil
}

const historyNotRead = "the transaction history that is stored is not read any more: --scan-history=transactions " +
	"reads it, from a Scan of Splice 0.6 or earlier; this process reads the updates of the network, and the records " +
	"that follow from them are in schema network"

// tellHistoryNotRead warns of a transaction history that was read into the other pair of schemas, where the updates of
// the network are read now: nothing else would show that it ends.
func (x *indexer) tellHistoryNotRead(ctx context.Context) {
	if len(x.cfg.ScanURL) == 0 || x.cfg.ScanHistory == config.ScanTransactions || x.schemas.OfNetwork() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	if err := x.store.CheckSchema(ctx); err != nil { // without a participant there may be no such pair
		x.logger.DebugContext(ctx, "no transaction history was looked for", "reason", err)
		return
	}
	heads, err := x.store.Heads(ctx)
	var status store.Status
	if err == nil && heads.Seq > 0 {
		status, err = x.store.Status(ctx)
	}
	switch history := status.Transactions; {
	case err != nil:
		x.logger.WarnContext(ctx, "whether a transaction history is stored that is not read any more can't be found out",
			"schema", x.schemas.Views, "error", err)
	case history != nil && !status.TransactionsLeader.Leads:
		x.logger.WarnContext(ctx, historyNotRead,
			"schema", x.schemas.Views, "records", history.Records, "newest_record", history.NewestRecord)
	}
}

func (n *networkUpdates) streams() []*stream {
	return []*stream{{
		indexer: n.indexer, lease: store.LeaseUpdates, title: "network", sourceName: scanService,
		work: &updates{indexer: n.indexer, origin: n},
	}}
}

func (n *networkUpdates) Close() {
	n.Network.Close()
	waitOrAbandon(n.store.Close)
}

func (n *networkUpdates) ping(ctx context.Context) error {
	_, err := n.Version(ctx)
	return reachable(err)
}

// startTasks implements daemonSource. No package can be read. A Scan service has no look-ups, so all that are wanted
// get the answer that the contract is not known, without a request: nothing waits for one for ever.
func (n *networkUpdates) startTasks(ctx context.Context, leader *store.UpdatesWriter,
	past audit.UpdateSource) *background {
	b := newBackground()
	n.startLookups(ctx, b, leader, ingest.Lookups{Source: n, Rate: lookupsAtOnce})
	n.startRecords(ctx, b, leader)
	n.startPruning(ctx, b, leader)
	n.startSealing(ctx, b, leader, past)
	return b
}

// startRecords starts to derive the records of the transaction history from the updates that are stored.
func (n *networkUpdates) startRecords(ctx context.Context, b *background, leader *store.UpdatesWriter) {
	report := n.report(ingest.TaskRecords, leader.Leader)
	report.Finish = b.current
	b.start(ingest.TaskRecords, func() error {
		return ingest.RunEvery(ctx, report, recordsEvery, func(ctx context.Context) error { return n.derive(ctx, leader) })
	})
}

// recordsEvery is how often it is looked whether there are updates whose records are not derived.
const recordsEvery = time.Second

// derive derives the records of all updates that are new.
func (n *networkUpdates) derive(ctx context.Context, leader *store.UpdatesWriter) error {
	for ctx.Err() == nil {
		step, err := leader.DeriveRecords(ctx)
		if err != nil {
			return err
		}
		if step.Why != "" {
			n.logger.InfoContext(ctx, "deriving the transaction history again", "reason", step.Why)
		}
		n.metrics.TransactionsCommitted(step.LastSeq, false, step.Records)
		n.metrics.Derived(int64(step.To))
		if !step.Newest.IsZero() {
			n.metrics.TransactionStored(step.Newest)
		}
		if !step.More {
			n.metrics.TransactionsCurrent()
			return nil
		}
	}
	return nil
}

// lookupsAtOnce is how many look-ups that need no request are answered per second.
const lookupsAtOnce = 1000

func (n *networkUpdates) release(ctx context.Context) string {
	release, _ := n.Version(ctx) // ping says what is wrong
	return release
}
