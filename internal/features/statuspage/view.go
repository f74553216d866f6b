package statuspage

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // page.html and page.css
	"encoding/base64"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"ledgerindexer/internal/base/terminal"
	"ledgerindexer/internal/features/admin"
	"ledgerindexer/internal/features/status"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// The page as HTML: its template, which render fills with a view of the data.
var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string

	page = template.Must(template.New("page").Parse(pageHTML))
)

// styleHash is that of the page's style, as a Content-Security-Policy names it.
func styleHash() string {
	sum := sha256.Sum256([]byte(pageCSS))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// refreshAfter is after how many seconds a browser asks for the page again.
const refreshAfter = 15

type view struct {
	Style   template.CSS
	Refresh int // seconds; 0: never
	State   badge
	Data    Data
	Now     string
	Up      string
	Ledgers []ledgerView
	Notices []noticeView
}

// badge is a word with a colour: good, idle, warn or bad.
type badge struct{ Text, Kind string }

type ledgerView struct {
	Title, Database string
	Error, ReadAt   string
	Streams         []streamView
	Work            []workView
	Bar             *bar
	Lines           []status.Line
}

type streamView struct {
	Title, Source string
	State         badge
	Text, Do      string
	Leader        string
	Tiles         []tile
	Charts        []chart
	Failure       *failure
}

// tile is a number that is read at a glance.
type tile struct{ Label, Value, Note, Kind string }

type workView struct {
	Title, Rate string
	Percent     float64
	Known       bool
}

type failure struct{ When, What, Do string }

type noticeView struct {
	Notice
	When string
	Kind string
}

func render(d Data, refresh bool) ([]byte, error) {
	v := view{Style: template.CSS(pageCSS), Data: d, Now: clock(d.GeneratedAt),
		Up: terminal.Brief(d.GeneratedAt.Sub(d.Program.StartedAt))}
	if refresh {
		v.Refresh = refreshAfter
	}
	for _, l := range d.Ledgers {
		v.Ledgers = append(v.Ledgers, newLedgerView(l, d.GeneratedAt))
	}
	for _, n := range d.Notices {
		kind := "warn"
		if n.Level == "ERROR" {
			kind = "bad"
		}
		v.Notices = append(v.Notices, noticeView{n, ago(d.GeneratedAt, n.At), kind})
	}
	v.State = overall(d)
	var b bytes.Buffer
	if err := page.Execute(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// overall is the state of the whole process in a word.
func overall(d Data) badge {
	waits, fails := false, false
	for _, l := range d.Ledgers {
		for _, s := range l.Process {
			if s.State == admin.Failed {
				return badge{"an operator must act", "bad"}
			}
			waits = waits || !s.Ready || s.State == admin.Waits
		}
		if l.Error != "" {
			return badge{"the database does not answer", "bad"}
		}
		if l.Verified != nil && l.Verified.Different > 0 {
			return badge{"stored rows differ from the ledger", "bad"}
		}
		fails = fails || l.TaskFails()
	}
	switch {
	case waits:
		return badge{"waiting", "warn"}
	case fails:
		return badge{"a background task fails", "warn"}
	case slices.ContainsFunc(d.Notices,
		func(n Notice) bool { return n.Level == "ERROR" && d.GeneratedAt.Sub(n.At) < shownFor }):
		return badge{"errors in the last hour: see below", "warn"}
	}
	return badge{"all is well", "good"}
}

var ledgerTitles = map[string]string{"ledger": "Ledger", "network": "Network"}

func newLedgerView(l LedgerData, now time.Time) ledgerView {
	v := ledgerView{Title: cmp.Or(ledgerTitles[l.Name], l.Name), Error: l.Error}
	if l.Error != "" && !l.ReadAt.IsZero() {
		v.ReadAt = ago(now, l.ReadAt)
	}
	for _, s := range l.Process {
		v.Streams = append(v.Streams, newStreamView(s, l, now))
	}
	if l.Report == nil {
		return v
	}
	v.Database = l.Database
	for _, w := range l.UnderWay {
		part, known := w.Progress.Part()
		v.Work = append(v.Work, workView{Title: w.Title(), Rate: terminal.Rate(w.Progress),
			Percent: math.Round(part*1000) / 10, Known: known})
	}
	if len(l.Streams) > 0 {
		v.Bar = new(newBar(l.Streams[0], l.Verified, endOf(l.Report), l.Name == "network"))
	}
	v.Lines = l.Lines(l.Name == "network")
	if l.GrowthDay != nil {
		v.Lines = append(v.Lines, status.Line{Name: "growth",
			Texts: []string{signed(*l.GrowthDay) + " a day at this rate"}})
	}
	return v
}

func endOf(r *status.Report) ledger.Offset {
	if r.Ledger == nil || r.Ledger.Offset == nil {
		return 0
	}
	return *r.Ledger.Offset
}

var states = map[admin.State]badge{
	admin.Leads:    {"leads", "good"},
	admin.StandsBy: {"stands by", "idle"},
	admin.Waits:    {"waits", "warn"},
	admin.Failed:   {"failed", "bad"},
	admin.Stopped:  {"stopped", "idle"},
}

var streamTitles = map[string]string{
	"updates": "Updates of the participant", "transactions": "Transaction history", "network": "Updates of the network",
}

func newStreamView(s StreamData, l LedgerData, now time.Time) streamView {
	v := streamView{
		Title: cmp.Or(streamTitles[s.Stream], s.Stream), Source: strings.TrimSpace(s.Source + " " + s.SourceVersion),
		State: states[s.State],
	}
	if v.Text, v.Do = status.WhatToDo(s.Text); v.Text == "leading" || strings.HasPrefix(v.Text, "standing by") {
		v.Text = "" // the badge says so
	}
	unit := "updates"
	if s.Kind == store.StreamTransactions {
		unit = "records"
	}
	lag := tile{Label: "behind", Value: lagText(s.LagSeconds), Kind: lagKind(s.LagSeconds)}
	switch {
	case !s.LagSeconds.Known() && s.was.Known():
		lag.Note = lagText(s.was) + " " + ago(now, s.MeasuredAt)
	case !s.LagSeconds.Known() && s.State == admin.StandsBy:
		lag.Note = "the leader's page may say"
	}
	if s.LagOffsets != nil && *s.LagOffsets > 0 {
		lag.Note = terminal.Count(*s.LagOffsets) + " offsets"
	}
	v.Tiles = []tile{lag, {Label: unit + " stored", Value: rateText(s.PerSecond), Note: "in the last minute"}}
	if l.Report != nil {
		v.fromReport(s.Kind, l, now)
	}
	v.Charts = []chart{
		newChart("lag", "Behind its source", s.Samples, now, 10, func(s Sample) Measured { return s.Lag }, lagText),
		newChart("rate", strings.ToUpper(unit[:1])+unit[1:]+" stored", s.Samples, now, 1,
			func(s Sample) Measured { return s.PerSecond }, rateText),
	}
	return v
}

// fromReport adds what the database says of the stream. Where it does not answer now, that is not known, and what it
// said last is a note.
func (v *streamView) fromReport(kind string, l LedgerData, now time.Time) {
	newest := func(what string, at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return "the newest " + what + ago(now, at)
	}
	add := func(label, value, note, kind string) {
		if l.Error != "" {
			value, note, kind = "not known", value+" "+ago(now, l.ReadAt), "idle"
		}
		v.Tiles = append(v.Tiles, tile{Label: label, Value: value, Note: note, Kind: kind})
	}
	lead := func(holder string, since time.Time, leads bool) {
		switch {
		case holder == "":
		case l.Error != "":
			v.Leader = "who leads is not known, " + ago(now, l.ReadAt) + " it was " + holder
		case !leads:
			v.Leader = "nobody leads; the last one was " + holder
		default:
			v.Leader = "led by " + holder + ", for " + terminal.Brief(now.Sub(since))
		}
	}
	r := l.Report
	if kind == store.StreamTransactions {
		if h := r.Transactions; h != nil {
			add("records", terminal.Count(h.Records), newest("", h.NewestRecord), "")
			lead(h.Leader, h.LeaderSince, h.Leads)
		}
		v.Failure = newFailure(r.Task(store.StreamTransactions), now)
		return
	}
	lead(r.Leader, r.LeaderSince, r.Leads)
	v.Failure = newFailure(r.Task(store.StreamUpdates), now)
	if len(r.Streams) > 0 {
		value, kind := terminal.Count(int64(r.Streams[0].Watermark)), ""
		if len(value) > 13 { // as offsets of a network are
			kind = "long"
		}
		add("readers see up to offset", value, newest("update ", r.Streams[0].RecordTime), kind)
	}
	if h := r.Transactions; h != nil && h.Leader == "" { // they follow from the updates
		add("records", terminal.Count(h.Records), newest("", h.NewestRecord), "")
	}
}

func newFailure(t *status.Task, now time.Time) *failure {
	if t == nil || !t.Failing {
		return nil
	}
	what, do := status.WhatToDo(t.Failure)
	return &failure{When: ago(now, t.FailedAt), What: what, Do: do}
}

// lagKind judges a lag: from a minute on somebody may wonder.
func lagKind(m Measured) string {
	switch {
	case !m.Known():
		return "idle"
	case m >= 60:
		return "warn"
	}
	return "good"
}

func signed(bytes float64) string {
	if bytes < 0 {
		return "−" + terminal.Bytes(int64(-bytes))
	}
	return "+" + terminal.Bytes(int64(bytes))
}

func clock(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") }

func ago(now, at time.Time) string {
	if at.After(now) || now.Sub(at) < time.Second {
		return "just now"
	}
	return terminal.Brief(now.Sub(at)) + " ago"
}
