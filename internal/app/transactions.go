package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/admin"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// transactionsService is a service of the transaction history.
type transactionsService interface {
	ingest.TransactionsSource
	// Version returns the service's release. The error may be ledger.ErrNotOffered.
	Version(ctx context.Context) (string, error)
	// HistorySeen notes that the service has had a history, as an earlier process found. If it is missing now, that may
	// pass, unless the service itself says so.
	HistorySeen()
	Close()
}

// newTransactionsService returns the service that the history is read from: a Scan of Splice 0.6 or earlier. A client
// for another kind of service, such as the one that Splice offers instead from 0.7 on, would be chosen here. Of several
// services it is the first: each has an order and offsets of its own.
func newTransactionsService(cfg config.Sources, logger *slog.Logger, seen observation) (transactionsService, error) {
	return newScanClient(cfg.ScanURL[0], cfg.ScanAccess, logger, seen)
}

// transactions implements streamWork for the transaction history of a Scan service.
type transactions struct {
	*indexer
	service transactionsService
}

func newTransactions(x *indexer) (*transactions, error) {
	service, err := newTransactionsService(x.cfg.Sources, x.logger, observed(x.metrics))
	if err != nil {
		return nil, err
	}
	return &transactions{indexer: x, service: service}, nil
}

func (h *transactions) ping(ctx context.Context) error {
	_, err := h.service.Version(ctx)
	return reachable(err)
}

func (h *transactions) release(ctx context.Context) string {
	release, _ := h.service.Version(ctx) // ping says what is wrong
	return release
}

// connect asks the service for its network, and checks that the stored history is of the same. A service that does not
// answer is no error: the leader asks again, and can record why there is nothing to read.
func (h *transactions) connect(ctx context.Context) error {
	service, err := h.service.Describe(ctx)
	switch {
	case err == nil:
		return h.store.CheckNetwork(ctx, service.NetworkID)
	case ingest.Lasting(err):
		return err
	}
	return nil
}

func (h *transactions) blocker(context.Context) (state string, ready bool, err error) {
	return "", true, nil
}

func (h *transactions) take(ctx context.Context) (*store.Leader, func(context.Context, *stream) (bool, error), bool,
	error) {
	writer, ok, err := h.store.LeadTransactions(ctx)
	if err != nil || !ok {
		return nil, nil, false, err
	}
	return writer.Leader, func(ctx context.Context, s *stream) (bool, error) { return h.run(ctx, s, writer) }, true, nil
}

func (h *transactions) run(ctx context.Context, s *stream, leader *store.TransactionsWriter) (done bool, err error) {
	t := &transactionsTerm{transactions: h, stream: s, report: h.report(s.name(), leader.Leader)}
	t.setState()
	defer h.metrics.TasksEnded(s.name())
	report, endRecording := startRecording(ctx, leader.RecordProgress, h.logger)
	watch := t.watch(ctx)
	watch.Progress = report
	loop := ingest.Transactions{
		Source: h.service, Sink: transactionsSink{leader, h},
		Check: func(ctx context.Context, service ledger.TransactionsService) error {
			return leader.RecordNetwork(ctx, service.NetworkID)
		},
		UntilCurrent: h.cfg.UntilCurrent, Logger: h.logger, Watch: watch,
	}
	taskCtx, endTasks := context.WithCancel(ctx)
	defer endTasks()
	tasks := h.startTasks(taskCtx, leader)
	err = loop.Run(ctx)
	if err == nil {
		s.finish(ctx, tasks)
	}
	endTasks()
	tasks.end(ctx, h.indexer)
	endRecording()
	if errors.Is(err, ledger.ErrNotOffered) {
		err = &ledger.Problem{
			What: "the Scan service has no transaction history (POST /v0/transactions), which is gone from Splice 0.7 on",
			Do: "read the updates of the network instead, with --scan-history=updates, into schema network (what is stored " +
				"of the history stays); or give a Scan of Splice 0.6 or earlier with --scan-url, mostly https://HOST/api/scan",
			Err: err,
		}
	}
	if err != nil {
		t.report.Note(ctx, err.Error())
	}
	return err == nil, err
}

// startTasks starts what runs beside the reading of the transaction history until ctx ends: sealing it.
func (h *transactions) startTasks(ctx context.Context, leader *store.TransactionsWriter) *background {
	b := newBackground()
	if h.cfg.VerifyRate > 0 {
		b.start(ingest.TaskTransactionsVerification, func() error {
			return h.seal(ctx, ingest.TaskTransactionsVerification, leader.Leader, b.current, func(s *audit.SealTask) {
				s.AddTransactions(h.service, audit.NewSealer(h.store, leader.Leader))
			})
		})
	}
	return b
}

type transactionsTerm struct {
	*transactions
	stream    *stream
	report    ingest.TaskReport // why there are no records, for `indexer status`
	rereading bool              // the history is read again
}

// watch returns the callbacks that report to metrics and health.
func (t *transactionsTerm) watch(ctx context.Context) ingest.TransactionsWatch {
	return ingest.TransactionsWatch{
		Resumed: func(at ledger.TransactionsPosition) {
			if at.LastSeq > 0 {
				t.service.HistorySeen()
			}
			t.metrics.TransactionsResumed(at.LastSeq, at.Rereading)
			t.setRereading(at.Rereading)
		},
		Committed: func(at ledger.TransactionsPosition, records int) {
			t.metrics.TransactionsCommitted(at.LastSeq, at.Rereading, records)
			t.setRereading(at.Rereading)
			t.noteRead(ctx)
		},
		Current: func() {
			t.metrics.TransactionsCurrent()
			t.noteRead(ctx)
		},
		Retrying: func(err error, _ time.Duration) {
			t.metrics.Retrying(t.stream.name(), retryReason(err))
			t.stream.set(admin.Waits, false, "leading, trying again: "+err.Error())
			t.report.Note(ctx, err.Error())
		},
		Recovered: t.setState,
	}
}

// setRereading notes whether the history is read again; why is in the log.
func (t *transactionsTerm) setRereading(now bool) {
	if t.rereading == now {
		return
	}
	if t.rereading = now; now {
		t.metrics.SourceLost(t.stream.name())
	}
	t.setState()
}

func (t *transactionsTerm) setState() {
	text := "leading"
	if t.rereading {
		text += ", reading the history again from its beginning"
	}
	t.stream.set(admin.Leads, true, text)
}

// noteRead records that the history was read; an earlier term may have found none.
func (t *transactionsTerm) noteRead(ctx context.Context) {
	t.stream.retry.Worked() // both sides answered
	t.report.Note(ctx, "")
}

// transactionsSink tells the metrics the dates of what it stores.
type transactionsSink struct {
	*store.TransactionsWriter
	of *transactions
}

func (s transactionsSink) AppendTransactions(
	ctx context.Context, at ledger.TransactionsPosition, order store.CommitOrder, records []ledger.Record,
) (ledger.TransactionsPosition, error) {
	position, err := s.TransactionsWriter.AppendTransactions(ctx, at, order, records)
	if err != nil {
		return position, err
	}
	for i := range records {
		if records[i].Date.Valid {
			s.of.metrics.TransactionStored(records[i].Date.Time)
		}
	}
	return position, nil
}
