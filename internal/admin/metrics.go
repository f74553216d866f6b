package admin

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

const namespace = "ledger_indexer"

// Metrics are the daemon's numbers, in a registry of their own. Its methods may be called from many goroutines.
type Metrics struct {
	registry *prometheus.Registry

	watermark, frontier, ledgerEnd, lag prometheus.Gauge

	leading  *prometheus.GaugeVec
	updates  prometheus.Counter
	rows     *prometheus.CounterVec
	phases   *prometheus.HistogramVec
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	received *prometheus.CounterVec
	retries  *prometheus.CounterVec

	lookups        *prometheus.CounterVec
	packagesRead   prometheus.Gauge
	packageChanges prometheus.Counter
	failing        *prometheus.GaugeVec

	historyRecords                                              prometheus.Counter
	historySeq, historyNewest, historyCurrent, historyRereading prometheus.Gauge

	sealed, differences         *prometheus.CounterVec
	verifiedOffset, verifiedSeq prometheus.Gauge

	mu          sync.Mutex // guards what follows
	atWatermark int64      // lag is made of it
	atEnd       int64      // and of it
	newest      time.Time  // record of the history
}

// NewMetrics registers the metrics.
func NewMetrics() *Metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 12),
		}, labels)
	}
	m := &Metrics{
		registry:  prometheus.NewRegistry(),
		watermark: gauge("watermark_offset", "Offset up to which everything is stored and shown."),
		frontier:  gauge("frontier_offset", "Offset up to which everything is fetched and stored."),
		ledgerEnd: gauge("ledger_end_offset", "The ledger's end when it was last asked."),
		lag:       gauge("lag_offsets", "Offsets between the watermark and the ledger's end."),
		leading: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "leading", Help: "1 while this process writes the stream, 0 while it does not.",
		}, []string{"stream"}),
		updates: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "updates_total", Help: "Updates committed by this process.",
		}),
		rows:         counter("rows_total", "Rows committed by this process.", "relation"),
		phases:       histogram("batch_phase_seconds", "Time that the phases of a batch took: copy, project, commit.", "phase"),
		requests:     counter("requests_total", "Requests to the participant and the Scan service; status 0 is no answer.", "operation", "status"),
		duration:     histogram("request_seconds", "Time that requests to the participant and the Scan service took, idle waiting included.", "operation"),
		received:     counter("received_bytes_total", "JSON received from the participant and the Scan service.", "operation"),
		retries:      counter("retries_total", "Tries again after an error, of a stream or a background task.", "stream"),
		lookups:      counter("lookups_total", "Contracts that were looked up and stored: found, not_found, unusable.", "outcome"),
		packagesRead: gauge("packages_read_timestamp_seconds", "When the vetted packages were last read, in Unix time; 0: not by this process."),
		packageChanges: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "package_changes_total", Help: "Changes of vetted packages that this process saw.",
		}),
		failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "task_failing", Help: "1 while a background task fails, or there is no transaction history to read, 0 while it works.",
		}, []string{"task"}),
		historyRecords: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "history_records_total", Help: "Records of the transaction history committed by this process.",
		}),
		historySeq:       gauge("history_seq", "The newest stored record of the transaction history: as many are stored."),
		historyNewest:    gauge("history_newest_timestamp_seconds", "Latest date of a stored record of the transaction history that this process has read, in Unix time; 0: none."),
		historyCurrent:   gauge("history_current_timestamp_seconds", "When everything that the Scan service has was last found to be stored, in Unix time; 0: not by this process."),
		historyRereading: gauge("history_rereading", "1 while the transaction history is read again from its beginning, else 0."),
		sealed:           counter("sealed_windows_total", "Windows that were compared with their source again and sealed: equal, different, not_shown.", "stream", "result"),
		differences:      counter("differences_total", "Differences from their source that windows were sealed with.", "stream"),
		verifiedOffset:   gauge("verified_offset", "Offset up to which everything was compared with the participant again, and was equal."),
		verifiedSeq:      gauge("verified_seq", "Record of the transaction history up to which everything was compared with its service again, and was equal."),
	}
	m.registry.MustRegister(m.watermark, m.frontier, m.ledgerEnd, m.lag, m.leading, m.updates, m.rows, m.phases, m.requests,
		m.duration, m.received, m.retries, m.lookups, m.packagesRead, m.packageChanges, m.failing,
		m.historyRecords, m.historySeq, m.historyNewest, m.historyCurrent, m.historyRereading,
		m.sealed, m.differences, m.verifiedOffset, m.verifiedSeq,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector())
	return m
}

// Committed tells of a batch that was committed.
func (m *Metrics) Committed(watermark int64, updates int) {
	m.watermark.Set(float64(watermark))
	m.frontier.Set(float64(watermark))
	m.updates.Add(float64(updates))
	m.setLag(func() { m.atWatermark = watermark })
}

// Frontier tells up to where everything is stored, where that is beyond the watermark. It comes after Committed.
func (m *Metrics) Frontier(offset int64) { m.frontier.Set(float64(offset)) }

// LedgerEnd tells of the ledger's end.
func (m *Metrics) LedgerEnd(end int64) {
	m.ledgerEnd.Set(float64(end))
	m.setLag(func() { m.atEnd = end })
}

func (m *Metrics) setLag(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	m.lag.Set(float64(max(0, m.atEnd-m.atWatermark)))
}

// Wrote tells of rows that were committed.
func (m *Metrics) Wrote(relation string, rows int) {
	m.rows.WithLabelValues(relation).Add(float64(rows))
}

// Phase tells how long a phase of a batch took.
func (m *Metrics) Phase(phase string, d time.Duration) {
	m.phases.WithLabelValues(phase).Observe(d.Seconds())
}

// Request tells of a request to the participant or the Scan service.
func (m *Metrics) Request(operation string, status int, d time.Duration, bytes int64) {
	m.requests.WithLabelValues(operation, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(operation).Observe(d.Seconds())
	m.received.WithLabelValues(operation).Add(float64(bytes))
}

// LookedUp tells of a look-up whose outcome was stored.
func (m *Metrics) LookedUp(outcome string) { m.lookups.WithLabelValues(outcome).Inc() }

// PackagesRead tells that the vetted packages were read and stored just now, and how many changes that brought.
func (m *Metrics) PackagesRead(changes int) {
	m.packagesRead.SetToCurrentTime()
	m.packageChanges.Add(float64(changes))
}

// TaskFailing tells how a background task, or the reading of the transaction history, fares.
func (m *Metrics) TaskFailing(task string, failing bool) {
	m.failing.WithLabelValues(task).Set(oneIf(failing))
}

// Retrying tells of a try again.
func (m *Metrics) Retrying(stream string) { m.retries.WithLabelValues(stream).Inc() }

// Leading tells whether this process writes a stream.
func (m *Metrics) Leading(stream string, leads bool) {
	m.leading.WithLabelValues(stream).Set(oneIf(leads))
}

// TasksEnded tells that tasks do not run any more: they are neither failing nor working.
func (m *Metrics) TasksEnded(tasks ...string) {
	for _, task := range tasks {
		m.failing.DeleteLabelValues(task)
	}
}

// HistoryCommitted tells of records of the transaction history that were committed, which may be none, and where the
// history stands.
func (m *Metrics) HistoryCommitted(seq int64, rereading bool, records int) {
	m.historySeq.Set(float64(seq))
	m.historyRereading.Set(oneIf(rereading))
	m.historyRecords.Add(float64(records))
}

// HistoryRecord tells the date of a record of the transaction history that is stored. The latest one counts.
func (m *Metrics) HistoryRecord(date time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if date.After(m.newest) {
		m.newest = date
		m.historyNewest.Set(float64(date.UnixMicro()) / 1e6)
	}
}

// HistoryCurrent tells that everything that the service has is stored, as of now.
func (m *Metrics) HistoryCurrent() { m.historyCurrent.SetToCurrentTime() }

// Sealed tells of a window that was sealed, and how many differences it was sealed with.
func (m *Metrics) Sealed(stream, result string, differences int64) {
	m.sealed.WithLabelValues(stream, result).Inc()
	m.differences.WithLabelValues(stream).Add(float64(differences))
}

// Verified tells how far everything was compared with its source and was equal.
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
