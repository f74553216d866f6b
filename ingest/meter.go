package ingest

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"ledgerindexer/ledger"
)

// How often a Meter, which measures the progress of a stream, measures and reports.
const (
	logEvery = 10 * time.Second
	// report is called this often, but not in the first reportAfter: of short work nobody has to hear.
	reportEvery = time.Second
	reportAfter = 2 * time.Second
	// The rate is that of the last rateSpan. A sample is taken every rateStep.
	rateSpan = 10 * time.Second
	rateStep = time.Second
	// TimeLeft is not known for work that would take longer than this.
	longestLeft = 1000 * time.Hour
)

// Meter measures the progress of a stream's work: it logs a line every ten seconds while there is work, and calls a
// callback more often. It is safe for concurrent use.
type Meter struct {
	logger *slog.Logger
	report func(ledger.Progress)

	mu         sync.Mutex
	current    ledger.Progress
	samples    []progressSample // of the last rateSpan, the oldest first
	loggedAt   time.Time        // when a line was logged, or the work began
	reportedAt time.Time        // when report was called last; zero: not since the work began

	fromGenesis bool // the work reads updates, and began at the beginning of the ledger
}

type progressSample struct {
	taken               time.Time
	position, unitsDone int64
}

// NewMeter measures work that begins now. start has its Stream, Unit, and, if known, Start and End. report, if not nil,
// is called about once a second, one call at a time, and must return quickly.
func NewMeter(logger *slog.Logger, start ledger.Progress, report func(ledger.Progress)) *Meter {
	m := &Meter{logger: logger, report: report, current: start}
	m.current.Position = start.Start
	m.begin()
	return m
}

// begin starts a new count at the current position.
func (m *Meter) begin() {
	now := time.Now()
	m.current.BeganAt, m.current.Start, m.current.UnitsDone, m.current.Rate, m.current.TimeLeft, m.current.Ended = now,
		m.current.Position, 0, 0, 0, false
	m.samples = append(m.samples[:0], progressSample{taken: now, position: m.current.Position})
	m.loggedAt, m.reportedAt, m.fromGenesis = now, time.Time{}, m.current.Stream == "updates" && m.current.Position == 0
}

// startAt sets the position of the start. A ledger's first update may have any offset (a network's offsets are times),
// so its distance from offset 0 is no work that was done.
func (m *Meter) startAt(at int64) {
	m.current.Start = at
	for i := range m.samples {
		m.samples[i].position = at
	}
}

// SetEnd sets the position at which the work ends, as far as it is known now.
func (m *Meter) SetEnd(end int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current.End = end
}

// Add records that n more units are done, and the new position.
func (m *Meter) Add(ctx context.Context, at int64, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current.Ended {
		m.begin()
	}
	if m.fromGenesis && m.current.UnitsDone == 0 {
		m.startAt(at)
	}
	m.current.Position, m.current.UnitsDone = at, m.current.UnitsDone+int64(n)
	now := time.Now()
	m.measure(now)
	if now.Sub(m.loggedAt) >= logEvery {
		m.loggedAt = now
		m.log(ctx)
	}
	if m.report != nil && now.Sub(m.current.BeganAt) >= reportAfter && now.Sub(m.reportedAt) >= reportEvery {
		m.reportedAt = now
		m.report(m.current)
	}
}

// Idle records that nothing is left to do for now. The next Add starts a new count.
func (m *Meter) Idle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current.Ended = true
	if !m.reportedAt.IsZero() {
		m.reportedAt = time.Time{}
		m.report(m.current)
	}
}

// measure computes the rate from the units, and the time left from the positions.
func (m *Meter) measure(now time.Time) {
	for len(m.samples) > 1 && now.Sub(m.samples[1].taken) >= rateSpan {
		m.samples = m.samples[1:]
	}
	oldest := m.samples[0]
	if passed := now.Sub(oldest.taken).Seconds(); passed > 0 {
		m.current.Rate = float64(m.current.UnitsDone-oldest.unitsDone) / passed
		m.current.TimeLeft = 0
		// seconds; not a number while nothing moves
		left := float64(m.current.End-m.current.Position) * passed / float64(m.current.Position-oldest.position)
		if left > 0 && left < longestLeft.Seconds() {
			m.current.TimeLeft = time.Duration(left * float64(time.Second))
		}
	}
	if now.Sub(m.samples[len(m.samples)-1].taken) >= rateStep {
		m.samples = append(m.samples, progressSample{taken: now, position: m.current.Position,
			unitsDone: m.current.UnitsDone})
	}
}

func (m *Meter) log(ctx context.Context) {
	p := m.current
	unit, rate := "done", "per_second"
	if p.Unit != "" {
		unit, rate = p.Unit, p.Unit+"_per_second"
	}
	attributes := []any{"stream", p.Stream, "at", p.Position}
	if p.End > 0 {
		attributes = append(attributes, "end", p.End)
	}
	attributes = append(attributes, unit, p.UnitsDone, rate, int(p.Rate))
	if p.TimeLeft > 0 {
		attributes = append(attributes, "left", p.TimeLeft.Round(time.Second).String())
	}
	m.logger.InfoContext(ctx, "progress", attributes...)
}
