package audit

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"

	"ledgerindexer/ledger"
)

// selected verifies a part of the updates: a range, or a sample of it.
func (u *Updates) selected(ctx context.Context) error {
	s, held := u.Selection, u.result.Extent
	if s.From != nil && *s.From > held.Watermark || s.To != nil && *s.To < held.HistoryFloor {
		return &ledger.Problem{
			What: "no updates are stored in the range that is to be read again",
			Do: fmt.Sprintf("choose --from and --to between the history floor, %d, and the watermark, %d", held.HistoryFloor,
				held.Watermark),
		}
	}
	wanted := ledger.Range{From: held.HistoryFloor, To: held.Watermark}
	if u.end != nil {
		wanted.To = min(wanted.To, *u.end)
	}
	if s.From != nil {
		wanted.From = max(wanted.From, *s.From)
	}
	if s.To != nil {
		wanted.To = min(wanted.To, *s.To)
	}
	chosen := s.From != nil || s.To != nil
	if wanted.From >= wanted.To {
		if chosen { // else nothing was left out
			u.Note("updates: none are stored after offset %d up to %d", wanted.From, wanted.To)
			u.result.Unread = true
		}
		return nil
	}
	served := u.stillServed("updates", wanted)
	u.result.Unread = chosen && served.From >= served.To
	if !chosen && !s.All && served.From < served.To {
		return u.sample(ctx, served)
	}
	return u.readRange(ctx, "updates", served, false)
}

// sample reads pages from random offsets, none of them twice.
func (u *Updates) sample(ctx context.Context, r ledger.Range) error {
	places, err := u.places(ctx, r)
	if err != nil {
		return err
	}
	u.result.Seed = cmp.Or(u.Selection.Seed, rand.Uint64())
	random := rand.New(rand.NewPCG(u.result.Seed, 0))
	var read []ledger.Range
	for i := range u.Selection.Sample {
		u.Begin(Progress{Step: "updates, at random", Done: int64(i), Of: int64(u.Selection.Sample)})
		place := ledger.Range{From: places.pick(random), To: r.To}
		for _, before := range read {
			switch {
			case place.From < before.From:
				place.To = min(place.To, before.From)
			case place.From < before.To:
				place.To = place.From
			}
		}
		if place.From >= place.To {
			continue
		}
		page, err := u.comparePage(ctx, place, false)
		if err != nil {
			return err
		}
		read = append(read, ledger.Range{From: page.From, To: page.To})
	}
	return nil
}

// stretches are ranges from which random offsets are picked.
type stretches []ledger.Range

// places returns the stretches of a range.
func (u *Updates) places(ctx context.Context, r ledger.Range) (list stretches, err error) {
	if u.Stretches != nil {
		list, err = withRetry(ctx, u.Logger, func() ([]ledger.Range, error) { return u.Stretches(ctx, r) })
	}
	if len(list) == 0 {
		list = stretches{r}
	}
	return list, err
}

// pick returns a random offset in one of the stretches, all being equally likely.
func (s stretches) pick(random *rand.Rand) ledger.Offset {
	var all ledger.Offset
	for _, r := range s {
		all += r.To - r.From
	}
	at := ledger.Offset(random.Int64N(int64(all)))
	for _, r := range s {
		if at < r.To-r.From {
			return r.From + at
		}
		at -= r.To - r.From
	}
	panic("verify: a random offset lies in one of the ranges")
}
