package bench

import (
	"time"

	"ledgerindexer/internal/tools/resident"
)

// peakMeter follows the peak resident memory of a process, because the system no longer reports it after the process
// has ended.
type peakMeter struct {
	end  chan struct{}
	peak chan int64
}

// lookAtMemoryEvery is how often a peakMeter measures.
const lookAtMemoryEvery = 20 * time.Millisecond

func followPeak(pid int) *peakMeter {
	m := &peakMeter{end: make(chan struct{}), peak: make(chan int64, 1)}
	go func() {
		tick := time.NewTicker(lookAtMemoryEvery)
		defer tick.Stop()
		var peak int64
		for {
			peak = max(peak, resident.Peak(pid))
			select {
			case <-tick.C:
			case <-m.end:
				m.peak <- peak
				return
			}
		}
	}()
	return m
}

// stop returns the peak in bytes; 0 where the system does not report it.
func (m *peakMeter) stop() int64 {
	close(m.end)
	return <-m.peak
}
