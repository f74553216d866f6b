package ingest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/ledger"
)

// server answers windows as one does that has so many updates per offset, of so many bytes, and so many on a page.
type server struct {
	density   float64
	bytesEach int64
	page      int
}

func (s server) read(window ledger.Range) *ledger.Page {
	n := int(float64(window.To-window.From) * s.density)
	page := &ledger.Page{From: window.From, To: window.To}
	if n > s.page {
		n = s.page
		page.To = min(window.To, window.From+max(1, ledger.Offset(float64(n)/s.density)))
	}
	page.Updates, page.Bytes = make([]ledger.Update, n), int64(n)*s.bytesEach
	return page
}

// A gap is crossed in some dozens of windows, each twice as wide as the one before, and behind it windows are narrow
// again at once.
func TestWindowsCrossAGap(t *testing.T) {
	t.Parallel()
	const gap = 1 << 52
	dense, nothing := server{1e-6, 2000, 1000}, server{0, 0, 1000}
	var s windowSizes
	p := newPlan(&s, 0, 1<<60, nil)
	var at ledger.Offset
	read := func(from server) *ledger.Page {
		window, ok := p.next(1)
		require.True(t, ok)
		p.take(window)
		page := from.read(window)
		s.learn(page, page.To < window.To)
		p.giveBack(ledger.Range{From: page.To, To: window.To})
		at = page.To
		return page
	}
	for range 100 {
		read(dense)
	}
	windows := 0
	for begun := at; at-begun < gap; windows++ {
		read(nothing)
	}
	require.Less(t, windows, 50)
	for range 5 {
		read(dense)
	}
	require.InDelta(t, 900, float64(len(read(dense).Updates)), 150)
}

// Windows grow or shrink until they bring a little less than a page, whatever they began with.
func TestWindowsFollowTheServer(t *testing.T) {
	t.Parallel()
	var s windowSizes
	p := newPlan(&s, 0, 1<<60, nil)
	for _, c := range []struct {
		name string
		server
		aimedAt, cut int // updates of the last windows, and how many of a hundred may be cut short
	}{
		{"lists", server{0.5, 2800, 200}, 180, 15},
		{"pages, where the limit is that of bytes", server{0.5, 2800, 2000}, windowBytes / 2800, 2},
		{"small updates, larger pages", server{0.5, 500, 2000}, 1800, 15},
		{"next to nothing", server{1e-6, 2800, 200}, 180, 15},
		{"everything at once again", server{1, 2800, 200}, 180, 15},
		{"large updates", server{1, 1 << 20, 200}, 2, 2},
		{"one page is one update", server{1, 100, 1}, 1, 100},
	} {
		var updates, cut int
		for i := range 1000 {
			window, ok := p.next(1)
			require.True(t, ok)
			p.take(window)
			page := c.read(window)
			s.learn(page, page.To < window.To)
			if i >= 900 {
				updates += len(page.Updates)
				if page.To < window.To {
					cut++
				}
			}
		}
		require.InEpsilon(t, c.aimedAt, float64(updates)/100, 0.15, c.name)
		require.LessOrEqual(t, cut, c.cut, c.name)
	}
}

// A range that is too much for the server is asked for in halves, also where nothing else is known of it.
func TestAWindowThatFailsIsHalved(t *testing.T) {
	t.Parallel()
	s := windowSizes{offsets: 1e9, updates: 1}
	const end = 1_000_000_000
	p := newPlan(&s, 0, end, nil)
	for i := range 10 {
		require.EqualValues(t, end>>i, s.clamp(end))
		s.failed(s.clamp(end), time.Second) // refused, not too much
		s.failed(s.clamp(end), 20*time.Second)
	}
	window, _ := p.next(1)
	require.LessOrEqual(t, window.To-window.From, ledger.Offset(end>>10))
	s.failed(10, 20*time.Second)
	for i := range 20 { // and grows again
		window, _ = p.next(1)
		p.take(window)
		s.learn(&ledger.Page{From: window.From, To: window.To}, false)
		require.EqualValues(t, 5<<i, window.To-window.From)
	}
}

// A range with few updates is cut into several windows all the same, so that they are fetched at a time.
func TestAShortRangeIsReadInParallel(t *testing.T) {
	t.Parallel()
	s := windowSizes{offsets: 1000, updates: 1000, page: 2000, width: 1800}
	p := newPlan(&s, 100, 2100, nil)
	windows := 0
	for {
		window, ok := p.next(8)
		if !ok {
			break
		}
		p.take(window)
		windows++
	}
	require.GreaterOrEqual(t, windows, 4)
	require.LessOrEqual(t, windows, 8)
}

// Whatever is stored already, comes back, or is cut: every offset is read exactly once, and the lowest first.
func TestAPlanCoversWhatIsMissing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		const end = 3000
		var read [end + 1]int // how often each offset was
		var stored []ledger.Range
		for at := random.IntN(500); at < end; {
			to := min(end, at+1+random.IntN(300))
			stored = append(stored, ledger.Range{From: ledger.Offset(at), To: ledger.Offset(to)})
			for offset := at + 1; offset <= to; offset++ {
				read[offset]++
			}
			at = to + random.IntN(900)
		}
		s := windowSizes{width: float64(1 + random.IntN(400))}
		p := newPlan(&s, 0, end/2, stored)
		if p.end < end {
			p.extend(end)
		}
		cut := ledger.Offset(end + 1)
		if random.IntN(2) == 0 {
			cut = ledger.Offset(random.IntN(end))
		}
		var busy []ledger.Range
		for n := 0; ; n++ {
			if n == 5 {
				p.cut(cut)
			}
			if window, ok := p.next(1 + random.IntN(8)); ok && len(busy) < 6 {
				require.Equal(rt, p.missing[0].From, window.From)
				p.take(window)
				busy = append(busy, window)
				continue
			}
			if len(busy) == 0 {
				break
			}
			i := random.IntN(len(busy))
			window := busy[i]
			busy = append(busy[:i], busy[i+1:]...)
			to := window.From + ledger.Offset(random.IntN(int(window.To-window.From)+1)) // nothing, some or all of it
			for offset := window.From + 1; offset <= to; offset++ {
				read[offset]++
			}
			p.giveBack(ledger.Range{From: to, To: window.To})
		}
		for offset := ledger.Offset(1); offset <= end; offset++ {
			require.LessOrEqual(rt, read[offset], 1, "offset %d", offset)
			if offset <= cut {
				require.Equal(rt, 1, read[offset], "offset %d", offset)
			}
		}
	})
}
