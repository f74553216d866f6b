package scan

import (
	"context"
	"sync"
	"time"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// How often a service is polled for new updates.
const (
	// While no updates come it is polled this often: 55 times a minute, so that all requests together stay below one a
	// second.
	quietEvery = 1100 * time.Millisecond
	// After a new update it is polled this often, and then less and less: the wait grows to a quietPart-th of the time
	// since that update, up to quietEvery, so that polling adds little to the time that updates are apart.
	busyEvery, quietPart = 150 * time.Millisecond, 20
)

// polls paces the polls for new updates.
type polls struct {
	mu          sync.Mutex
	asked, news time.Time // when the last poll began, and when one last brought updates
}

// due returns when the next poll is due.
func (p *polls) due() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked.Add(min(quietEvery, max(busyEvery, p.asked.Sub(p.news)/quietPart)))
}

// answered records the answer to a poll that began at asked. If it was full, the next poll is due at once.
func (p *polls) answered(asked time.Time, came, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked = asked; full {
		p.asked = time.Time{}
	}
	if came {
		p.news = time.Now()
	}
}

// until polls until updates come, or none came for the time idle.
func (p *polls) until(
	ctx context.Context, after ledger.Offset, idle time.Duration, ask func(context.Context, ledger.Offset) (ledger.Page,
		bool, error),
) (page ledger.Page, full bool, err error) {
	end := time.Now().Add(idle)
	for {
		next := p.due()
		if next.After(end) {
			return ledger.Page{From: after, To: after}, false, jsonhttp.Wait(ctx, time.Until(end))
		}
		if err := jsonhttp.Wait(ctx, time.Until(next)); err != nil {
			return ledger.Page{}, false, err
		}
		asked := time.Now()
		page, full, err := ask(ctx, after)
		if err == nil {
			p.answered(asked, page.To > after, full)
		}
		if err != nil || page.To > after {
			return page, full, err
		}
	}
}
