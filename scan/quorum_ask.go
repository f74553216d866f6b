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
	from  *replica
	value T
}

func senders[T any](replies []reply[T]) (list []*replica) {
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
	moreMayCome waitState = iota // some services have not answered, and were not waited for long
	// every service that does not rest has answered or failed, and some that rest were not asked
	othersRest
	patienceOver // the services that have not answered were waited for as long as they may take
	allAnswered  // every service has answered or failed
)

// firstReply is a choose function of askServices that takes the first reply.
func firstReply[T any](s *Quorum) func(got []reply[T], _ waitState) (T, bool, error) {
	return func(got []reply[T], _ waitState) (none T, ok bool, err error) {
		if len(got) == 0 {
			return none, false, nil
		}
		s.recordUsed(got[0].from)
		return got[0].value, true, nil
	}
}

// askServices asks several services a question that each answers at once.
func askServices[T any](
	ctx context.Context, s *Quorum, initially int, ask func(context.Context, *replica) (T, error),
	choose func([]reply[T], waitState) (T, bool, error),
) (T, error) {
	return hedge(ctx, s, s.patience, initially, ask, choose)
}

// hedge asks several services the same question. It begins with the first `initially` services of order, and
// asks one more whenever a service fails, has not answered after the time patience, or the replies so far are not
// enough. After each event choose is called with all replies so far, in the order of the services, and with what may
// still come. It returns the result once they are enough; its error ends the question.
func hedge[T any](
	ctx context.Context, s *Quorum, patience time.Duration, initially int,
	ask func(context.Context, *replica) (T, error), choose func([]reply[T], waitState) (T, bool, error),
) (none T, err error) {
	q := newQuestion(s, ask)
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	for q.asked < initially && q.askNext(asking) {
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	over := false
	for {
		select {
		case o := <-q.outcomes:
			if err := q.take(ctx, o); err != nil {
				return none, err
			}
		case <-timer.C:
			over = true
			q.askNext(asking)
			timer.Reset(patience)
		}
		replies, state := q.replies(), q.state(over)
		value, ok, err := choose(replies, state)
		if ok || err != nil {
			q.noteSlow(ctx, patience)
			return value, err
		}
		if state == allAnswered {
			return none, s.tooFew(q.order, q.failures)
		}
		for len(replies)+len(q.unanswered) < initially && q.askNext(asking) {
		}
		if len(q.unanswered) == 0 {
			q.askNext(asking)
		}
	}
}

// question is one that services are being asked. They are known by their index in order.
type question[T any] struct {
	services   *Quorum
	ask        func(context.Context, *replica) (T, error)
	order      []*replica
	awake      int
	asked      int // how many services were
	unanswered map[int]time.Time
	values     []*T
	failures   []error
	outcomes   chan outcome[T]
}

// outcome is the answer of one service, or why there is none.
type outcome[T any] struct {
	service int
	value   T
	err     error
}

func newQuestion[T any](s *Quorum, ask func(context.Context, *replica) (T, error)) *question[T] {
	q := question[T]{services: s, ask: ask, unanswered: map[int]time.Time{}}
	q.order, q.awake = s.order()
	q.values, q.failures, q.outcomes = make([]*T, len(q.order)), make([]error, len(q.order)),
		make(chan outcome[T], len(q.order))
	return &q
}

// askNext asks one more service. It reports whether there was one.
func (q *question[T]) askNext(ctx context.Context) bool {
	if q.asked == len(q.order) {
		return false
	}
	o := outcome[T]{service: q.asked}
	q.asked++
	q.unanswered[o.service] = time.Now()
	go func() {
		if o.err = q.services.checkNetwork(ctx, q.order[o.service]); o.err == nil {
			o.value, o.err = q.ask(ctx, q.order[o.service])
		}
		q.outcomes <- o
	}()
	return true
}

// take takes an outcome in. An error ends the question.
func (q *question[T]) take(ctx context.Context, o outcome[T]) error {
	delete(q.unanswered, o.service)
	var other *otherNetwork
	if ctx.Err() != nil || errors.As(o.err, &other) || errors.Is(o.err, ledger.ErrByteLimit) {
		return cmp.Or(o.err, ctx.Err())
	}
	q.services.noteOutcome(ctx, q.order[o.service], o.err)
	if q.failures[o.service] = o.err; o.err == nil {
		q.values[o.service] = &o.value
	}
	return nil
}

// replies returns the answers so far, in the order of the services.
func (q *question[T]) replies() (list []reply[T]) {
	for i, value := range q.values {
		if value != nil {
			list = append(list, reply[T]{q.order[i], *value})
		}
	}
	return list
}

// state says what may still come. over says that the services asked so far were waited for long enough.
func (q *question[T]) state(over bool) waitState {
	switch {
	case q.asked == len(q.order) && len(q.unanswered) == 0:
		return allAnswered
	case over:
		return patienceOver
	case q.asked >= q.awake && len(q.unanswered) == 0:
		return othersRest
	}
	return moreMayCome
}

// noteSlow records that services have not answered for the time patience.
func (q *question[T]) noteSlow(ctx context.Context, patience time.Duration) {
	for i, since := range q.unanswered {
		if time.Since(since) >= patience {
			q.services.noteOutcome(ctx, q.order[i], errTooSlow)
		}
	}
}

var errTooSlow = fmt.Errorf("it has not answered for %v", answerPatience)

// order returns the services in the order in which to ask them: those that rest come last, after the others, which are
// awake. If one reply is enough, that is the order in which they were given. If several have to agree, it is a random
// one, so that no service can know which others it will be compared with.
func (s *Quorum) order() (order []*replica, awake int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	rests := func(m *replica) time.Duration { return max(0, m.restsUntil.Sub(now)) }
	order = slices.Clone(s.replicas)
	if s.agree > 1 && s.shuffle != nil {
		s.shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	slices.SortStableFunc(order, func(a, b *replica) int { return cmp.Compare(rests(a), rests(b)) })
	for awake < len(order) && rests(order[awake]) == 0 {
		awake++
	}
	return order, awake
}

// noteOutcome records whether a service answered. A service that failed rests. A warning is logged once.
func (s *Quorum) noteOutcome(ctx context.Context, m *replica, err error) {
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
func (s *Quorum) warnPassedOver(ctx context.Context, m *replica, reason string, why ...any) {
	if s.passed != nil {
		s.passed(m.url(), reason)
	}
	if !m.warned {
		m.warned = true
		s.log.WarnContext(ctx, "a Scan service is passed over", append([]any{"scan", m.url(), "reason", reason}, why...)...)
	}
}

// tooFew returns the error if fewer services answered than have to agree. It may be retried if one of their failures
// may.
func (s *Quorum) tooFew(order []*replica, failures []error) error {
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
