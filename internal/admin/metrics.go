package admin

import (
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"ledgerindexer/internal/version"
)

const namespace = "ledger_indexer"

// State is what a process does about a stream.
type State string

// The states of a stream, as the metrics name them.
const (
	Leads    State = "leads"     // it writes the stream
	StandsBy State = "stands_by" // another process does
	Waits    State = "waits"     // for what must come first: the database, the source, a backfill, the next try
	Failed   State = "failed"    // trying again at once can't cure it
	Stopped  State = "stopped"   // there is nothing more to do; not told
)

// Metrics are the daemon's numbers, in a registry of their own. Its methods may be called from many goroutines.
type Metrics struct {
	registry *prometheus.Registry

	build                          *prometheus.GaugeVec
	watermark, frontier, ledgerEnd prometheus.Gauge

	leading  *prometheus.GaugeVec
	states   *prometheus.GaugeVec
	updates  prometheus.Counter
	rows     *prometheus.CounterVec
	phases   *prometheus.HistogramVec
	requests *prometheus.CounterVec
	notJSON  *prometheus.CounterVec
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
	atWatermark int64
	atEnd       int64           // of the ledger, when it was last told
	endKnown    bool            // it was told since this process leads
	lags        map[string]*lag // by stream
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
		registry: prometheus.NewRegistry(),
		build: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "build_info", Help: "1, with what this process was built from.",
		}, []string{"version", "commit", "schema_version", "go_version"}),
		watermark: gauge("watermark_offset", "Offset up to which everything is stored and shown."),
		frontier:  gauge("frontier_offset", "Offset up to which everything is fetched and stored."),
		ledgerEnd: gauge("ledger_end_offset", "The ledger's end when it was last asked; NaN: it was not."),
		lags:      map[string]*lag{streamUpdates: {}, streamHistory: {}},
		leading: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "leading", Help: "1 while this process writes the stream, 0 while it does not.",
		}, []string{"stream"}),
		states: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "stream_state",
			Help: "1 for what this process does about the stream, 0 for the others: leads, stands_by, waits, failed.",
		}, []string{"stream", "state"}),
		updates: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "updates_total", Help: "Updates committed by this process.",
		}),
		rows:         counter("rows_total", "Rows committed by this process.", "relation"),
		phases:       histogram("batch_phase_seconds", "Time that the phases of a batch took: copy, project, commit.", "phase"),
		requests:     counter("requests_total", "Requests to the participant and the Scan service; status 0 is no answer.", "operation", "status"),
		notJSON:      counter("not_json_answers_total", "Answers of success from the participant and the Scan service that are no JSON.", "operation"),
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
	m.ledgerEnd.Set(math.NaN())
	m.registry.MustRegister(m.build, m.watermark, m.frontier, m.ledgerEnd, newLags(m), m.leading, m.states, m.updates, m.rows, m.phases, m.requests, m.notJSON,
		m.duration, m.received, m.retries, m.lookups, m.packagesRead, m.packageChanges, m.failing,
		m.historyRecords, m.historySeq, m.historyNewest, m.historyCurrent, m.historyRereading,
		m.sealed, m.differences, m.verifiedOffset, m.verifiedSeq,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Build tells what this process was built from.
func (m *Metrics) Build(b version.Build) {
	m.build.WithLabelValues(b.Version, b.Commit, strconv.FormatInt(b.Schema, 10), b.Go).Set(1)
}

// Committed tells of a batch that was committed.
func (m *Metrics) Committed(watermark int64, updates int) {
	m.watermark.Set(float64(watermark))
	m.frontier.Set(float64(watermark))
	m.updates.Add(float64(updates))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.atWatermark = watermark
	m.compare()
}

// Frontier tells up to where everything is stored, where that is beyond the watermark. It comes after Committed.
func (m *Metrics) Frontier(offset int64) { m.frontier.Set(float64(offset)) }

// LedgerEnd tells that the ledger ends at an offset, as of now.
func (m *Metrics) LedgerEnd(end int64) {
	m.ledgerEnd.Set(float64(end))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.atEnd, m.endKnown = end, true
	m.lags[streamUpdates].known = true
	m.compare()
}

// UpdatesRecovered tells that the participant answers again. Where the ledger ends by now it has not said: only that there is
// more is known, if there was.
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

// Shown tells the record time of the last update that is shown.
func (m *Metrics) Shown(recordTime time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lags[streamUpdates].newest = recordTime
}

// SourceLost tells that the source of a stream does not answer, or not with what was to be read: how far behind the stream
// is, is not known.
func (m *Metrics) SourceLost(stream string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l, ok := m.lags[stream]; ok { // tasks beside a stream have none
		l.known = false
	}
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

// NotJSON tells of an answer of success that is no JSON.
func (m *Metrics) NotJSON(operation string) { m.notJSON.WithLabelValues(operation).Inc() }

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
func (m *Metrics) Retrying(stream string) {
	m.retries.WithLabelValues(stream).Inc()
	m.SourceLost(stream)
}

// Leading tells whether this process writes a stream.
func (m *Metrics) Leading(stream string, leads bool) {
	m.leading.WithLabelValues(stream).Set(oneIf(leads))
	m.SourceLost(stream) // whoever led before asked then
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endKnown = m.endKnown && stream != streamUpdates
	if l, ok := m.lags[stream]; ok {
		l.asked = true
	}
}

// StreamState tells what this process does about a stream.
func (m *Metrics) StreamState(stream string, state State) {
	for _, s := range []State{Leads, StandsBy, Waits, Failed} {
		m.states.WithLabelValues(stream, string(s)).Set(oneIf(s == state))
	}
}

// TasksEnded tells that tasks do not run any more: they are neither failing nor working.
func (m *Metrics) TasksEnded(tasks ...string) {
	for _, task := range tasks {
		m.failing.DeleteLabelValues(task)
	}
}

// HistoryResumed tells where the transaction history stands.
func (m *Metrics) HistoryResumed(seq int64, rereading bool) {
	m.historySeq.Set(float64(seq))
	m.historyRereading.Set(oneIf(rereading))
}

// HistoryCommitted tells of records of the transaction history that were committed, which may be none, and where the
// history stands. There may be more.
func (m *Metrics) HistoryCommitted(seq int64, rereading bool, records int) {
	m.HistoryResumed(seq, rereading)
	m.historyRecords.Add(float64(records))
	m.historyAnswered(false)
}

func (m *Metrics) historyAnswered(caughtUp bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lags[streamHistory].answered(caughtUp)
}

// HistoryRecord tells the date of a record of the transaction history that is stored. The latest one counts.
func (m *Metrics) HistoryRecord(date time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.lags[streamHistory]; date.After(l.newest) {
		l.newest = date
		m.historyNewest.Set(float64(date.UnixMicro()) / 1e6)
	}
}

// HistoryCurrent tells that everything that the service has is stored, as of now.
func (m *Metrics) HistoryCurrent() {
	m.historyCurrent.SetToCurrentTime()
	m.historyAnswered(true)
}

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
