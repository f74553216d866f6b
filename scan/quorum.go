package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// How long a Quorum, which reads from several services, waits for each of them.
const (
	// After this time without an answer the next service is asked too.
	answerPatience = 5 * time.Second
	// How long a service rests after its first failure: it is asked after the others. Each further failure doubles the
	// time.
	firstRest, longestRest = 10 * time.Second, 5 * time.Minute
	// How long a service may be behind the others at the end of the history before a warning names it.
	behindFor = time.Minute
)

// Quorum reads the updates of a network from several Scan services. An answer is used if a configured number of
// services (QuorumConfig.Agree) give the same. Only as many services are asked as are needed: in the order in which
// they were given if one is enough, else in a random order for each question. A service that fails, lags behind or does
// not answer in time is passed over as long as enough others agree.
//
// Pages of updates may end at different offsets: they are compared, and used, up to the offset that enough of them
// reach. [ledger.Alike] decides which updates count as equal. The end of the history is an offset that enough services
// have reached.
//
// A snapshot is read from one service, because its tokens mean nothing to another. The updates that created its
// contracts are read from as many services as have to agree.
type Quorum struct {
	replicas []*replica
	agree    int // how many services have to give the same answer
	log      *slog.Logger
	passed   func(service, reason string)
	patience time.Duration                    // answerPatience, or less in tests
	shuffle  func(n int, swap func(i, j int)) // rand.Shuffle; nil in tests
	polls    polls

	mu      sync.Mutex
	party   string // that operates the network; empty: not known yet
	partyOf string // the service that returned it
	changes int64
}

// replica is a service, and what was seen of it. Quorum.mu guards the fields.
type replica struct {
	*Updates
	changes     int64     // of the service, when an answer of it was last used; -1: none was yet
	restsUntil  time.Time // it is asked after the others until then
	failures    int       // in a row
	disagreed   bool      // it rests because its answer differed, and another answer does not end the rest
	warned      bool      // a warning that it is passed over, or behind, was logged
	behindSince time.Time // since when it is behind others at the end of the history; zero: it is not
}

// QuorumConfig is the configuration of a Quorum.
type QuorumConfig struct {
	// Agree is how many services have to give the same answer, from 1 to the number of services.
	Agree  int
	Logger *slog.Logger
	// Passed, if set, is called when a service is passed over: "failed" or "disagrees". It must be safe for concurrent
	// use.
	Passed func(service, reason string)
}

// NewQuorum returns a reader of services; it sends nothing. Closing it closes their clients. For a single service use
// [Updates].
func NewQuorum(services []*Updates, cfg QuorumConfig) *Quorum {
	s := &Quorum{agree: cfg.Agree, log: cfg.Logger, passed: cfg.Passed, patience: answerPatience, shuffle: rand.Shuffle}
	for _, u := range services {
		u.lookUp = s.UpdateOfScope
		s.replicas = append(s.replicas, &replica{Updates: u, changes: -1})
	}
	return s
}

// Close closes the clients of the services.
func (s *Quorum) Close() {
	for _, m := range s.replicas {
		m.Close()
	}
}

// Version returns the release of the first service that answers.
func (s *Quorum) Version(ctx context.Context) (string, error) {
	return askServices(ctx, s, 1, func(ctx context.Context, m *replica) (string, error) { return m.Version(ctx) },
		firstReply[string](s))
}

// SetMinimum is [Updates.Expect] for each service.
func (s *Quorum) SetMinimum(offset ledger.Offset) {
	for _, m := range s.replicas {
		m.SetMinimum(offset)
	}
}

// PrunedOffset is [Updates.PrunedOffset] of several services.
func (s *Quorum) PrunedOffset(context.Context) (ledger.Offset, error) {
	return 0, ledger.ErrNotOffered
}

// Changes is [Updates.Changes] of several services. It grows when an answer is used of a service that was not used
// before, or whose own count of changes has grown since it was last used.
func (s *Quorum) Changes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// recordUsed records that answers of services are about to be returned.
func (s *Quorum) recordUsed(of ...*replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range of {
		if now := m.Changes(); now != m.changes {
			m.changes = now
			s.changes++
		}
	}
}

// Party returns the party that operates the network. All services are asked, so that one of another network is found at
// the start.
//
// The errors are those of [Updates.Party], and a *ledger.Problem where two services are of different networks.
func (s *Quorum) Party(ctx context.Context) (string, error) {
	_, awake := s.order()
	ask := func(ctx context.Context, m *replica) (string, error) { return m.Party(ctx) }
	return askServices(ctx, s, max(awake, s.agree), ask, func(got []reply[string], state waitState) (string, bool, error) {
		if len(got) >= s.agree && state != moreMayCome {
			return got[0].value, true, nil
		}
		return "", false, nil
	})
}

// checkNetwork checks that a service is of the same network as the others.
func (s *Quorum) checkNetwork(ctx context.Context, m *replica) error {
	party, err := m.Party(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.party {
	case "":
		s.party, s.partyOf = party, m.url()
	case party:
	default:
		return &otherNetwork{ledger.Problem{
			What: fmt.Sprintf("the Scan services are of two networks: %s is of the one that %s operates, and %s of the one "+
				"that %s operates", s.partyOf, s.party, m.url(), party),
			Do: "give --scan-url the services of one network only; each network needs a database of its own",
		}}
	}
	return nil
}

// otherNetwork is the error for a service of another network. It ends the question, however many other services agree.
type otherNetwork struct{ problem ledger.Problem }

func (o *otherNetwork) Error() string { return o.problem.Error() }

func (o *otherNetwork) Unwrap() error { return &o.problem }

// LedgerEnd returns an offset that as many services have reached as have to agree.
func (s *Quorum) LedgerEnd(ctx context.Context) (ledger.Offset, error) {
	return askServices(ctx, s, s.agree,
		func(ctx context.Context, m *replica) (ledger.Offset, error) {
			return m.LedgerEnd(ctx)
		}, s.lowest)
}

// SnapshotOffset is [Updates.SnapshotOffset] of several services. Services take their snapshots at the same times.
func (s *Quorum) SnapshotOffset(ctx context.Context, upTo ledger.Offset) (ledger.Offset, error) {
	return askServices(ctx, s, s.agree,
		func(ctx context.Context, m *replica) (ledger.Offset, error) {
			return m.SnapshotOffset(ctx, upTo)
		}, s.lowest)
}

// lowest is a choose function of askServices that takes the lowest offset of enough services.
func (s *Quorum) lowest(got []reply[ledger.Offset], _ waitState) (ledger.Offset, bool, error) {
	if len(got) < s.agree {
		return 0, false, nil
	}
	s.recordUsed(senders(got)...)
	return slices.MinFunc(got, func(a, b reply[ledger.Offset]) int { return cmp.Compare(a.value, b.value) }).value, true,
		nil
}

// Stretches is [Updates.Stretches] of several services.
func (s *Quorum) Stretches(ctx context.Context, r ledger.Range) ([]ledger.Range, error) {
	return askServices(ctx, s, 1,
		func(ctx context.Context, m *replica) ([]ledger.Range, error) {
			return m.Stretches(ctx, r)
		}, firstReply[[]ledger.Range](s))
}

// ReadUpdates is [Updates.ReadUpdates] of several services. The error is a *ledger.Problem where all services answer
// and too few agree.
func (s *Quorum) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	return s.readUpdates(ctx, after,
		func(ctx context.Context, m *replica) (ledger.Page, error) {
			return m.ReadUpdates(ctx, after, to)
		})
}

// ReadUpdatesWithin is [Updates.ReadUpdatesWithin] of several services. Each of the answers has the limit.
func (s *Quorum) ReadUpdatesWithin(ctx context.Context, after, to ledger.Offset, maxBytes int64) (ledger.Page, error) {
	return s.readUpdates(ctx, after, func(ctx context.Context, m *replica) (ledger.Page, error) {
		return m.ReadUpdatesWithin(ctx, after, to, maxBytes)
	})
}

func (s *Quorum) readUpdates(ctx context.Context, after ledger.Offset, ask func(context.Context, *replica) (ledger.Page,
	error)) (ledger.Page, error) {
	return askServices(ctx, s, s.agree, ask, func(got []reply[ledger.Page], state waitState) (ledger.Page, bool, error) {
		page, ok := s.agreed(ctx, got, after)
		if !ok && state == allAnswered && len(got) >= s.agree {
			return page, false, s.disagreement(got, after)
		}
		return page, ok, nil
	})
}

// TailUpdates is [Updates.TailUpdates] of several services. Each poll asks as many services as have to agree, and the
// others too if too few of these have new updates. Those that rest are not asked where as many as have to agree have
// none.
func (s *Quorum) TailUpdates(ctx context.Context, after ledger.Offset, _ int,
	idle time.Duration) (page ledger.Page, full bool, err error) {
	type news struct {
		page ledger.Page
		full bool
	}
	ask := func(ctx context.Context, m *replica) (news, error) {
		page, full, err := m.news(ctx, after)
		return news{page, full}, err
	}
	return s.polls.until(ctx, after, idle, func(ctx context.Context, after ledger.Offset) (ledger.Page, bool, error) {
		got, err := askServices(ctx, s, s.agree, ask, func(got []reply[news], state waitState) (news, bool, error) {
			pages := make([]reply[ledger.Page], len(got))
			for i := range got {
				pages[i] = reply[ledger.Page]{got[i].from, got[i].value.page}
			}
			page, ok := s.agreed(ctx, pages, after)
			switch {
			case ok:
				s.warnBehind(ctx, pages, page.To)
				cut := func(a reply[news]) bool { return a.value.full || a.value.page.To > page.To }
				return news{page, slices.ContainsFunc(got, cut)}, true, nil
			case state == moreMayCome || len(got) < s.agree:
				return news{}, false, nil
			}
			came := slices.DeleteFunc(pages, func(a reply[ledger.Page]) bool { return a.value.To == after })
			switch {
			case len(came) >= s.agree && state == allAnswered:
				return news{}, false, s.disagreement(came, after)
			case len(came) >= s.agree, state == othersRest && len(got)-len(came) < s.agree: // another one may have them too
				return news{}, false, nil
			}
			return news{page: ledger.Page{From: after, To: after}}, true, nil // too few have come further
		})
		return got.page, got.full, err
	})
}

// warnBehind warns of services that have been behind the others at the end of the history for behindFor.
func (s *Quorum) warnBehind(ctx context.Context, got []reply[ledger.Page], end ledger.Offset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range got {
		switch m := a.from; {
		case a.value.To >= end:
			m.behindSince = time.Time{}
		case m.behindSince.IsZero():
			m.behindSince = time.Now()
		case time.Since(m.behindSince) > behindFor && !m.warned:
			m.warned = true
			s.log.WarnContext(ctx, "a Scan service is behind the others", "scan", m.url(),
				"since", m.behindSince.UTC().Format(time.RFC3339))
		}
	}
}

// found is the answer to a look-up of an update by its id.
type found struct {
	update *ledger.Update // nil: the service does not know it
	raw    ledger.JSON
	err    error
}

// UpdateOfScope is [Updates.UpdateOfScope] of several services. An update counts as not known only after all services
// were asked.
func (s *Quorum) UpdateOfScope(ctx context.Context, updateID string) (ledger.Update, ledger.JSON, error) {
	ask := func(ctx context.Context, m *replica) (found, error) {
		update, raw, err := m.UpdateOfScope(ctx, updateID)
		if errors.Is(err, ledger.ErrNotFound) {
			return found{err: err}, nil
		}
		return found{&update, raw, nil}, err
	}
	got, err := askServices(ctx, s, s.agree, ask, func(got []reply[found], state waitState) (found, bool, error) {
		var pages []reply[ledger.Page]
		var unknown []reply[found]
		for _, a := range got {
			if a.value.update == nil {
				unknown = append(unknown, a)
				continue
			}
			pages = append(pages, reply[ledger.Page]{a.from, ledger.Page{Updates: []ledger.Update{*a.value.update},
				To: a.value.update.Offset}})
		}
		update, of := s.agreedUpdate(ctx, pages)
		switch {
		case update != nil:
			i := slices.IndexFunc(got, func(a reply[found]) bool { return a.from == of })
			return found{update, got[i].value.raw, nil}, true, nil
		case state == allAnswered && len(pages) >= s.agree:
			return found{}, false, s.disagreement(pages, -1)
		case state == allAnswered && len(unknown) >= s.agree:
			s.recordUsed(senders(unknown)...)
			return unknown[0].value, true, nil
		case state == allAnswered && len(got) >= s.agree:
			return found{}, false, &Error{Failure: jsonhttp.Unusable("update", fmt.Errorf("of the Scan services %s has update "+
				"%s, and %s does not have it yet: too few for --scan-agree %d", urls(pages), ledger.Quoted(updateID), urls(unknown),
				s.agree))}
		}
		return found{}, false, nil
	})
	switch {
	case err != nil:
		return ledger.Update{}, nil, err
	case got.update == nil:
		return ledger.Update{}, nil, got.err
	}
	return *got.update, got.raw, nil
}

// ReadSnapshot is [Updates.ReadSnapshot] of several services. The first page is that of the first service that has it;
// later ones come from the same.
func (s *Quorum) ReadSnapshot(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
	value, of, _ := strings.Cut(token.Value, "@")
	read := func(ctx context.Context, m *replica) (ledger.SnapshotPage, error) {
		page, err := m.ReadSnapshot(ctx, at, ledger.Token{Kind: token.Kind, Value: value})
		if err == nil && !page.Last {
			page.Next.Value += "@" + m.tag()
		}
		return page, err
	}
	if token.Value == "" {
		// What created the contracts of a page is read with it, which takes longer than an answer may.
		return hedge(ctx, s, math.MaxInt64, 1, read, firstReply[ledger.SnapshotPage](s))
	}
	i := slices.IndexFunc(s.replicas, func(m *replica) bool { return m.tag() == of })
	if i < 0 {
		return ledger.SnapshotPage{}, &ledger.Problem{
			What: fmt.Sprintf("the snapshot at offset %d was begun with a Scan service that --scan-url does not name now", at),
			Do:   "give --scan-url that service too, or begin the snapshot again with --restart",
		}
	}
	if err := s.checkNetwork(ctx, s.replicas[i]); err != nil {
		return ledger.SnapshotPage{}, err
	}
	page, err := read(ctx, s.replicas[i])
	if err == nil {
		s.recordUsed(s.replicas[i])
	}
	return page, err
}

// tag identifies the service in a snapshot token, which is stored.
func (m *replica) tag() string {
	h := fnv.New32a()
	h.Write([]byte(m.url()))
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}
