package admin

import (
	"context"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel/attribute"

	"ledgerindexer/internal/base/tracing"
	"ledgerindexer/internal/base/version"
)

// namespace begins the names of the daemon's metrics.
const namespace = "ledger_indexer"

// State is the state of a stream in this process.
type State string

// The states of a stream, as the metrics name them.
const (
	Leads    State = "leads"     // it writes the stream
	StandsBy State = "stands_by" // another process leads
	Waits    State = "waits"     // for the database, the source, a backfill, or the next try
	Failed   State = "failed"    // trying again at once can't cure it
	Stopped  State = "stopped"   // there is nothing more to do; not in the metrics
)

// Metrics holds the daemon's metrics in a registry of its own. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	gathered prometheus.Gatherers // the registry, and those of other ledgers

	build                          *prometheus.GaugeVec
	watermark, frontier, ledgerEnd prometheus.Gauge

	leading  *prometheus.GaugeVec
	epochs   *prometheus.GaugeVec
	states   *prometheus.GaugeVec
	queue    prometheus.Gauge
	updates  prometheus.Counter
	rows     *prometheus.CounterVec
	phases   *prometheus.HistogramVec
	requests *prometheus.CounterVec
	notJSON  *prometheus.CounterVec
	hosting  *prometheus.CounterVec
	duration *prometheus.HistogramVec
	decoding *prometheus.HistogramVec
	received *prometheus.CounterVec
	passed   *prometheus.CounterVec
	retries  *prometheus.CounterVec

	taskRetries    *prometheus.CounterVec
	lookups        *prometheus.CounterVec
	packageTypes   *prometheus.CounterVec
	packagesRead   prometheus.Gauge
	packageChanges prometheus.Counter
	failing        *prometheus.GaugeVec

	// of the transaction history, or of the records that follow from the updates of a network
	historyRecords                                                       prometheus.Counter
	historySeq, historyNewest, historyCurrent, historyRereading, derived prometheus.Gauge

	tablesBytes, partitions prometheus.Gauge

	sealed, differences         *prometheus.CounterVec
	verifiedOffset, verifiedSeq prometheus.Gauge

	mu          sync.Mutex // guards the following fields
	atWatermark int64
	atEnd       int64           // the ledger end as last reported
	endKnown    bool            // it was reported since this process leads
	lags        map[string]*lag // by stream
}

// NewMetrics registers the metrics.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return newMetrics(registry, registry, registry)
}

// ScanPassed counts that one of several Scan services is passed over.
func (m *Metrics) ScanPassed(service, reason string) { m.passed.WithLabelValues(service, reason).Inc() }

// OfNetwork returns metrics of the updates of a network, which are collected with m, with the label ledger="network".
func (m *Metrics) OfNetwork() *Metrics {
	registry := prometheus.NewRegistry()
	n := newMetrics(registry, prometheus.WrapRegistererWith(prometheus.Labels{"ledger": "network"}, registry), nil)
	m.gathered = append(m.gathered, registry)
	return n
}

// factory makes metrics with the namespace of all.
type factory struct{ promauto.Factory }

func (f factory) gauge(name, help string) prometheus.Gauge {
	return f.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
}

func (f factory) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return f.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func (f factory) counter(name, help string) prometheus.Counter {
	return f.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
}

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func (f factory) histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	buckets := prometheus.ExponentialBuckets(0.001, 2.5, 12)
	return f.NewHistogramVec(
		prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}

// newMetrics registers what each ledger has with ofLedger, and what there is once in a process with ofProcess; nil:
// with nobody.
func newMetrics(registry *prometheus.Registry, ofLedger, ofProcess prometheus.Registerer) *Metrics {
	every, once := factory{promauto.With(ofLedger)}, factory{promauto.With(ofProcess)}
	m := &Metrics{
		registry: registry,
		gathered: prometheus.Gatherers{registry},
		build: once.gauges("build_info", "1, with what this process was built from.", "version", "commit",
			"schema_version", "go_version"),
		watermark: every.gauge("watermark_offset", "Offset up to which everything is stored and visible."),
		frontier:  every.gauge("frontier_offset", "Offset up to which everything is fetched and stored."),
		ledgerEnd: every.gauge("ledger_end_offset", "The ledger's end as last requested; NaN: not yet."),
		lags:      map[string]*lag{streamUpdates: {}, streamTransactions: {}},
		leading:   every.gauges("leading", "1 while this process writes the stream, 0 while it does not.", "stream"),
		epochs: every.gauges("epoch", "Epoch of the term in which this process last led the stream; a later "+
			"leader has a greater one.", "stream"),
		states: every.gauges("stream_state", "1 for the state of the stream in this process, 0 for the others: "+
			"leads, stands_by, waits, failed.", "stream", "state"),
		queue:   every.gauge("queue_bytes", "JSON of updates that is fetched and not written yet."),
		updates: every.counter("updates_total", "Updates committed by this process."),
		rows:    every.counters("rows_total", "Rows committed by this process.", "relation"),
		phases: every.histograms("batch_phase_duration_seconds", "Duration of the phases of a batch: copy, "+
			"project, commit.", "phase"),
		requests: once.counters("requests_total",
			"Requests to the participant and the Scan service; status 0 is no answer.", "operation", "status"),
		notJSON: once.counters("not_json_answers_total", "Answers with status 200 from the participant and the "+
			"Scan service that are not JSON.", "operation"),
		hosting: once.counters("hosting_changes_total", "Topology events that name this participant: a party was "+
			"added to it, changed its permission, was revoked, or is being onboarded.", "kind"),
		duration: once.histograms("request_duration_seconds", "Duration of requests to the participant and the "+
			"Scan service, idle waiting included.", "operation"),
		decoding: once.histograms("decode_duration_seconds",
			"Duration of decoding the updates, or records, of an answer.", "operation"),
		received: once.counters("received_bytes_total", "JSON received from the participant and the Scan service.",
			"operation"),
		passed: once.counters("scan_passed_over_total", "Times that one of several Scan services was passed "+
			"over: failed, disagrees.", "scan", "reason"),
		retries:     every.counters("retries_total", "Retries of a stream after an error.", "stream", "reason"),
		taskRetries: every.counters("task_retries_total", "Retries of a background task after an error.", "task"),
		lookups: once.counters("lookups_total",
			"Contracts that were looked up and stored: found, not_found, unusable.", "outcome"),
		packageTypes: once.counters("package_types_total",
			"Packages whose types were asked for: stored, unreadable, missing.", "outcome"),
		packagesRead: once.gauge("packages_read_timestamp_seconds", "When the vetted packages were last read, in Unix "+
			"time; 0: not by this process."),
		packageChanges: once.counter("package_changes_total", "Changes of vetted packages that this process saw."),
		failing: every.gauges("task_failing", "1 while a background task fails, or there is no transaction "+
			"history to read, 0 while it works.", "task"),
		historyRecords: every.counter("transaction_history_records_total", "Records of the transaction history "+
			"committed by this process."),
		historySeq: every.gauge("transaction_history_seq", "The number of the newest record of the transaction "+
			"history that was read."),
		historyNewest: every.gauge("transaction_history_newest_timestamp_seconds", "Latest date of the stored records "+
			"of the transaction history that this process has read, in Unix time; 0: none."),
		historyCurrent: every.gauge("transaction_history_current_timestamp_seconds", "When everything in the Scan "+
			"service was last found to be stored, in Unix time; 0: not by this process."),
		historyRereading: every.gauge("transaction_history_rereading", "1 while the transaction history is read again "+
			"from its beginning, else 0."),
		derived: every.gauge("derived_offset", "Offset of a network up to which the records that follow from its "+
			"updates are stored; 0: not by this process."),
		tablesBytes: every.gauge("tables_bytes", "What the tables and their indexes take on disk; 0: not measured yet."),
		partitions:  every.gauge("partitions", "Partitions of the tables of events."),
		sealed: every.counters("sealed_windows_total", "Windows that were compared with their source again and "+
			"sealed: equal, different, not_shown, pruned.", "stream", "result"),
		differences: every.counters("differences_total", "Differences from the source in sealed windows.", "stream"),
		verifiedOffset: every.gauge("verified_offset", "Offset up to which everything was compared with the participant "+
			"again, and was equal."),
		verifiedSeq: every.gauge("verified_seq", "Record of the transaction history up to which everything was compared "+
			"with its service again, and was equal."),
	}
	m.beginWithZero()
	ofLedger.MustRegister(newLags(m))
	m.ledgerEnd.Set(math.NaN())
	return m
}

// beginWithZero makes counters whose labels are known, so that an increase has the first one too. Request and
// TaskFailing do the same when they learn of a label.
func (m *Metrics) beginWithZero() {
	for of, values := range map[*prometheus.CounterVec][]string{
		m.rows:         {"unknown_elements", "unknown_transactions"},
		m.hosting:      {"added", "changed", "revoked", "onboarding"},
		m.lookups:      {"found", "not_found", "unusable"},
		m.packageTypes: {"stored", "unreadable", "missing"},
	} {
		for _, value := range values {
			of.WithLabelValues(value)
		}
	}
}

// Build sets what this process was built from.
func (m *Metrics) Build(b version.Build) {
	m.build.WithLabelValues(b.Version, b.Commit, strconv.FormatInt(b.Schema, 10), b.Go).Set(1)
}

// Committed counts a committed batch.
func (m *Metrics) Committed(watermark int64, updates int) {
	m.watermark.Set(float64(watermark))
	m.frontier.Set(float64(watermark))
	m.updates.Add(float64(updates))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.atWatermark = watermark
	m.compare()
}

// Frontier sets the frontier, if it is beyond the watermark. Call it after Committed.
func (m *Metrics) Frontier(offset int64) { m.frontier.Set(float64(offset)) }

// LedgerEnd sets the current ledger end.
func (m *Metrics) LedgerEnd(end int64) {
	m.ledgerEnd.Set(float64(end))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.atEnd, m.endKnown = end, true
	m.lags[streamUpdates].known = true
	m.compare()
}

// UpdatesRecovered notes that the participant answers again. The current ledger end is not known yet, so the lag is
// known only if the last known end was not reached.
func (m *Metrics) UpdatesRecovered() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.endKnown && m.atWatermark < m.atEnd {
		m.lags[streamUpdates].answered(false)
	}
}

// compare compares the watermark with the ledger's end, where that is known.
func (m *Metrics) compare() {
	if l := m.lags[streamUpdates]; l.known {
		l.answered(m.atWatermark >= m.atEnd)
	}
}

// Shown sets the record time of the last visible update.
func (m *Metrics) Shown(recordTime time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lags[streamUpdates].newest = recordTime
}

// SourceLost notes that the source of a stream gives no usable answer. So its lag is not known, unless something was
// missing: that still is, until this process reads it.
func (m *Metrics) SourceLost(stream string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.lags[stream]
	of.known = of.known && !of.caughtUp
}

// Wrote counts committed rows.
func (m *Metrics) Wrote(relation string, rows int) {
	m.rows.WithLabelValues(relation).Add(float64(rows))
}

// Phase records the duration of a phase of a batch that has just ended, also in the trail of ctx.
func (m *Metrics) Phase(ctx context.Context, phase string, d time.Duration) {
	m.phases.WithLabelValues(phase).Observe(d.Seconds())
	tracing.Step(ctx, phase, d)
}

// Request records a request to the participant or the Scan service that has just ended, also in the trail of ctx.
func (m *Metrics) Request(ctx context.Context, operation string, status int, d time.Duration, bytes int64) {
	m.requests.WithLabelValues(operation, strconv.Itoa(status)).Inc()
	m.notJSON.WithLabelValues(operation)
	m.duration.WithLabelValues(operation).Observe(d.Seconds())
	m.received.WithLabelValues(operation).Add(float64(bytes))
	tracing.Step(ctx, "fetch", d, attribute.String("ledgerindexer.operation", operation),
		attribute.Int("http.response.status_code", status),
		attribute.Int64("http.response.body.size", bytes))
}

// Decoded records how long the elements of an answer, which are decoded now, took, also in the trail of ctx.
func (m *Metrics) Decoded(ctx context.Context, operation string, d time.Duration) {
	m.decoding.WithLabelValues(operation).Observe(d.Seconds())
	tracing.Step(ctx, "decode", d, attribute.String("ledgerindexer.operation", operation))
}

// Queued sets how much JSON of updates is fetched and not written yet.
func (m *Metrics) Queued(bytes int64) { m.queue.Set(float64(bytes)) }

// HostingChanged counts a topology event that names the participant.
func (m *Metrics) HostingChanged(kind string) { m.hosting.WithLabelValues(kind).Inc() }

// NotJSON counts an answer with status 200 that is not JSON.
func (m *Metrics) NotJSON(operation string) { m.notJSON.WithLabelValues(operation).Inc() }

// LookedUp counts a look-up with a stored outcome.
func (m *Metrics) LookedUp(outcome string) { m.lookups.WithLabelValues(outcome).Inc() }

// PackageTypes counts a package that was stored, stored without all of its types, or could not be had.
func (m *Metrics) PackageTypes(outcome string) { m.packageTypes.WithLabelValues(outcome).Inc() }

// PackagesRead notes that the vetted packages were read and stored now, with this number of changes.
func (m *Metrics) PackagesRead(changes int) {
	m.packagesRead.SetToCurrentTime()
	m.packageChanges.Add(float64(changes))
}

// TaskFailing sets whether a background task, or the reading of the transaction history, fails.
func (m *Metrics) TaskFailing(task string, failing bool) {
	m.failing.WithLabelValues(task).Set(oneIf(failing))
	m.taskRetries.WithLabelValues(task)
}

// Retrying counts a retry of a stream.
func (m *Metrics) Retrying(stream, reason string) {
	m.retries.WithLabelValues(stream, reason).Inc()
	m.SourceLost(stream)
}

// TaskRetrying counts a retry of a background task.
func (m *Metrics) TaskRetrying(task string) { m.taskRetries.WithLabelValues(task).Inc() }

// Leading sets whether this process writes a stream.
func (m *Metrics) Leading(stream string, leads bool) {
	m.leading.WithLabelValues(stream).Set(oneIf(leads))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lags[stream].known = false // what an earlier leader knew is out of date
	m.endKnown = m.endKnown && stream != streamUpdates
	m.lags[stream].asked, m.lags[stream].leads = true, leads
}

// Epoch sets the epoch of the term in which this process leads a stream.
func (m *Metrics) Epoch(stream string, epoch int64) {
	m.epochs.WithLabelValues(stream).Set(float64(epoch))
}

// StreamState sets the state of a stream in this process.
func (m *Metrics) StreamState(stream string, state State) {
	for _, s := range []State{Leads, StandsBy, Waits, Failed} {
		m.states.WithLabelValues(stream, string(s)).Set(oneIf(s == state))
	}
	if stream == streamTransactions && state == StandsBy { // what it found as the leader is the leader's to say now
		m.historyRereading.Set(0)
		m.TasksEnded(streamTransactions)
	}
}

// TasksEnded removes tasks that no longer run: they neither fail nor work.
func (m *Metrics) TasksEnded(tasks ...string) {
	for _, task := range tasks {
		m.failing.DeleteLabelValues(task)
	}
}

// TransactionsResumed sets the position in the transaction history.
func (m *Metrics) TransactionsResumed(seq int64, rereading bool) {
	m.historySeq.Set(float64(seq))
	m.historyRereading.Set(oneIf(rereading))
}

// TransactionsCommitted counts committed records of the transaction history, 0 or more, and sets the position. There
// may be more records.
func (m *Metrics) TransactionsCommitted(seq int64, rereading bool, records int) {
	m.TransactionsResumed(seq, rereading)
	m.historyRecords.Add(float64(records))
	m.transactionsAnswered(false)
}

func (m *Metrics) transactionsAnswered(caughtUp bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lags[streamTransactions].answered(caughtUp)
}

// TransactionStored notes the date of a stored record of the transaction history. The latest one counts.
func (m *Metrics) TransactionStored(date time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.lags[streamTransactions]; date.After(l.newest) {
		l.newest = date
		m.historyNewest.Set(float64(date.UnixMicro()) / 1e6)
	}
}

// TransactionsCurrent notes that everything in the service is stored now.
func (m *Metrics) TransactionsCurrent() {
	m.historyCurrent.SetToCurrentTime()
	m.transactionsAnswered(true)
}

// Derived sets the offset up to which the records that follow from the updates are stored.
func (m *Metrics) Derived(offset int64) { m.derived.Set(float64(offset)) }

// Sealed counts a sealed window and its differences.
func (m *Metrics) Sealed(stream, result string, differences int64) {
	m.sealed.WithLabelValues(stream, result).Inc()
	m.differences.WithLabelValues(stream).Add(float64(differences))
}

// Sized sets what the tables take on disk, in bytes, and how many partitions there are.
func (m *Metrics) Sized(bytes, partitions int64) {
	m.tablesBytes.Set(float64(bytes))
	m.partitions.Set(float64(partitions))
}

// Verified sets up to where everything was compared with its source and was equal.
func (m *Metrics) Verified(offset, seq int64) {
	m.verifiedOffset.Set(float64(offset))
	m.verifiedSeq.Set(float64(seq))
}

func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
