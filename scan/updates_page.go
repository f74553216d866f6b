package scan

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// recordTimeForm is how services write the record times of updates. A page of updates is asked for after such a time.
const recordTimeForm = "2006-01-02T15:04:05.000000Z"

// updatesRequest is the body of POST /v2/updates.
type updatesRequest struct {
	After    *updatesAfter `json:"after,omitzero"` // nil: from the beginning
	PageSize int           `json:"page_size"`
}

type updatesAfter struct {
	MigrationID int64  `json:"after_migration_id"`
	RecordTime  string `json:"after_record_time"`
}

type updatesPage struct {
	updates []ledger.Update
	full    bool // it has as many as were asked for, so that more may follow
	bytes   int64
	changes int64 // the client's, before the request
}

// page reads at most n updates after an offset. It asks for fewer if the service, or the size of its answers, requires
// it.
func (u *Updates) page(ctx context.Context, operation string, after ledger.Offset, n int,
	maxBytes int64) (updatesPage, error) {
	q := purpose{method: http.MethodPost, path: pathUpdates, record: fmt.Sprintf("the update after offset %d", after)}
	for n = u.fitting(n, maxBytes); ; {
		changes := u.Changes()
		party, err := u.Party(ctx)
		if err != nil {
			return updatesPage{}, err
		}
		asked := min(n, u.size.Ask())
		page, err := u.ask(ctx, operation, after, asked, maxBytes, party)
		if err == nil {
			if _, err = u.Party(ctx); err != nil { // another network's may have answered
				return updatesPage{}, err
			}
			u.size.Worked()
			u.client.HistorySeen()
			page.changes = changes
			u.learn(&page)
			return page, nil
		}
		u.client.otherMayAnswer()
		switch {
		case errors.Is(err, jsonhttp.ErrTooLarge) && maxBytes < u.client.maxBody:
			if asked == 1 {
				return updatesPage{}, fmt.Errorf("%w: %w", ledger.ErrByteLimit, err)
			}
			n = asked / 2
		case shrinkAfter(u.size, asked, err):
			u.client.log.DebugContext(ctx, "reducing updates page size", "asked", asked, "now", u.size.Ask(), "error", err)
		default:
			return updatesPage{}, u.client.explain(err, q)
		}
	}
}

// fitting returns how many updates to ask for, so that the answer probably has at most maxBytes.
func (u *Updates) fitting(n int, maxBytes int64) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.each == 0 {
		return n
	}
	return int(max(1, min(int64(n), maxBytes*3/4/u.each)))
}

// learn records the size of updates, and the newest one.
func (u *Updates) learn(page *updatesPage) {
	if len(page.updates) == 0 {
		return
	}
	u.note(lastOffset(page.updates, 0))
	u.mu.Lock()
	defer u.mu.Unlock()
	each := max(1, page.bytes/int64(len(page.updates)))
	if u.each > 0 {
		each = (7*u.each + each) / 8
	}
	u.each = each
}

func (u *Updates) ask(ctx context.Context, operation string, after ledger.Offset, n int, maxBytes int64,
	party string) (updatesPage, error) {
	r := updatesRequest{PageSize: n}
	if after > 0 {
		migrationID, recordTime := after.NetworkPosition()
		r.After = &updatesAfter{migrationID, recordTime.Format(recordTimeForm)}
	}
	a, err := u.client.do(ctx, jsonhttp.Request{Operation: operation, Path: pathUpdates, Body: r, MaxBytes: maxBytes})
	if err != nil {
		return updatesPage{}, err
	}
	defer jsonhttp.Release(a.Body)
	updates, err := ledger.DecodeNetworkUpdates(a.Body, after, party)
	u.client.http.Decoded(ctx, a)
	if err != nil {
		return updatesPage{}, u.client.misread(operation, a, fmt.Errorf("%s: %w", operation, err))
	}
	return updatesPage{updates: updates, full: len(updates) >= n, bytes: int64(len(a.Body))}, nil
}

// LedgerEnd returns the offset of the newest update; 0 if there is none. The service has no request for it, so it is
// searched for: first after the newest update that is known; if that is old, shortly before now; then by bisection
// between an offset with updates after it and one without. Later calls mostly take one request.
//
// The errors are those of ReadUpdates.
func (u *Updates) LedgerEnd(ctx context.Context) (ledger.Offset, error) {
	end, err := u.search(ctx)
	if err != nil {
		return 0, fmt.Errorf("look for the newest update: %w", err)
	}
	u.mu.Lock()
	expected := u.expected
	u.mu.Unlock()
	if end < expected {
		return 0, fmt.Errorf("look for the newest update: %w", lagging("updates-end", expected))
	}
	return end, nil
}

// firstStep is how long before now the newest update is looked for first, and how far after a known update that is
// newer than that. Each next step is eight times as long.
const firstStep = 10 * time.Second

// search does so. What it has learned is kept if a request fails. An offset that had no updates after it may have some
// later, so it only says where to look.
func (u *Updates) search(ctx context.Context) (ledger.Offset, error) {
	u.mu.Lock()
	low, high := u.newest, u.quiet
	u.mu.Unlock()
	step, ahead := firstStep, ledger.Offset(firstStep.Microseconds())
	for at := low; ; {
		page, err := u.page(ctx, "updates-end", at, newsPage, u.client.maxBody)
		if err != nil {
			return 0, err
		}
		switch {
		case len(page.updates) > 0:
			if low = lastOffset(page.updates, 0); !page.full {
				return low, nil
			}
		case at == low:
			return low, nil
		default:
			high = at
			step *= 8
			u.mu.Lock()
			u.quiet = high
			u.mu.Unlock()
		}
		if high <= low || endOfMigration(high) != endOfMigration(low) {
			high, step = endOfMigration(low), firstStep
		}
		next := nextLook(low, high, step, ahead)
		if next == low+ahead {
			ahead *= 8
		}
		at = next
	}
}

// Stretches returns the parts of a range in which there are updates, in order; between the migrations there are none. A
// migration is taken to end when the next begins. It sends a request for each migration.
//
// The errors are those of ReadUpdates.
func (u *Updates) Stretches(ctx context.Context, r ledger.Range) (list []ledger.Range, err error) {
	for at := r.From; at < r.To; {
		page, err := u.page(ctx, "updates-first", at, 1, u.client.maxBody)
		if err != nil {
			return nil, fmt.Errorf("look for the updates after offset %d up to %d: %w", r.From, r.To, err)
		}
		if len(page.updates) == 0 || page.updates[0].Offset > r.To {
			break
		}
		first := page.updates[0].Offset
		_, began := first.NetworkPosition()
		if n := len(list); n > 0 {
			migrationID, _ := list[n-1].To.NetworkPosition()
			end, err := ledger.NetworkOffset(migrationID, ledger.Time{Time: began, Valid: true})
			if err == nil && end > list[n-1].From {
				list[n-1].To = min(list[n-1].To, end)
			}
		}
		at = endOfMigration(first)
		list = append(list, ledger.Range{From: first - 1, To: min(at, r.To)})
	}
	return list, nil
}

// endOfMigration returns the highest offset that the migration of an offset can have.
func endOfMigration(offset ledger.Offset) ledger.Offset {
	migrationID, _ := offset.NetworkPosition()
	return ledger.LastOfMigration(migrationID)
}

// nextLook returns where to look for the newest update between low, an update, and high, after which there is none: at
// the time step before now; if low is newer, ahead of it; else in the middle.
func nextLook(low, high ledger.Offset, step time.Duration, ahead ledger.Offset) ledger.Offset {
	migrationID, _ := low.NetworkPosition()
	before := ledger.Time{Time: time.Now().Add(-step), Valid: true}
	before.Time = before.Time.Truncate(time.Microsecond)
	middle := low + (high-low)/2
	at, err := ledger.NetworkOffset(migrationID, before)
	switch {
	case err == nil && at > low && at < high:
		return at
	case err == nil && at <= low && step == firstStep:
		return min(low+ahead, middle)
	}
	return middle
}
