package admin

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The daemon's names of the streams.
const (
	streamUpdates      = "updates"
	streamTransactions = "transactions"
)

// Lag is what this process knows of how far the visible part of a stream is behind its source.
type Lag struct {
	Leads   bool // this process writes the stream; else it knows nothing
	Known   bool
	End     int64   // the ledger's end; 0 for the transaction history
	Offsets int64   // between watermark and end; 0 for the transaction history
	Seconds float64 // since when something is missing, at most; 0: nothing is
}

// Lag returns the lag of a stream.
func (m *Metrics) Lag(stream string) Lag {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.lags[stream]
	l := Lag{Leads: of.leads, Seconds: of.seconds(time.Now())}
	l.Known = of.known && !math.IsNaN(l.Seconds)
	if stream == streamUpdates {
		l.End, l.Offsets = m.atEnd, max(0, m.atEnd-m.atWatermark)
	}
	return l
}

// lag is how far the visible part of a stream is behind its source. An unknown lag is NaN, never 0.
type lag struct {
	asked    bool      // this process reads the stream; else the metrics leave it out
	leads    bool      // this process writes the stream
	known    bool      // the source has answered since this process leads, and not failed since
	caughtUp bool      // by its last answer, everything in the source is visible
	at       time.Time // when that was last so; zero: never
	newest   time.Time // the record time of the newest visible update or record; zero: not known
}

// answered notes an answer of the source: whether everything that it has is visible.
func (l *lag) answered(caughtUp bool) {
	l.known, l.caughtUp = true, caughtUp
	if caughtUp {
		l.at = time.Now()
	}
}

// seconds returns for how long something may have been missing. Nothing is missing that was recorded up to the newest
// visible update, nor that the source had when the stream was last caught up. The ledger's clock says nothing where it
// is ahead of this one.
func (l *lag) seconds(now time.Time) float64 {
	since := l.at
	if l.newest.After(since) && !l.newest.After(now) {
		since = l.newest
	}
	switch {
	case !l.known:
		return math.NaN()
	case l.caughtUp:
		return 0
	case since.IsZero():
		return math.NaN()
	}
	return now.Sub(since).Seconds()
}

// lags collects the metrics that depend on the time of collection.
type lags struct {
	m       *Metrics
	offsets *prometheus.Desc
	seconds *prometheus.Desc
}

func newLags(m *Metrics) lags {
	name := func(name string) string { return prometheus.BuildFQName(namespace, "", name) }
	return lags{
		m: m,
		offsets: prometheus.NewDesc(name("lag_offsets"),
			"Offsets between the watermark and the ledger's end; NaN: not known.", nil, nil),
		seconds: prometheus.NewDesc(name("lag_seconds"), "Since when something of the stream is missing, 0 where nothing "+
			"is; NaN: not known.", []string{"stream"}, nil),
	}
}

func (l lags) Describe(to chan<- *prometheus.Desc) {
	to <- l.offsets
	to <- l.seconds
}

func (l lags) Collect(to chan<- prometheus.Metric) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if updates := l.m.lags[streamUpdates]; updates.asked {
		offsets := math.NaN()
		if updates.known {
			offsets = float64(max(0, l.m.atEnd-l.m.atWatermark))
		}
		to <- prometheus.MustNewConstMetric(l.offsets, prometheus.GaugeValue, offsets)
	}
	now := time.Now()
	for stream, lag := range l.m.lags {
		if lag.asked {
			to <- prometheus.MustNewConstMetric(l.seconds, prometheus.GaugeValue, lag.seconds(now), stream)
		}
	}
}
