package sandbox

import (
	"context"
	"time"
)

// RunLive grows the ledger at a steady rate until the context is done. A rate of
// zero or less only waits.
func (l *Ledger) RunLive(ctx context.Context, updatesPerSecond float64) {
	_ = AtRate(ctx, updatesPerSecond, func(n int) error { // which fails only if that does
		l.Grow(n)
		return nil
	})
}

// AtRate calls grow with how many updates are due, at a steady rate, until the context
// is done or grow fails. A rate of zero or less only waits.
func AtRate(ctx context.Context, updatesPerSecond float64, grow func(n int) error) error {
	if updatesPerSecond <= 0 {
		<-ctx.Done()
		return nil
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
			return nil
		case now := <-tick.C:
			due := int(now.Sub(start).Seconds() * updatesPerSecond)
			if due <= made {
				continue
			}
			if err := grow(due - made); err != nil {
				return err
			}
			made = due
		}
	}
}
