package torture

import (
	"math/rand/v2"
	"time"
)

// faultKind is a kind of fault, in words for the table.
type faultKind string

// The kinds of faults.
const (
	killIndexer  faultKind = "indexer killed (SIGKILL)"
	killBackfill faultKind = "backfill killed (SIGKILL)"
	killReanchor faultKind = "reanchor killed (SIGKILL)"
	killErasure  faultKind = "redact or prune killed (SIGKILL)"
	pauseProgram faultKind = "program paused (SIGSTOP, SIGCONT)"

	stopPostgres    faultKind = "PostgreSQL shut down at once and restarted"
	crashPostgres   faultKind = "PostgreSQL's first process killed (SIGKILL), restarted"
	killSession     faultKind = "a session's process in PostgreSQL killed (SIGKILL)"
	endSession      faultKind = "session terminated in the middle of a COPY"
	cutCopy         faultKind = "connection cut in the middle of a COPY"
	cutBeforeCommit faultKind = "connection cut before a COMMIT"
	cutAfterCommit  faultKind = "connection cut after a COMMIT, its answer lost"
	dropConnections faultKind = "all connections to PostgreSQL cut"
	stallPostgres   faultKind = "connections to PostgreSQL stalled"
	fullDisk        faultKind = "PostgreSQL's disk full (a file system that is)"
	injectFullDisk  faultKind = "PostgreSQL's disk full (error 53100 in a COPY)"

	reset          faultKind = "HTTP connection reset"
	truncate       faultKind = "HTTP answer truncated"
	stallBody      faultKind = "HTTP answer stalled in its body"
	stallAnswer    faultKind = "HTTP answer late"
	tooMany        faultKind = "HTTP 429 with Retry-After"
	unavailable    faultKind = "HTTP 503"
	internalError  faultKind = "HTTP 500"
	slow           faultKind = "latency of all answers raised for a while"
	expireToken    faultKind = "token expired until another is in the file"
	restartServer  faultKind = "participant or Scan restarted"
	upgradeRelease faultKind = "participant restarted with the next release"
	restoreServer  faultKind = "participant restored from a backup, offsets dealt anew"
)

// kinds are all, in the order of the table.
var kinds = []faultKind{
	killIndexer, killBackfill, killReanchor, killErasure, pauseProgram,
	stopPostgres, crashPostgres, killSession, endSession, cutCopy, cutBeforeCommit, cutAfterCommit, dropConnections,
	stallPostgres, fullDisk, injectFullDisk,
	reset, truncate, stallBody, stallAnswer, tooMany, unavailable, internalError, slow, expireToken, restartServer,
	upgradeRelease, restoreServer,
}

// fault is one of a schedule.
type fault struct {
	kind faultKind
	wait time.Duration // after the previous one
	long time.Duration // its duration
	size int           // the bytes of a body before it
}

// choice is a kind that a schedule may have next.
type choice struct {
	kind              faultKind
	weight            int
	shortest, longest time.Duration // of its duration
}

// schedule is an endless list of faults for one target. The schedules of several targets run concurrently.
type schedule struct {
	random            *rand.Rand
	choices           []choice
	shortest, longest time.Duration // between two of them
}

const ms = time.Millisecond

func programFaults(random *rand.Rand, kill faultKind) *schedule {
	return &schedule{random: random, shortest: 300 * ms, longest: 2200 * ms, choices: []choice{
		{kill, 5, 0, 0},
		{pauseProgram, 3, 50 * ms, 1500 * ms},
		{pauseProgram, 1, 5500 * ms, 7000 * ms}, // longer than its lock is kept
	}}
}

// erasureFaults returns the faults of commands that take less than a second.
func erasureFaults(random *rand.Rand) *schedule {
	return &schedule{random: random, longest: 600 * ms, choices: []choice{
		{killErasure, 8, 0, 0},
		{pauseProgram, 2, 50 * ms, 1500 * ms},
		{pauseProgram, 1, 5500 * ms, 7000 * ms},
	}}
}

func postgresFaults(random *rand.Rand, smallDisk bool) *schedule {
	s := &schedule{random: random, shortest: 50 * ms, longest: 500 * ms, choices: []choice{
		{stopPostgres, 2, 0, 400 * ms},
		{crashPostgres, 2, 0, 400 * ms},
		{killSession, 2, 0, 0},
		{endSession, 5, 0, 0},
		{cutCopy, 3, 0, 0},
		{cutBeforeCommit, 6, 0, 0},
		{cutAfterCommit, 6, 0, 0},
		{dropConnections, 2, 0, 0},
		{stallPostgres, 3, 50 * ms, 1000 * ms},
		{stallPostgres, 1, 3500 * ms, 6500 * ms}, // longer than the lock's pings wait
		{injectFullDisk, 3, 0, 0},
	}}
	if smallDisk {
		s.choices = append(s.choices, choice{fullDisk, 3, 200 * ms, 1500 * ms})
	}
	return s
}

func participantFaults(random *rand.Rand) *schedule {
	s := scanFaults(random)
	s.choices = append(s.choices, choice{expireToken, 4, 50 * ms, 800 * ms})
	return s
}

func scanFaults(random *rand.Rand) *schedule {
	return &schedule{random: random, shortest: 50 * ms, longest: 600 * ms, choices: []choice{
		{reset, 4, 0, 0},
		{truncate, 5, 0, 0},
		{stallBody, 2, 50 * ms, 1500 * ms},
		{stallAnswer, 2, 50 * ms, 1500 * ms},
		{tooMany, 2, 0, 0},
		{unavailable, 3, 0, 0},
		{internalError, 3, 0, 0},
		{slow, 1, 200 * ms, 1000 * ms},
		{restartServer, 2, 0, 600 * ms},
	}}
}

// next returns the next fault.
func (s *schedule) next() fault {
	total := 0
	for _, c := range s.choices {
		total += c.weight
	}
	n := s.random.IntN(total)
	f := fault{wait: s.between(s.shortest, s.longest), size: 1 << s.random.IntN(14)}
	for _, c := range s.choices {
		if n -= c.weight; n < 0 {
			f.kind, f.long = c.kind, s.between(c.shortest, c.longest)
			break
		}
	}
	return f
}

func (s *schedule) between(shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(s.random.Int64N(int64(longest-shortest)+1))
}
