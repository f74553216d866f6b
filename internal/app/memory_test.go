package app

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/resident"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// memoryCeiling is how much memory the indexer takes at most, whatever its servers send: what docs/reliability.md
// promises.
const memoryCeiling = 3 << 29 // 1.5 GiB

// memoryBase is how much of it any answer may take besides what goes with its size.
const memoryBase = 128 << 20

// The most that the clients of the participant and of a Scan service read of an answer, but for a little: one byte or
// value more and it is refused, which costs less.
const (
	mostBytes      = 128<<20 - 1<<16
	mostValues     = 2<<20 - 1<<12
	mostScanBytes  = 64<<20 - 1<<16
	mostScanValues = 1<<20 - 1<<12
)

// While its servers misbehave, by answers that are as large as is read, the indexer's memory stays
// under the documented ceiling. The kinds that take most are tried at their full size.
func TestMemoryStaysUnderTheCeiling(t *testing.T) {
	t.Parallel()
	brief.Skip(t)
	if resident.Peak(os.Getpid()) == 0 {
		t.Skip("this system does not tell the peak of a process's memory in /proc/<pid>/status (VmHWM), as Linux does")
	}
	program := build(t, "indexer")
	l := sandbox.NewLedger(sandbox.Options{Seed: 41})
	honest := sandbox.NewServer(l, sandbox.ServerOptions{})
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			server := &misbehaving{honest: honest, scenario: s, done: make(chan struct{})}
			listening := httptest.NewServer(server)
			defer listening.Close()
			env := []string{"INDEXER_LEDGER_URL=" + listening.URL, "INDEXER_DATABASE_URL=" + throwaway.Migrated(t, migrate),
				"INDEXER_LISTEN=", "INDEXER_LOG_LEVEL=debug", "INDEXER_PACKAGES_INTERVAL=0", deltas}
			if s.scan { // else a refused answer ends the program, which would wait for its other stream
				env = append(env, "INDEXER_SCAN_URL="+listening.URL+"/scan", "INDEXER_SCAN_HISTORY=transactions")
			}
			peak, said := peakOf(t, program, server.done, env...)
			t.Logf("peak %d MiB", peak>>20)
			require.Contains(t, said, s.log)
			require.Positive(t, peak)
			require.LessOrEqual(t, peak, s.ceiling(), "bytes of resident memory")
		})
	}
}

// scenario is one way to misbehave: serve answers a read of updates after an offset, or of the transaction history.
type scenario struct {
	name  string
	part  int64 // its answers are one so-manieth as large as are read, and so is the memory for them; 0: as 1
	serve func(w http.ResponseWriter, r *http.Request, after int64)
	scan  bool   // it is the Scan service that misbehaves
	log   string // what the indexer says of it; empty: it reads on
}

// ceiling is the most memory that the indexer may take, in bytes.
func (s *scenario) ceiling() int64 {
	if s.part > 1 {
		return memoryBase + (memoryCeiling-memoryBase)/s.part
	}
	return memoryCeiling
}

// enough is how many answers are read. Of those that are good the first one is written while the second one waits, and
// the third one is not read before. After one that is refused nothing is kept.
func (s *scenario) enough() int64 {
	if s.log == "" {
		return 3
	}
	return 2
}

func scenarios() []scenario {
	var all []scenario
	for _, a := range hostileAnswers {
		all = append(all, scenario{name: a.name, part: a.part, log: a.log, serve: func(w http.ResponseWriter, _ *http.Request, after int64) {
			writeTo(w, a.part, func(to *answerWriter) { a.write(to, after) })
		}})
	}
	letters := compressed(strings.Repeat("x", 1<<20))
	return append(all,
		scenario{name: "one text, small on its way", serve: func(w http.ResponseWriter, _ *http.Request, after int64) {
			var whole bytes.Buffer
			writeTo(&whole, 1, func(to *answerWriter) {
				to.page(after, after+1, func() { to.created(after+1, func() { to.put(`{"text":"#"}`) }) })
			})
			before, behind, _ := strings.Cut(whole.String(), "#")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, compressed(before)+strings.Repeat(letters, mostBytes>>20)+compressed(behind)) // the client may have gone
		}},
		scenario{name: "almost all of it at once, and then a byte now and then", part: 8, log: "cut off", serve: func(w http.ResponseWriter, r *http.Request, _ int64) {
			_, _ = io.WriteString(w, `{"updates":["`+strings.Repeat("x", mostBytes/8))
			for range 20 {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(5 * time.Millisecond) // the client's buffers are full by then
			}
		}},
		scenario{name: "records of the transaction history", part: 8, scan: true, serve: func(w http.ResponseWriter, _ *http.Request, _ int64) {
			to := &answerWriter{Writer: bufio.NewWriterSize(w, 1<<16), bytes: mostScanBytes / 8, values: mostScanValues / 8}
			to.put(`{"transactions":[`)
			to.fill(thousand(`{"event_id":"e#%","transaction_type":"new","a":{"b":[[],[],[],[],"` + strings.Repeat("x", 500) + `"]}}`))
			to.put(`]}`)
			_ = to.Flush()
		}},
	)
}

// compressed is a text as one member of a gzip stream, which may have any number of them.
func compressed(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text) // nothing fails in memory
	_ = z.Close()
	return b.String()
}

// writeTo writes an answer that is one so-manieth as large as the client of the participant reads.
func writeTo(w io.Writer, part int64, write func(*answerWriter)) {
	to := &answerWriter{Writer: bufio.NewWriterSize(w, 1<<16), bytes: mostBytes / part, values: mostValues / part}
	write(to)
	_ = to.Flush() // the client may have gone
}

// misbehaving is a participant, and a Scan service, that finds its answers well and then misbehaves.
type misbehaving struct {
	honest http.Handler
	scenario
	served atomic.Int64
	done   chan struct{} // closed when enough was served
}

func (m *misbehaving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	var asked struct {
		After int64 `json:"beginOffsetExclusive"`
		Size  int   `json:"maxPageSize"`
	}
	_ = json.Unmarshal(body, &asked) // what has no body asks for no page
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/scan/v0/transactions" && m.scan, asked.Size > 1 && strings.HasSuffix(r.URL.Path, "-page") && !m.scan:
		m.serve(w, r, asked.After)
		if m.served.Add(1) == m.enough() {
			close(m.done)
		}
	case r.URL.Path == "/v2/state/ledger-end" && !m.scan:
		_, _ = io.WriteString(w, `{"offset":`+strconv.Itoa(never)+`}`)
	case strings.HasPrefix(r.URL.Path, "/scan"):
		_, _ = io.WriteString(w, `{"version":"0.5.0","dso_party_id":"DSO::1","complete":true}`)
	default:
		r.Body = io.NopCloser(bytes.NewReader(body))
		m.honest.ServeHTTP(w, r)
	}
}

// peakOf runs the indexer until done is closed or it ends, and returns the highest resident memory that it had, in bytes,
// and what it said.
func peakOf(t *testing.T, program string, done <-chan struct{}, env ...string) (peak int64, said string) {
	t.Helper()
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "run")
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "GOMEMLIMIT=") && !strings.HasPrefix(variable, "GOGC=") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // killed, or ended by an error, which is in what it said
	}()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		peak = max(peak, resident.Peak(cmd.Process.Pid))
		select {
		case <-look.C:
			continue
		case <-done:
			peak = max(peak, resident.Peak(cmd.Process.Pid))
			_ = cmd.Process.Kill() // it may have ended
			<-ended
		case <-ended:
		}
		require.NoError(t, ctx.Err(), "the test's time: %s", out.String())
		return peak, out.String()
	}
}
