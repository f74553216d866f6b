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

// reply is the answer of a service.
type reply[T any] struct {
	from  *peer
	value T
}

func senders[T any](replies []reply[T]) (list []*peer) {
	for _, r := range replies {
		list = append(list, r.from)
	}
	return list
}

func urls[T any](replies []reply[T]) string {
	var list []string
	for _, r := range replies {
		list = append(list, r.from.url())
	}
	return strings.Join(list, ", ")
}

// waitState says which further replies can still be expected.
type waitState int

const (
	moreMayCome  waitState = iota // some services have not answered, and were not waited for long
	othersRest                    // every service that does not rest has answered or failed, and some that rest were not asked
	patienceOver                  // the services that have not answered were waited for as long as they may take
	allAnswered                   // every service has answered or failed
)

// firstReply is a choose function of askServices that takes the first reply.
func firstReply[T any](s *Several) func(got []reply[T], _ waitState) (T, bool, error) {
	return func(got []reply[T], _ waitState) (none T, ok bool, err error) {
		if len(got) == 0 {
			return none, false, nil
		}
		s.noteUsed(got[0].from)
		return got[0].value, true, nil
	}
}

// askServices asks several services a question that each answers at once.
func askServices[T any](
	ctx context.Context, s *Several, initially int, ask func(context.Context, *peer) (T, error), choose func([]reply[T], waitState) (T, bool, error),
) (T, error) {
	return askPatiently(ctx, s, s.patience, initially, ask, choose)
}

// askPatiently asks several services the same question. It begins with the first `initially` services of order, and asks one more whenever
// a service fails, has not answered after the time patience, or the replies so far are not enough. After each event choose is called with
// all replies so far, in the order of the services, and with what may still come. It returns the result once they are enough; its error
// ends the question.
func askPatiently[T any](
	ctx context.Context, s *Several, patience time.Duration, initially int,
	ask func(context.Context, *peer) (T, error), choose func([]reply[T], waitState) (T, bool, error),
) (none T, err error) {
	type outcome struct {
		service int // its index in order
		value   T
		err     error
	}
	order, awake := s.order()
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	outcomes := make(chan outcome, len(order))
	values, failures := make([]*T, len(order)), make([]error, len(order))
	unanswered := map[int]time.Time{} // when they were asked
	asked := 0                        // how many services
	askNext := func() {
		o := outcome{service: asked}
		asked++
		unanswered[o.service] = time.Now()
		go func() {
			if o.err = s.checkNetwork(asking, order[o.service]); o.err == nil {
				o.value, o.err = ask(asking, order[o.service])
			}
			outcomes <- o
		}()
	}
	for asked < min(initially, len(order)) {
		askNext()
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	over := false
	for {
		select {
		case o := <-outcomes:
			delete(unanswered, o.service)
			var other *otherNetwork
			if ctx.Err() != nil || errors.As(o.err, &other) || errors.Is(o.err, ledger.ErrByteLimit) {
				return none, cmp.Or(o.err, ctx.Err())
			}
			s.noteOutcome(ctx, order[o.service], o.err)
			if failures[o.service] = o.err; o.err == nil {
				values[o.service] = &o.value
			}
		case <-timer.C:
			over = true
			if asked < len(order) {
				askNext()
			}
			timer.Reset(patience)
		}
		var replies []reply[T]
		for i, value := range values {
			if value != nil {
				replies = append(replies, reply[T]{order[i], *value})
			}
		}
		state := moreMayCome
		switch {
		case asked == len(order) && len(unanswered) == 0:
			state = allAnswered
		case over:
			state = patienceOver
		case asked >= awake && len(unanswered) == 0:
			state = othersRest
		}
		value, ok, err := choose(replies, state)
		if ok || err != nil {
			for i, since := range unanswered {
				if time.Since(since) >= patience {
					s.noteOutcome(ctx, order[i], errTooSlow)
				}
			}
			return value, err
		}
		if state == allAnswered {
			return none, s.tooFew(order, failures)
		}
		for asked < len(order) && len(replies)+len(unanswered) < initially {
			askNext()
		}
		if len(unanswered) == 0 {
			askNext()
		}
	}
}

var errTooSlow = fmt.Errorf("it has not answered for %v", answerPatience)

// order returns the services in the order in which to ask them: those that rest come last, after the others, which are awake. If one reply
// is enough, that is the order in which they were given. If several have to agree, it is a random one, so that no service can know which
// others it will be compared with.
func (s *Several) order() (order []*peer, awake int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	rests := func(m *peer) time.Duration { return max(0, m.restsUntil.Sub(now)) }
	order = slices.Clone(s.peers)
	if s.agree > 1 && s.shuffle != nil {
		s.shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	slices.SortStableFunc(order, func(a, b *peer) int { return cmp.Compare(rests(a), rests(b)) })
	for awake < len(order) && rests(order[awake]) == 0 {
		awake++
	}
	return order, awake
}

// noteOutcome records whether a service answered. A service that failed rests. A warning is logged once.
func (s *Several) noteOutcome(ctx context.Context, m *peer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		if m.disagreed && time.Now().Before(m.restsUntil) {
			return
		}
		m.failures, m.restsUntil, m.disagreed = 0, time.Time{}, false
		if m.warned && m.behindSince.IsZero() {
			m.warned = false
			s.log.InfoContext(ctx, "a Scan service answers again", "scan", m.url())
		}
		return
	}
	rest := min(longestRest, firstRest<<min(m.failures, 10))
	if asks, ok := errors.AsType[*Error](err); ok {
		rest = max(rest, min(asks.Wait(), longestRest))
	}
	m.failures++
	m.restsUntil = time.Now().Add(rest)
	s.warnPassedOver(ctx, m, "failed", "error", err)
}

// warnPassedOver counts that a service was passed over, and logs a warning the first time.
func (s *Several) warnPassedOver(ctx context.Context, m *peer, reason string, why ...any) {
	if s.passed != nil {
		s.passed(m.url(), reason)
	}
	if !m.warned {
		m.warned = true
		s.log.WarnContext(ctx, "a Scan service is passed over", append([]any{"scan", m.url(), "reason", reason}, why...)...)
	}
}

// tooFew returns the error if fewer services answered than have to agree. It may be retried if one of their failures may.
func (s *Several) tooFew(order []*peer, failures []error) error {
	var chosen error
	var texts []string
	for i, err := range failures {
		if err == nil {
			continue
		}
		texts = append(texts, fmt.Sprintf("%s: %v", order[i].url(), err))
		if chosen == nil || permanent(chosen) && !permanent(err) {
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

// permanent reports whether retrying does not help.
func permanent(err error) bool {
	var problem *ledger.Problem
	var unread *ledger.DecodeError
	return errors.As(err, &problem) || errors.As(err, &unread) || errors.Is(err, ledger.ErrNotOffered)
}
