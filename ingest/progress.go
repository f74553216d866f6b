package ingest

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"ledgerindexer/ledger"
)

const (
	progressEvery = 10 * time.Second
	// The callback is called this often, for a bar that moves, but not for work that takes less than watchAfter.
	watchEvery = 250 * time.Millisecond
	watchAfter = 2 * time.Second
	// The rate is that of the last rateOver, in steps of rateStep.
	rateOver = 10 * time.Second
	rateStep = time.Second
	// No forecast is given for work that would take longer than this.
	longestLeft = 1000 * time.Hour
)

// Meter measures the progress of a stream's work: it logs a line every ten seconds while there is work, and calls a callback
// more often. It is safe for concurrent use.
type Meter struct {
	logger *slog.Logger
	tell   func(ledger.Progress)

	mu     sync.Mutex
	now    ledger.Progress
	marks  []progressMark // of the last rateOver, the oldest first
	logged time.Time      // when a line was logged, or the work began
	told   time.Time      // when tell was called last; zero: not since the work began

	genesis bool // the work is to read updates, and began at the beginning of a ledger
}

// progressMark is how far the work had come at a time.
type progressMark struct {
	when     time.Time
	at, done int64
}

// NewMeter measures work that begins now. start has its stream, unit, and, if known, From and End. tell, if not nil, is called
// about four times a second, one call at a time, and must return quickly.
func NewMeter(logger *slog.Logger, start ledger.Progress, tell func(ledger.Progress)) *Meter {
	m := &Meter{logger: logger, tell: tell, now: start}
	m.now.At = start.From
	m.begin()
	return m
}

// begin starts a new count at the current position.
func (m *Meter) begin() {
	now := time.Now()
	m.now.BeganAt, m.now.From, m.now.Done, m.now.Rate, m.now.Left, m.now.Ended = now, m.now.At, 0, 0, 0, false
	m.marks = append(m.marks[:0], progressMark{when: now, at: m.now.At})
	m.logged, m.told, m.genesis = now, time.Time{}, m.now.Stream == "updates" && m.now.At == 0
}

// startAt corrects the position of the start: how far the first unit lies from the beginning of a ledger says nothing about the work.
// The offsets of a network are times.
func (m *Meter) startAt(at int64) {
	m.now.From = at
	for i := range m.marks {
		m.marks[i].at = at
	}
}

// SetEnd sets the position at which the work ends, as far as it is known now.
func (m *Meter) SetEnd(end int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.End = end
}

// Add records that n more units are committed, and the position that was reached.
func (m *Meter) Add(ctx context.Context, at int64, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now.Ended {
		m.begin()
	}
	if m.genesis && m.now.Done == 0 {
		m.startAt(at)
	}
	m.now.At, m.now.Done = at, m.now.Done+int64(n)
	now := time.Now()
	m.measure(now)
	if now.Sub(m.logged) >= progressEvery {
		m.logged = now
		m.log(ctx)
	}
	if m.tell != nil && now.Sub(m.now.BeganAt) >= watchAfter && now.Sub(m.told) >= watchEvery {
		m.told = now
		m.tell(m.now)
	}
}

// Rest records that nothing is left to do for now. The next Add starts a new count.
func (m *Meter) Rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Ended = true
	if !m.told.IsZero() {
		m.told = time.Time{}
		m.tell(m.now)
	}
}

// measure computes the rate in units, and the time left from the pace of the positions.
func (m *Meter) measure(now time.Time) {
	for len(m.marks) > 1 && now.Sub(m.marks[1].when) >= rateOver {
		m.marks = m.marks[1:]
	}
	oldest := m.marks[0]
	if passed := now.Sub(oldest.when).Seconds(); passed > 0 {
		m.now.Rate = float64(m.now.Done-oldest.done) / passed
		m.now.Left = 0
		left := float64(m.now.End-m.now.At) * passed / float64(m.now.At-oldest.at) // seconds; not a number while nothing moves
		if left > 0 && left < longestLeft.Seconds() {
			m.now.Left = time.Duration(left * float64(time.Second))
		}
	}
	if now.Sub(m.marks[len(m.marks)-1].when) >= rateStep {
		m.marks = append(m.marks, progressMark{when: now, at: m.now.At, done: m.now.Done})
	}
}

func (m *Meter) log(ctx context.Context) {
	p := m.now
	unit, rate := "done", "per_second"
	if p.Unit != "" {
		unit, rate = p.Unit, p.Unit+"_per_second"
	}
	attributes := []any{"stream", p.Stream, "at", p.At}
	if p.End > 0 {
		attributes = append(attributes, "end", p.End)
	}
	attributes = append(attributes, unit, p.Done, rate, int(p.Rate))
	if p.Left > 0 {
		attributes = append(attributes, "left", p.Left.Round(time.Second).String())
	}
	m.logger.InfoContext(ctx, "progress", attributes...)
}
