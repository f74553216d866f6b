package ingest

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// metered is what a meter logs and reports.
type metered struct {
	*Meter
	log  bytes.Buffer
	told []ledger.Progress
}

func meterOf(start ledger.Progress) *metered {
	m := &metered{}
	m.Meter = NewMeter(slog.New(slog.NewJSONHandler(&m.log, nil)), start, func(p ledger.Progress) { m.told = append(m.told, p) })
	return m
}

func (m *metered) lines(t *testing.T) (lines []map[string]any) {
	t.Helper()
	for text := range bytes.Lines(m.log.Bytes()) {
		var line map[string]any
		require.NoError(t, json.Unmarshal(text, &line))
		delete(line, "time")
		lines = append(lines, line)
	}
	return lines
}

// A line is written every ten seconds, with the rate and the time left of then; the callback is called once a
// second.
func TestMeterTellsRateAndTimeLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := meterOf(ledger.Progress{Stream: "updates", Unit: "updates", Start: 1000})
		began := time.Now()
		m.SetEnd(31_000)
		for i := range 250 { // ten offsets and four updates in 100 ms
			time.Sleep(100 * time.Millisecond)
			m.Add(t.Context(), 1000+10*int64(i+1), 4)
		}
		require.Equal(t, []map[string]any{
			{"level": "INFO", "msg": "progress", "stream": "updates", "at": 2000.0, "end": 31000.0, "updates": 400.0, "updates_per_second": 40.0, "left": "4m50s"},
			{"level": "INFO", "msg": "progress", "stream": "updates", "at": 3000.0, "end": 31000.0, "updates": 800.0, "updates_per_second": 40.0, "left": "4m40s"},
		}, m.lines(t))
		require.Equal(t, ledger.Progress{
			Stream: "updates", Unit: "updates", BeganAt: began, Start: 1000, Position: 1200, End: 31_000, UnitsDone: 80, Rate: 40, TimeLeft: 298 * time.Second,
		}, m.told[0], "after two seconds")
		require.Len(t, m.told, 24, "every second from then on")

		// A rate that changes is that of the last ten seconds soon.
		for i := range 110 {
			time.Sleep(100 * time.Millisecond)
			m.Add(t.Context(), 3500+100*int64(i+1), 8)
		}
		last := m.told[len(m.told)-1]
		require.InDelta(t, 80, last.Rate, 0.1)
		require.InDelta(t, (31_000-float64(last.Position))/1000, last.TimeLeft.Seconds(), 0.1)
	})
}

// What begins after a rest is counted anew, and work that is done soon is not worth a word.
func TestMeterRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := meterOf(ledger.Progress{Stream: "updates", Unit: "updates", Start: 10, End: 100})
		for i := range 100 { // the tail: a rest after each batch
			time.Sleep(time.Second)
			m.Add(t.Context(), int64(11+i), 1)
			m.Idle()
		}
		require.Empty(t, m.told)
		require.Empty(t, m.lines(t))

		time.Sleep(time.Hour)
		m.SetEnd(1110)
		began := time.Now()
		m.Add(t.Context(), 210, 50)
		time.Sleep(4 * time.Second)
		m.Add(t.Context(), 310, 50)
		m.Idle()
		m.Idle()
		after := ledger.Progress{
			Stream: "updates", Unit: "updates", BeganAt: began, Start: 110, Position: 310, End: 1110, UnitsDone: 100, Rate: 25, TimeLeft: 16 * time.Second,
		}
		ended := after
		ended.Ended = true
		require.Equal(t, []ledger.Progress{after, ended}, m.told, "an end is told once, and only of what was told")
	})
}

// If the end is not known, passed, or too far, there is no time left.
func TestMeterWithoutAnEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			end int64
			by  int64 // how far each step goes
		}{"not known": {0, 10}, "passed": {5, 10}, "nothing moves": {1000, 0}, "too far": {1 << 60, 1}} {
			m := meterOf(ledger.Progress{Stream: "snapshot", End: c.end})
			for i := range 11 {
				time.Sleep(time.Second)
				m.Add(t.Context(), c.by*int64(i+1), 10)
			}
			require.Len(t, m.told, 10, name)
			for _, p := range m.told {
				require.Zero(t, p.TimeLeft, name)
			}
			line := m.lines(t)[0]
			require.NotContains(t, line, "left", name)
			require.EqualValues(t, 100, line["done"], name)
			require.EqualValues(t, 10, line["per_second"], name)
		}
	})
}

func TestMeterIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	m := NewMeter(slog.New(slog.DiscardHandler), ledger.Progress{}, nil)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range 1000 {
				m.Add(t.Context(), int64(i), 1)
				m.SetEnd(int64(i))
			}
		})
	}
	group.Wait()
	require.EqualValues(t, 4000, m.current.UnitsDone)
	m.Idle()
}

// What lies before the first update of a ledger is no work: the time left is that of what follows.
func TestMeterCountsFromTheFirstUpdate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const first = 1_000_000_000
		m := meterOf(ledger.Progress{Stream: "updates", Unit: "updates"})
		m.SetEnd(first + 3000)
		m.Add(t.Context(), first-1, 0)
		for i := range 100 {
			time.Sleep(100 * time.Millisecond)
			m.Add(t.Context(), first+10*int64(i), 4)
		}
		require.Equal(t, []map[string]any{
			{"level": "INFO", "msg": "progress", "stream": "updates", "at": first + 990.0, "end": first + 3000.0, "updates": 400.0, "updates_per_second": 40.0, "left": "20s"},
		}, m.lines(t))
		require.EqualValues(t, first, m.told[0].Start)
	})
}
