package sandbox

import (
	"context"
	"time"
)

// RunLive grows the ledger at a steady rate until the context is done. A rate of
// zero or less only waits.
func (l *Ledger) RunLive(ctx context.Context, updatesPerSecond float64) {
	if updatesPerSecond <= 0 {
		<-ctx.Done()
		return
	}
	// Fast rates grow several updates a tick; slow ones tick once an update.
	pause := max(time.Duration(float64(time.Second)/updatesPerSecond), 5*time.Millisecond)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	start := time.Now()
	made := 0
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			due := int(now.Sub(start).Seconds() * updatesPerSecond)
			l.Grow(due - made)
			made = max(made, due)
		}
	}
}
