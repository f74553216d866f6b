// Package statuspage serves the daemon's status page, and the same as JSON: where each ledger and stream stands, and
// how it got there within the last hour. Nothing on it names a party or a contract.
package statuspage

import (
	"context"
	"sync"
	"time"

	"ledgerindexer/internal/base/version"
	"ledgerindexer/internal/features/admin"
	"ledgerindexer/internal/features/status"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

const (
	patience    = 5 * time.Second // with the database, and with a source
	freshFor    = 2 * time.Second // how long what was read is shown again
	sizesEvery  = time.Minute
	staleAfter  = sampleEvery + 2*patience // a measurement takes its time
	growthLeast = 5 * time.Minute          // between two sizes from which growth is computed
	sizesKept   = int(shownFor / sizesEvery)
	secondsADay = 24 * 60 * 60
	rateSamples = 4 // the rate that is shown is that of the last minute
)

// Config is what a page shows.
type Config struct {
	Build   version.Build
	Holder  string // this process, as leaders are named
	Health  *admin.Health
	Journal *Journal
	Ledgers []Ledger
	Hosts   []string // by which it may be asked for, beside addresses, localhost and names that end with .localhost
}

// Ledger is one pair of schemas.
type Ledger struct {
	Name    string
	Store   *store.Store
	Streams []Stream
	Sized   func(store.DiskUse) // called about once a minute with what the database takes on disk
}

// Stream is a stream that this process reads, or would read if it led.
type Stream struct {
	Title  string // as in health
	Kind   string // store.StreamUpdates or store.StreamTransactions
	Source string // what it is read from, such as "participant"
	Lag    func() admin.Lag
	// End asks the source for the ledger's end, for a process that does not write the stream; nil: the source can't be
	// asked.
	End func(ctx context.Context) (ledger.Offset, error)
	// Version returns the release of the source; empty: not known.
	Version func(ctx context.Context) string
}

// Data is what the page shows. Its JSON form is for scripts.
type Data struct {
	GeneratedAt time.Time    `json:"generated_at"`
	Program     Program      `json:"program"`
	Ready       bool         `json:"ready"` // every stream leads or stands by
	Ledgers     []LedgerData `json:"ledgers"`
	Notices     []Notice     `json:"notices"` // the last warnings and errors of this process, the newest first
}

// Program is this process.
type Program struct {
	Version   string    `json:"version"`
	Commit    string    `json:"commit"`
	Schema    int64     `json:"schema_version"`
	Go        string    `json:"go_version"`
	Process   string    `json:"process"`
	StartedAt time.Time `json:"started_at"`
}

// LedgerData is where a ledger stands.
type LedgerData struct {
	Name string `json:"name"`
	*status.Report
	ReadAt    time.Time    `json:"read_at,omitzero"`     // when the database said so
	Error     string       `json:"error,omitempty"`      // why it does not now
	GrowthDay *float64     `json:"growth_bytes_per_day"` // at the rate of the last hour; null: not known
	Process   []StreamData `json:"process"`              // the streams in this process
	sizes     []sized      // of the last hour
}

// StreamData is a stream as this process sees it.
type StreamData struct {
	Stream        string      `json:"stream"`
	Kind          string      `json:"kind"`
	Source        string      `json:"source"`
	SourceVersion string      `json:"source_version,omitempty"`
	State         admin.State `json:"state"`
	Ready         bool        `json:"ready"`
	Text          string      `json:"text"`
	End           int64       `json:"end_offset,omitempty"` // of the ledger, when it was last known
	LagOffsets    *int64      `json:"lag_offsets"`          // null: not known
	LagSeconds    Measured    `json:"lag_seconds"`
	PerSecond     Measured    `json:"per_second"`           // within the last minute
	MeasuredAt    time.Time   `json:"measured_at,omitzero"` // when lag and rate were last known
	Samples       []Sample    `json:"samples"`              // of the last hour, the oldest first
	was           Measured    // the lag at MeasuredAt
}

// Page is the status page of a process. It is safe for concurrent use.
type Page struct {
	cfg     Config
	started time.Time

	mu      sync.Mutex // guards the measurements
	ledgers []*measured

	reading sync.Mutex // guards what was last read of the databases
	read    []reading
}

type measured struct {
	heads   store.Heads
	headsAt time.Time // zero: not known
	sizes   []sized   // of the last hour
	streams []*measuredStream
}

type measuredStream struct {
	lag     admin.Lag
	at      time.Time // when the database last said how far the stream is; zero: never
	was     Measured  // the lag then
	behind  behind
	version string
	samples []Sample // of the last hour
}

type sized struct {
	at    time.Time
	bytes int64
}

type reading struct {
	at     time.Time // of the report; zero: there is none
	tried  time.Time
	report *status.Report
	err    string
}

// New returns a page. It shows measurements as long as Run runs.
func New(cfg Config) *Page {
	p := &Page{cfg: cfg, started: time.Now().UTC(), read: make([]reading, len(cfg.Ledgers))}
	for _, l := range cfg.Ledgers {
		m := &measured{}
		for range l.Streams {
			m.streams = append(m.streams, &measuredStream{was: unknown})
		}
		p.ledgers = append(p.ledgers, m)
	}
	return p
}

// Data reads the databases, unless that was done just now, and returns what the page shows. A database that does not
// answer is no error: what it said last is shown, and why it does not now.
func (p *Page) Data(ctx context.Context) Data {
	reports := p.reports(ctx)
	build := p.cfg.Build
	d := Data{GeneratedAt: time.Now().UTC(), Ready: true, Ledgers: []LedgerData{},
		Notices: append([]Notice{}, p.cfg.Journal.Notices()...), Program: Program{
			Version: build.Version, Commit: build.Commit, Schema: build.Schema, Go: build.Go, Process: p.cfg.Holder,
			StartedAt: p.started,
		}}
	states := map[string]admin.StreamState{}
	for _, s := range p.cfg.Health.States() {
		states[s.Stream] = s
		d.Ready = d.Ready && s.Ready
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, l := range p.cfg.Ledgers {
		m, r := p.ledgers[i], reports[i]
		of := LedgerData{Name: l.Name, Report: r.report, ReadAt: r.at, Error: status.Public(r.err), sizes: m.sizes}
		of.GrowthDay = growth(of.sizes)
		for j, s := range l.Streams {
			of.Process = append(of.Process, m.streams[j].data(s, states[s.Title], r.err == ""))
		}
		of.addLag()
		d.Ledgers = append(d.Ledgers, of)
	}
	return d
}

// data returns what is known of a stream now. What was measured too long ago, or of a database that does not answer any
// more, is not.
func (m *measuredStream) data(s Stream, state admin.StreamState, answers bool) StreamData {
	d := StreamData{
		Stream: s.Title, Kind: s.Kind, Source: s.Source, SourceVersion: m.version, State: state.State, Ready: state.Ready,
		Text: status.Public(state.Text), End: m.lag.End, LagSeconds: unknown, PerSecond: unknown,
		Samples:    append([]Sample{}, m.samples...),
		MeasuredAt: m.at, was: m.was,
	}
	if !answers || time.Since(m.at) > staleAfter {
		return d
	}
	if m.lag.Known {
		d.LagSeconds = Measured(m.lag.Seconds)
		if s.Kind == store.StreamUpdates {
			d.LagOffsets = &m.lag.Offsets
		}
	}
	sum, n := Measured(0), 0
	for _, sample := range d.Samples[max(0, len(d.Samples)-rateSamples):] {
		if sample.PerSecond.Known() {
			sum, n = sum+sample.PerSecond, n+1
		}
	}
	if n > 0 {
		d.PerSecond = sum / Measured(n)
	}
	return d
}

// addLag puts into the report what the process measured, where `indexer status` has what it asked for.
func (l *LedgerData) addLag() {
	if l.Report == nil {
		return
	}
	report := *l.Report
	for _, s := range l.Process {
		if s.Kind == store.StreamUpdates && len(report.Streams) > 0 {
			report.Ledger = &status.End{}
			if s.End > 0 {
				report.Ledger.Offset = new(max(ledger.Offset(s.End), report.Streams[0].Watermark))
			}
			if s.LagOffsets != nil {
				report.Ledger.Lag = new(ledger.Offset(*s.LagOffsets))
			}
		}
	}
	l.Report = &report
}

// growth returns by how many bytes a day a database grows, at the rate of the sizes; nil: they are too few.
func growth(sizes []sized) *float64 {
	if len(sizes) < 2 {
		return nil
	}
	first, last := sizes[0], sizes[len(sizes)-1]
	passed := last.at.Sub(first.at)
	if passed < growthLeast {
		return nil
	}
	return new(float64(last.bytes-first.bytes) / passed.Seconds() * secondsADay)
}

// reports reads the databases, unless that was tried just now.
func (p *Page) reports(ctx context.Context) []reading {
	p.reading.Lock()
	defer p.reading.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience) // others are shown the same
	defer cancel()
	var asked sync.WaitGroup
	for i, l := range p.cfg.Ledgers {
		r := &p.read[i]
		if time.Since(r.tried) < freshFor {
			continue
		}
		asked.Go(func() {
			report, err := read(ctx, l.Store)
			r.tried, r.err = time.Now(), ""
			if err != nil {
				r.err = err.Error()
				return
			}
			r.at, r.report = time.Now().UTC(), report.Public()
		})
	}
	asked.Wait()
	return append([]reading{}, p.read...)
}

func read(ctx context.Context, from *store.Store) (*status.Report, error) {
	now, err := from.Status(ctx)
	if err != nil {
		return nil, err
	}
	sizes, err := from.DiskUse(ctx)
	if err != nil {
		return nil, err
	}
	report := status.New(from, now)
	report.Sized(sizes)
	return report, nil
}
