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

	watermark, frontier, ledgerEnd, lag, leading prometheus.Gauge

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

	mu          sync.Mutex // guards the two that lag is made of
	atWatermark int64
	atEnd       int64
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
		leading:   gauge("leading", "1 while this process writes, 0 while it stands by."),
		updates: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "updates_total", Help: "Updates committed by this process.",
		}),
		rows:         counter("rows_total", "Rows committed by this process.", "relation"),
		phases:       histogram("batch_phase_seconds", "Time that the phases of a batch took: copy, project, commit.", "phase"),
		requests:     counter("requests_total", "Requests to the participant; status 0 is no answer.", "operation", "status"),
		duration:     histogram("request_seconds", "Time that requests to the participant took, idle waiting included.", "operation"),
		received:     counter("received_bytes_total", "JSON received from the participant.", "operation"),
		retries:      counter("retries_total", "Tries again after an error, of a stream or a background task.", "stream"),
		lookups:      counter("lookups_total", "Contracts that were looked up and stored: found, not_found, unusable.", "outcome"),
		packagesRead: gauge("packages_read_timestamp_seconds", "When the vetted packages were last read, in Unix time; 0: not by this process."),
		packageChanges: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "package_changes_total", Help: "Changes of vetted packages that this process saw.",
		}),
		failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "task_failing", Help: "1 while a background task fails, 0 while it works.",
		}, []string{"task"}),
	}
	m.registry.MustRegister(m.watermark, m.frontier, m.ledgerEnd, m.lag, m.leading, m.updates, m.rows, m.phases, m.requests,
		m.duration, m.received, m.retries, m.lookups, m.packagesRead, m.packageChanges, m.failing,
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

// Request tells of a request to the participant.
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

// TaskFailing tells how a background task fares.
func (m *Metrics) TaskFailing(task string, failing bool) {
	m.failing.WithLabelValues(task).Set(oneIf(failing))
}

// Retrying tells of a try again.
func (m *Metrics) Retrying(stream string) { m.retries.WithLabelValues(stream).Inc() }

// Leading tells whether this process writes. The background tasks end with the lead.
func (m *Metrics) Leading(leads bool) {
	m.leading.Set(oneIf(leads))
	if !leads {
		m.failing.Reset()
	}
}

func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
