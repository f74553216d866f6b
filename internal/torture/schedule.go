package torture

import (
	"math/rand/v2"
	"time"
)

// Kind is a kind of fault, in words for the table.
type Kind string

// The kinds of faults.
const (
	KillIndexer  Kind = "indexer killed (SIGKILL)"
	KillBackfill Kind = "backfill killed (SIGKILL)"
	KillReanchor Kind = "reanchor killed (SIGKILL)"
	KillErasure  Kind = "redact or prune killed (SIGKILL)"
	PauseProgram Kind = "program paused (SIGSTOP, SIGCONT)"

	StopPostgres    Kind = "PostgreSQL shut down at once and restarted"
	CrashPostgres   Kind = "PostgreSQL's first process killed (SIGKILL), restarted"
	KillSession     Kind = "a session's process in PostgreSQL killed (SIGKILL)"
	EndSession      Kind = "session terminated in the middle of a COPY"
	CutCopy         Kind = "connection cut in the middle of a COPY"
	CutBeforeCommit Kind = "connection cut before a COMMIT"
	CutAfterCommit  Kind = "connection cut after a COMMIT, its answer lost"
	DropConnections Kind = "all connections to PostgreSQL cut"
	StallPostgres   Kind = "connections to PostgreSQL stalled"
	FullDisk        Kind = "PostgreSQL's disk full (a file system that is)"
	InjectFullDisk  Kind = "PostgreSQL's disk full (error 53100 in a COPY)"

	Reset          Kind = "HTTP connection reset"
	Truncate       Kind = "HTTP answer truncated"
	StallBody      Kind = "HTTP answer stalled in its body"
	StallAnswer    Kind = "HTTP answer late"
	TooMany        Kind = "HTTP 429 with Retry-After"
	Unavailable    Kind = "HTTP 503"
	InternalError  Kind = "HTTP 500"
	Slow           Kind = "latency of all answers raised for a while"
	ExpireToken    Kind = "token expired until another is in the file"
	RestartServer  Kind = "participant or Scan restarted"
	UpgradeRelease Kind = "participant restarted with the next release"
	RestoreServer  Kind = "participant restored from a backup, offsets dealt anew"
)

// kinds are all, in the order of the table.
var kinds = []Kind{
	KillIndexer, KillBackfill, KillReanchor, KillErasure, PauseProgram,
	StopPostgres, CrashPostgres, KillSession, EndSession, CutCopy, CutBeforeCommit, CutAfterCommit, DropConnections, StallPostgres, FullDisk, InjectFullDisk,
	Reset, Truncate, StallBody, StallAnswer, TooMany, Unavailable, InternalError, Slow, ExpireToken, RestartServer, UpgradeRelease, RestoreServer,
}

// fault is one of a schedule.
type fault struct {
	kind Kind
	wait time.Duration // after the previous one
	long time.Duration // its duration
	size int           // the bytes of a body before it
}

// choice is a kind that a schedule may have next.
type choice struct {
	kind              Kind
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

func programFaults(random *rand.Rand, kill Kind) *schedule {
	return &schedule{random: random, shortest: 300 * ms, longest: 2200 * ms, choices: []choice{
		{kill, 5, 0, 0},
		{PauseProgram, 3, 50 * ms, 1500 * ms},
		{PauseProgram, 1, 5500 * ms, 7000 * ms}, // longer than its lock is kept
	}}
}

// erasureFaults returns the faults of commands that take less than a second.
func erasureFaults(random *rand.Rand) *schedule {
	return &schedule{random: random, longest: 600 * ms, choices: []choice{
		{KillErasure, 8, 0, 0},
		{PauseProgram, 2, 50 * ms, 1500 * ms},
		{PauseProgram, 1, 5500 * ms, 7000 * ms},
	}}
}

func postgresFaults(random *rand.Rand, smallDisk bool) *schedule {
	s := &schedule{random: random, shortest: 50 * ms, longest: 500 * ms, choices: []choice{
		{StopPostgres, 2, 0, 400 * ms},
		{CrashPostgres, 2, 0, 400 * ms},
		{KillSession, 2, 0, 0},
		{EndSession, 5, 0, 0},
		{CutCopy, 3, 0, 0},
		{CutBeforeCommit, 6, 0, 0},
		{CutAfterCommit, 6, 0, 0},
		{DropConnections, 2, 0, 0},
		{StallPostgres, 3, 50 * ms, 1000 * ms},
		{StallPostgres, 1, 3500 * ms, 6500 * ms}, // longer than the lock's pings wait
		{InjectFullDisk, 3, 0, 0},
	}}
	if smallDisk {
		s.choices = append(s.choices, choice{FullDisk, 3, 200 * ms, 1500 * ms})
	}
	return s
}

func participantFaults(random *rand.Rand) *schedule {
	s := scanFaults(random)
	s.choices = append(s.choices, choice{ExpireToken, 4, 50 * ms, 800 * ms})
	return s
}

func scanFaults(random *rand.Rand) *schedule {
	return &schedule{random: random, shortest: 50 * ms, longest: 600 * ms, choices: []choice{
		{Reset, 4, 0, 0},
		{Truncate, 5, 0, 0},
		{StallBody, 2, 50 * ms, 1500 * ms},
		{StallAnswer, 2, 50 * ms, 1500 * ms},
		{TooMany, 2, 0, 0},
		{Unavailable, 3, 0, 0},
		{InternalError, 3, 0, 0},
		{Slow, 1, 200 * ms, 1000 * ms},
		{RestartServer, 2, 0, 600 * ms},
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
