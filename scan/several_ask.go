package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ledgerindexer/ledger"
)

// reply is what a service answered.
type reply[T any] struct {
	from  *peer
	value T
}

func from[T any](got []reply[T]) (list []*peer) {
	for _, a := range got {
		list = append(list, a.from)
	}
	return list
}

// moment says what may still come.
type moment int

const (
	coming  moment = iota // more answers may come soon
	waited                // what has not come yet was waited for long enough
	allCame               // nothing more can come
)

// first takes the first answer.
func first[T any](s *Several) func(got []reply[T], _ moment) (T, bool, error) {
	return func(got []reply[T], _ moment) (none T, ok bool, err error) {
		if len(got) == 0 {
			return none, false, nil
		}
		s.used(got[0].from)
		return got[0].value, true, nil
	}
}

// gather asks at first so many services, and each further one if another has failed, does not answer in time, or what came is not
// enough. choose is called with all usable answers, in the order in which services were asked, and says whether they are enough; an error
// of it ends the question.
func gather[T any](
	ctx context.Context, s *Several, at int, ask func(context.Context, *peer) (T, error), choose func([]reply[T], moment) (T, bool, error),
) (none T, err error) {
	type arrival struct {
		place int
		value T
		err   error
	}
	order := s.order()
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	replies := make(chan arrival, len(order))
	values, failures, waits := make([]*T, len(order)), make([]error, len(order)), map[int]bool{}
	began := 0
	begin := func() {
		place := began
		began++
		waits[place] = true
		go func() {
			r := arrival{place: place}
			if r.err = s.sameNetwork(asking, order[place]); r.err == nil {
				r.value, r.err = ask(asking, order[place])
			}
			replies <- r
		}()
	}
	for began < min(at, len(order)) {
		begin()
	}
	timer := time.NewTimer(s.patient)
	defer timer.Stop()
	now := coming
	for {
		select {
		case r := <-replies:
			delete(waits, r.place)
			var other *otherNetwork
			if ctx.Err() != nil || errors.As(r.err, &other) || errors.Is(r.err, ledger.ErrByteLimit) {
				return none, r.err
			}
			s.heard(ctx, order[r.place], r.err)
			if failures[r.place] = r.err; r.err == nil {
				values[r.place] = &r.value
			}
		case <-timer.C:
			now = waited
			timer.Reset(s.patient)
			if began < len(order) {
				begin()
			}
		}
		var got []reply[T]
		for place, value := range values {
			if value != nil {
				got = append(got, reply[T]{order[place], *value})
			}
		}
		if began == len(order) && len(waits) == 0 {
			now = allCame
		}
		value, ok, err := choose(got, now)
		if ok || err != nil {
			if now == waited {
				for place := range waits {
					s.heard(ctx, order[place], errTooSlow)
				}
			}
			return value, err
		}
		if now == allCame {
			return none, s.tooFew(order, failures)
		}
		for began < len(order) && len(got)+len(waits) < at {
			begin()
		}
		if len(waits) == 0 {
			begin()
		}
	}
}

var errTooSlow = fmt.Errorf("it has not answered for %v", patience)

// order returns the services in the order in which to ask them: those that rest come last. Alternatives are asked in the order in which they
// were given. Where several have to agree these are others each time, so that none knows that it will not be compared with the rest.
func (s *Several) order() []*peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	rests := func(m *peer) time.Duration { return max(0, m.until.Sub(now)) }
	order := slices.Clone(s.peers)
	if s.agree > 1 && s.shuffle != nil {
		s.shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	slices.SortStableFunc(order, func(a, b *peer) int { return cmp.Compare(rests(a), rests(b)) })
	return order
}

// heard notes whether a service answered. What it is passed over for is said once.
func (s *Several) heard(ctx context.Context, m *peer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		if m.lies && time.Now().Before(m.until) {
			return
		}
		m.failures, m.until, m.lies = 0, time.Time{}, false
		if m.said && m.behind.IsZero() {
			m.said = false
			s.log.InfoContext(ctx, "a Scan service answers again", "scan", m.url())
		}
		return
	}
	rest := min(longestRest, firstRest<<min(m.failures, 10))
	if asks := (*Error)(nil); errors.As(err, &asks) {
		rest = max(rest, min(asks.Wait(), longestRest))
	}
	m.failures++
	m.until = time.Now().Add(rest)
	s.pass(ctx, m, "failed", "error", err)
}

// pass says once that a service is passed over.
func (s *Several) pass(ctx context.Context, m *peer, reason string, why ...any) {
	if s.passed != nil {
		s.passed(m.url(), reason)
	}
	if !m.said {
		m.said = true
		s.log.WarnContext(ctx, "a Scan service is passed over", append([]any{"scan", m.url(), "reason", reason}, why...)...)
	}
}

// tooFew is the error where fewer services answered than have to agree. It passes if one of their failures may.
func (s *Several) tooFew(order []*peer, failures []error) error {
	var chosen error
	var texts []string
	for i, err := range failures {
		if err == nil {
			continue
		}
		texts = append(texts, fmt.Sprintf("%s: %v", order[i].url(), err))
		if chosen == nil || lasts(chosen) && !lasts(err) {
			chosen = err
		}
	}
	return &tooFew{fmt.Sprintf("%d of %d Scan services answered, and --scan-agree wants %d: %s",
		len(order)-len(texts), len(order), s.agree, strings.Join(texts, "; ")), chosen}
}

type tooFew struct {
	text  string
	cause error
}

func (t *tooFew) Error() string { return t.text }

func (t *tooFew) Unwrap() error { return t.cause }

// lasts reports whether trying again does not help.
func lasts(err error) bool {
	var problem *ledger.Problem
	var unread *ledger.DecodeError
	return errors.As(err, &problem) || errors.As(err, &unread) || errors.Is(err, ledger.ErrNotOffered)
}
