package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

const lookAtMemoryEvery = 20 * time.Millisecond

// resident follows the most memory that a process has had resident at once, as the system counts it (VmHWM). What a process
// is said to have taken when it has ended (ru_maxrss) also counts the memory of the process that started it.
type resident struct {
	end  chan struct{}
	peak chan int64
}

func followResident(pid int) *resident {
	r := &resident{end: make(chan struct{}), peak: make(chan int64, 1)}
	go func() {
		tick := time.NewTicker(lookAtMemoryEvery)
		defer tick.Stop()
		var peak int64
		for {
			peak = max(peak, residentPeak(pid))
			select {
			case <-tick.C:
			case <-r.end:
				r.peak <- peak
				return
			}
		}
	}()
	return r
}

// stop gives the peak in bytes; 0 where the system does not tell.
func (r *resident) stop() int64 {
	close(r.end)
	return <-r.peak
}

// residentPeak is a process's peak so far, in bytes; 0 where the system does not tell, or the process has ended.
func residentPeak(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if field, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			kB, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(field), []byte("kB")))), 10, 64)
			if err != nil {
				return 0
			}
			return kB * 1024
		}
	}
	return 0
}
