package scan

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// journal is what a logger wrote.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *journal) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// with returns the lines with a text.
func (l *journal) with(text string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}

// scans are services of one network.
type scans struct {
	*Quorum
	networks []*network
	urls     []string
	asked    []*service
	log      journal
}

// severalOf starts n services that have updates at certain positions.
func severalOf(t *testing.T, n, agree int, at ...ledger.Offset) *scans {
	t.Helper()
	s := &scans{}
	var readers []*Updates
	for range n {
		u, network, asked := networkOf(t, at...)
		readers, s.networks, s.urls, s.asked = append(readers, u), append(s.networks, network), append(s.urls, u.url()), append(s.asked, asked)
	}
	s.Quorum = NewQuorum(readers, QuorumConfig{Agree: agree, Logger: slog.New(slog.NewTextHandler(&s.log, nil))})
	s.patience, s.shuffle = time.Minute, nil // machines may be busy
	return s
}

// readAll reads all updates, as a loop does that tries again n times.
func (s *scans) readAll(t *testing.T, to ledger.Offset) (all []ledger.Update) {
	t.Helper()
	for after := ledger.Offset(0); after < to; {
		page, err := s.ReadUpdates(t.Context(), after, to)
		require.NoError(t, err)
		require.Equal(t, after, page.From)
		require.Greater(t, page.To, after)
		all, after = append(all, page.Updates...), page.To
	}
	return all
}

// What several services send alike is used, however they cut their pages, and whichever fails, lags behind, hangs or
// lies, as long as enough are left. Each such service is named once.
func TestServicesThatAgree(t *testing.T) {
	t.Parallel()
	at := every(networkOffset(t, 1, "2026-01-01T00:00:00Z"), 30, time.Second)
	end := at[len(at)-1]
	status := func(status int) func(*network) { return func(n *network) { n.status = status } }
	for name, c := range map[string]struct {
		agree   int
		trouble map[int]func(*network)
		says    map[int]string
	}{
		"all well":               {agree: 3},
		"pages of any size":      {agree: 2, trouble: map[int]func(*network){0: func(n *network) { n.limit = 7 }, 1: func(n *network) { n.limit = 4 }}},
		"alternatives":           {agree: 1, trouble: map[int]func(*network){0: status(503)}, says: map[int]string{0: "reason=failed"}},
		"too many requests":      {agree: 2, trouble: map[int]func(*network){1: status(429)}, says: map[int]string{1: "reason=failed"}},
		"one lags behind":        {agree: 2, trouble: map[int]func(*network){0: func(n *network) { n.behind = 12 }}, says: map[int]string{0: "reason=failed"}},
		"one hangs":              {agree: 2, trouble: map[int]func(*network){1: func(n *network) { n.hangs = true }}, says: map[int]string{1: "reason=failed"}},
		"one lies":               {agree: 2, trouble: map[int]func(*network){0: func(n *network) { n.lie = at[11] }}, says: map[int]string{0: "reason=disagrees"}},
		"one sends what is none": {agree: 2, trouble: map[int]func(*network){0: func(n *network) { n.strange = true }}, says: map[int]string{0: "reason=failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := severalOf(t, 3, c.agree, at...)
			hangs := false
			for i, change := range c.trouble {
				change(s.networks[i])
				hangs = hangs || s.networks[i].hangs
			}
			if hangs { // on a busy machine the others may be too slow for that too
				s.patience = 100 * time.Millisecond
			}
			party, err := s.Party(t.Context())
			require.NoError(t, err)
			require.Equal(t, "dso::1", party)
			got := s.readAll(t, end)
			require.Len(t, got, len(at))
			for i := range got {
				require.Equal(t, at[i], got[i].Offset)
				require.Equal(t, "", *got[i].WorkflowID)
			}
			reached, err := s.LedgerEnd(t.Context())
			require.NoError(t, err)
			require.Equal(t, end, reached)
			update, _, err := s.UpdateOfScope(t.Context(), fmt.Sprintf("u%d", at[11]))
			require.NoError(t, err)
			require.True(t, ledger.Alike(&got[11], &update))
			for i := range s.networks {
				lines := s.log.with(s.urls[i])
				if c.says[i] == "" {
					require.True(t, hangs || len(lines) == 0, "%q", lines)
					continue
				}
				require.NotEmpty(t, lines)
				require.True(t, hangs || len(lines) == 1, "%q", lines)
				require.Contains(t, lines[0], c.says[i])
				if c.says[i] == "reason=disagrees" {
					require.Contains(t, lines[0], fmt.Sprintf("update_id=u%d", at[11]))
				}
			}
		})
	}
}

// Where too few services agree nothing is used: it waits for those that are away, and says so where all have answered.
func TestServicesThatDoNotAgree(t *testing.T) {
	t.Parallel()
	at := every(networkOffset(t, 1, "2026-01-01T00:00:00Z"), 5, time.Second)
	s := severalOf(t, 2, 2, at...)
	s.networks[1].set(func() { s.networks[1].lie = at[3] })
	page, err := s.ReadUpdates(t.Context(), 0, at[2])
	require.NoError(t, err)
	require.Len(t, page.Updates, 3)
	read := func() error {
		_, err := s.ReadUpdates(t.Context(), at[2], at[4])
		return err
	}
	var problem *ledger.Problem
	err = read()
	require.ErrorAs(t, err, &problem)
	require.ErrorContains(t, err, fmt.Sprintf("the first on which they differ is update \"u%d\" at offset %[1]d", at[3]))
	require.ErrorContains(t, err, s.urls[0])
	require.ErrorContains(t, err, s.urls[1])
	_, _, err = s.UpdateOfScope(t.Context(), fmt.Sprintf("u%d", at[3]))
	require.ErrorAs(t, err, &problem)
	_, _, err = s.TailUpdates(t.Context(), at[2], 1, time.Second)
	require.ErrorAs(t, err, &problem)

	s.networks[1].set(func() { s.networks[1].lie, s.networks[1].status = 0, 503 })
	require.ErrorContains(t, err, "agree")
	err = read()
	require.Equal(t, 503, retryable(t, err).Status)
	require.ErrorContains(t, err, "1 of 2 Scan services answered, and --scan-agree wants 2")
	s.networks[1].set(func() { s.networks[1].status = 0 })
	require.NoError(t, read())

	_, _, err = s.UpdateOfScope(t.Context(), "u17")
	require.ErrorIs(t, err, ledger.ErrNotFound)
	s.networks[1].set(func() { s.networks[1].behind = 1 })
	_, _, err = s.UpdateOfScope(t.Context(), fmt.Sprintf("u%d", at[4]))
	require.ErrorContains(t, retryable(t, err), s.urls[1]+" does not have it yet")

	// Of three services two differ, and the third may agree with one of them when it answers.
	s = severalOf(t, 3, 2, at...)
	s.networks[1].set(func() { s.networks[1].lie = at[3] })
	s.networks[2].set(func() { s.networks[2].status = 503 })
	require.ErrorContains(t, retryable(t, read()), "agree")
	s.networks[2].set(func() { s.networks[2].status = 0 })
	require.NoError(t, read())
}

// Services that put an update at different places do not agree on it, whichever is the first.
func TestServicesThatPutAnUpdateElsewhere(t *testing.T) {
	t.Parallel()
	s := severalOf(t, 3, 2, every(networkOffset(t, 1, "2026-01-01T00:00:00Z"), 1, time.Second)...)
	for i, moves := range []time.Duration{2 * time.Second, time.Second, 0} {
		s.networks[i].set(func() { s.networks[i].moves = moves })
	}
	var problem *ledger.Problem
	_, _, err := s.UpdateOfScope(t.Context(), fmt.Sprintf("u%d", s.networks[0].at[0]))
	require.ErrorAs(t, err, &problem)
	require.ErrorContains(t, err, "no 2 of the Scan services agree")
	s.networks[1].set(func() { s.networks[1].moves = 0 })
	update, _, err := s.UpdateOfScope(t.Context(), fmt.Sprintf("u%d", s.networks[0].at[0]))
	require.NoError(t, err)
	require.Equal(t, s.networks[0].at[0], update.Offset)
}

// Services may leave external transaction hashes out, but not change them: what is used is what enough of them sent.
func TestExternalTransactionHashesOfServices(t *testing.T) {
	t.Parallel()
	at := every(networkOffset(t, 1, "2026-01-01T00:00:00Z"), 2, time.Second)
	for sent, want := range map[string][]byte{"aa  ": nil, "aa  aa": {0xaa}, "bb aa aa": {0xaa}, "aa aa aa": {0xaa}} {
		s := severalOf(t, 3, 2, at...)
		for i, hash := range strings.Split(sent, " ") {
			s.networks[i].set(func() { s.networks[i].hash = hash })
		}
		for range 3 { // in whichever order they are asked
			page, err := s.ReadUpdates(t.Context(), 0, at[1])
			require.NoError(t, err)
			update, _, err := s.UpdateOfScope(t.Context(), fmt.Sprintf("u%d", at[0]))
			require.NoError(t, err)
			for _, u := range append(page.Updates, update) {
				if sent != "aa  aa" || u.ExternalTransactionHash != nil { // two were asked, of which one left it out
					require.Equal(t, want, u.ExternalTransactionHash, sent)
				}
			}
		}
	}
	s := severalOf(t, 1, 1, at...)
	s.networks[0].set(func() { s.networks[0].hash = "aa" })
	page, err := s.ReadUpdates(t.Context(), 0, at[1])
	require.NoError(t, err)
	require.Equal(t, []byte{0xaa}, page.Updates[0].ExternalTransactionHash)
}

// Services of two networks are refused, and nothing of them is used, also if the other network's comes later.
func TestServicesOfTwoNetworks(t *testing.T) {
	t.Parallel()
	at := every(networkOffset(t, 1, "2026-01-01T00:00:00Z"), 5, time.Second)
	s := severalOf(t, 2, 1, at...)
	s.networks[1].set(func() { s.networks[1].party = "dso::2" })
	refused := func(err error) {
		t.Helper()
		var problem *ledger.Problem
		require.ErrorAs(t, err, &problem)
		require.Contains(t, problem.What, "the Scan services are of two networks")
		require.Contains(t, problem.What, s.urls[0])
		require.Contains(t, problem.What, s.urls[1])
	}
	_, err := s.Party(t.Context())
	refused(err)
	s = severalOf(t, 2, 1, at...)
	_, err = s.ReadUpdates(t.Context(), 0, at[1])
	require.NoError(t, err)
	s.networks[0].set(func() { s.networks[0].status = 503 })
	s.networks[1].set(func() { s.networks[1].party = "dso::2" })
	_, err = s.ReadUpdates(t.Context(), at[1], at[2])
	refused(err)
}

// At the end of the history an update is used when enough services have it, each is asked at most once a second while
// nothing comes, and one that stays behind delays nobody.
func TestTheTailOfSeveralServices(t *testing.T) {
	t.Parallel()
	at := every(networkOffset(t, 1, "2026-01-01T00:00:00Z"), 5, time.Second)
	s := severalOf(t, 3, 2, at...)
	for i := range s.networks {
		s.networks[i].set(func() { s.networks[i].behind = 2 })
	}
	page, _, err := s.TailUpdates(t.Context(), at[0], 1, time.Second)
	require.NoError(t, err)
	require.Equal(t, at[2], page.To)
	s.networks[0].set(func() { s.networks[0].behind = 0 })
	page, _, err = s.TailUpdates(t.Context(), at[2], 1, time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, at[2], page.To, "one service has an update, and two are needed")
	s.networks[2].set(func() { s.networks[2].behind = 1 })
	page, full, err := s.TailUpdates(t.Context(), at[2], 1, 5*time.Second)
	require.NoError(t, err)
	require.Equal(t, at[3], page.To)
	require.True(t, full, "the first service has more")
}

// A service that rests, or is silent, keeps nobody from polling the others, but for news that it is needed for.
func TestServicesThatAQuietPollPassesOver(t *testing.T) {
	t.Parallel()
	at := every(networkOffset(t, 1, "2026-01-01T00:00:00Z"), 5, time.Second)
	poll := func(s *scans, after ledger.Offset) ledger.Offset {
		t.Helper()
		s.polls.answered(time.Time{}, false, true) // it is due at once
		page, _, err := s.TailUpdates(t.Context(), after, 1, time.Millisecond)
		require.NoError(t, err)
		return page.To
	}
	s := severalOf(t, 3, 1, at...)
	s.networks[1].set(func() { s.networks[1].status = 429 })
	for range 3 {
		require.Equal(t, at[4], poll(s, at[4]))
	}
	require.Len(t, s.asked[1].pages(), 1)
	require.Len(t, s.asked[2].pages(), 3)
	s.networks[2].set(func() { s.networks[2].hangs = true })
	s.patience = 100 * time.Millisecond
	require.Equal(t, at[4], poll(s, at[4]))
	for _, line := range s.log.with(s.urls[2]) {
		require.Contains(t, line, errTooSlow.Error(), "it was not waited for until its request failed")
	}

	s = severalOf(t, 3, 2, at...)
	s.networks[0].set(func() { s.networks[0].behind = 1 })
	s.networks[2].set(func() { s.networks[2].status = 429 })
	require.Equal(t, at[3], poll(s, at[3]))
	s.networks[2].set(func() { s.networks[2].status = 0 })
	require.Equal(t, at[4], poll(s, at[3]), "one that rests has them too")
}

// Who asks and does not wait for the answer is told so, also where one comes.
func TestAQuestionThatIsGivenUp(t *testing.T) {
	t.Parallel()
	s := severalOf(t, 1, 1, networkOffset(t, 1, "2026-01-01T00:00:00Z"))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := askServices(ctx, s.Quorum, 1, func(context.Context, *replica) (string, error) {
		cancel()
		return "yes", nil
	}, firstReply[string](s.Quorum))
	require.ErrorIs(t, err, context.Canceled)
}

// A service that was asked a moment ago is not too slow when the one that was waited for answers.
func TestWhichServicesAreTooSlow(t *testing.T) {
	t.Parallel()
	s := severalOf(t, 2, 1, networkOffset(t, 1, "2026-01-01T00:00:00Z"))
	_, err := s.Party(t.Context()) // nothing is left to ask them in the test's own time
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan struct{})
		_, err := hedge(t.Context(), s.Quorum, 2*time.Second, 1, func(ctx context.Context, m *replica) (string, error) {
			if m.url() == s.urls[0] {
				<-asked
				return "yes", nil
			}
			close(asked)
			<-ctx.Done()
			return "", ctx.Err()
		}, firstReply[string](s.Quorum))
		require.NoError(t, err)
	})
	require.Empty(t, s.log.with("passed over"))
}

// Changes grows with the first answer of a service, and with each new connection behind it; a service that is not used
// counts for nothing.
func TestChangesOfSeveralServices(t *testing.T) {
	t.Parallel()
	at := every(networkOffset(t, 1, "2026-01-01T00:00:00Z"), 5, time.Second)
	s := severalOf(t, 2, 1, at...)
	read := func() int64 {
		_, err := s.ReadUpdates(t.Context(), 0, at[2])
		require.NoError(t, err)
		return s.Changes()
	}
	first := read()
	require.Equal(t, first, read())
	s.networks[0].set(func() { s.networks[0].status = 503 })
	other := read()
	require.Greater(t, other, first)
	require.Equal(t, other, read())
	s.asked[1].CloseClientConnections()
	_, _ = s.ReadUpdates(t.Context(), 0, at[2]) // fails, or not, as the client notices
	require.Greater(t, read(), other)
}

// Alternatives are asked in the order in which they were given, and the next one at once where one fails; where several
// have to agree each is asked now and then.
func TestWhichServicesAreAsked(t *testing.T) {
	t.Parallel()
	at := every(networkOffset(t, 1, "2026-01-01T00:00:00Z"), 5, time.Second)
	counts := func(agree int) (pages []int) {
		s := severalOf(t, 3, agree, at...)
		s.shuffle = rand.New(rand.NewPCG(1, 2)).Shuffle
		for range 20 {
			_, err := s.ReadUpdates(t.Context(), 0, at[4])
			require.NoError(t, err)
		}
		for _, asked := range s.asked {
			pages = append(pages, len(asked.pages()))
		}
		return pages
	}
	require.Equal(t, []int{20, 0, 0}, counts(1))
	for _, n := range counts(2) {
		require.Greater(t, n, 5)
	}
	s := severalOf(t, 2, 1, at...)
	s.networks[0].set(func() { s.networks[0].status = 503 })
	for range 20 {
		_, err := s.ReadUpdates(t.Context(), 0, at[4])
		require.NoError(t, err)
	}
	require.Len(t, s.asked[0].pages(), 1, "it rests after its failure")
	require.Len(t, s.asked[1].pages(), 20)
}

// A snapshot is read from one service, to which its tokens lead again, and what created its contracts from as many as
// have to agree.
func TestASnapshotOfSeveralServices(t *testing.T) {
	t.Parallel()
	var readers []*Updates
	var services [2]*snapshotService
	var asked [2]*service
	for i := range services {
		services[i] = &snapshotService{
			snapshot: snapshotOf(`,"next_page_token":41`, listed("old", olderAt, "dso", ""), listed("a", createdAt, "dso", `,"created_in_update_id":"u1"`)),
			updates:  map[string]string{"u1": creating("u1", 2, createdAt, "a"), "u0": creating("u0", 1, "2025-06-01T02:00:01.000000Z", "old")},
			older:    []string{creating("u0", 1, "2025-06-01T02:00:01.000000Z", "old")},
		}
		var u *Updates
		u, asked[i] = readerOf(t, services[i])
		readers = append(readers, u)
	}
	s := NewQuorum(readers, QuorumConfig{Agree: 2, Logger: slog.New(slog.DiscardHandler)})
	s.shuffle = nil
	at := networkOffset(t, 2, takenAt)
	page, err := s.ReadSnapshot(t.Context(), at, ledger.Token{})
	require.NoError(t, err)
	require.Len(t, page.Entries, 2)
	require.Equal(t, "41@"+s.replicas[0].tag(), page.Next.Value)
	for _, of := range asked { // what one names the others have to show
		all := strings.Join(of.requests(), "\n")
		require.Contains(t, all, pathUpdates+"/u0")
		require.Contains(t, all, pathUpdates+"/u1")
	}
	services[0].snapshot = snapshotOf("", listed("a", createdAt, "dso", `,"created_in_update_id":"u1"`))
	services[1].updates["u1"] = strings.Replace(creating("u1", 2, createdAt, "a"), `"dso"`, `"dso","bob"`, 1)
	_, err = s.ReadSnapshot(t.Context(), at, page.Next)
	require.ErrorContains(t, err, `the first on which they differ is update "u1"`)
	services[1].updates["u1"] = creating("u1", 2, createdAt, "a")
	next := page.Next
	page, err = s.ReadSnapshot(t.Context(), at, next)
	require.NoError(t, err)
	require.True(t, page.Last)
	services[0].snapshot = snapshotOf("", listed("old", olderAt, "dso", ""))
	for _, of := range services {
		of.updates["u0"] = creating("u0", 1, "2025-06-01T02:00:01.000000Z", "another")
	}
	_, err = s.ReadSnapshot(t.Context(), at, next)
	require.ErrorContains(t, retryable(t, err), `update "u0" does not create contract "old"`, "which the page in which it was found does")
	_, err = s.ReadSnapshot(t.Context(), at, ledger.Token{Kind: ledger.TokenPage, Value: "41@abc"})
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.Contains(t, problem.Do, "--restart")
}
