package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// program is the command at work, in a process of its own.
type program struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan map[string]any // of its log

	mu      sync.Mutex
	printed bytes.Buffer
}

// Write keeps what the program prints, for the end.
func (p *program) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.printed.Write(text)
}

func (p *program) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.printed.String()
}

func start(t *testing.T, environ map[string]string, args ...string) *program {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	p := &program{t: t, lines: make(chan map[string]any, 10_000)}
	p.cmd = exec.CommandContext(t.Context(), path, args...)
	p.cmd.Env = append(os.Environ(), asProgram+"=1", "INDEXER_LOG_LEVEL=debug", "INDEXER_LOG_FORMAT=json")
	for name, value := range environ {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdout = p
	stderr, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(io.TeeReader(stderr, p)); scanner.Scan(); {
			var line map[string]any
			if json.Unmarshal(scanner.Bytes(), &line) == nil {
				p.lines <- line
			}
		}
	}()
	return p
}

// until waits for a message in the log, and returns its line.
func (p *program) until(message string) map[string]any {
	p.t.Helper()
	for line := range p.lines {
		if line["msg"] == message {
			return line
		}
	}
	p.t.Fatalf("it ended without %q: %s", message, p.text())
	return nil
}

// wait waits for the end and returns the exit code.
func (p *program) wait() int {
	p.t.Helper()
	for range p.lines { // Wait closes the pipe: all has to be read before
	}
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

func (p *program) signal(signal syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(signal))
}

func connect(t *testing.T, database string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// holdBack keeps batches from being committed until the function returned is called.
func holdBack(t *testing.T, database string) (release func()) {
	t.Helper()
	conn := connect(t, database)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE indexer.checkpoints IN SHARE MODE")
	require.NoError(t, err)
	return func() { require.NoError(t, tx.Rollback(context.Background())) }
}

// untilHeldBack waits until a batch is.
func untilHeldBack(t *testing.T, database string) {
	t.Helper()
	conn := connect(t, database)
	for waiting := false; !waiting; time.Sleep(5 * time.Millisecond) {
		err := conn.QueryRow(t.Context(), `SELECT exists (SELECT FROM pg_locks
			WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
				AND relation = 'indexer.checkpoints'::regclass)`).Scan(&waiting)
		require.NoError(t, err)
	}
}

func TestTheProgram(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T){
		"the first signal finishes the batch":                firstSignalFinishesTheBatch,
		"the first signal does not wait for the participant": firstSignalDoesNotWaitForTheParticipant,
		"the second signal ends it at once":                  secondSignalEndsAtOnce,
		"no secret is printed, OAuth":                        noSecretOfOAuthIsPrinted,
		"no secret is printed, user in the URL":              noSecretOfAURLIsPrinted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func firstSignalFinishesTheBatch(t *testing.T) {
	l := grown(50)
	database := throwaway.Migrated(t, migrate)
	p := start(t, map[string]string{
		"INDEXER_DATABASE_URL": database, "INDEXER_LEDGER_URL": participantOf(t, l, sandbox.ServerOptions{}), "INDEXER_LISTEN": "127.0.0.1:0",
	}, "run")
	p.until("caught up")
	release := holdBack(t, database)
	before := l.End()
	l.Grow(10)
	untilHeldBack(t, database)
	p.signal(syscall.SIGTERM)
	release()
	require.Equal(t, config.ExitDone, p.wait(), p.text())
	var watermark int64
	err := connect(t, database).QueryRow(t.Context(), "SELECT ledger_offset FROM indexer.checkpoints WHERE stream = 'updates'").Scan(&watermark)
	require.NoError(t, err)
	require.Greater(t, watermark, before, "the batch under way was given up")
}

func firstSignalDoesNotWaitForTheParticipant(t *testing.T) {
	l := grown(50)
	stalled := make(chan struct{})
	var once sync.Once
	var stall atomic.Bool
	participant := participantOf(t, l, sandbox.ServerOptions{Fault: func(*http.Request) *sandbox.Fault {
		if !stall.Load() {
			return nil
		}
		once.Do(func() { close(stalled) })
		return &sandbox.Fault{Stall: time.Hour}
	}})
	p := start(t, map[string]string{
		"INDEXER_DATABASE_URL": throwaway.Migrated(t, migrate), "INDEXER_LEDGER_URL": participant, "INDEXER_LISTEN": "127.0.0.1:0",
	}, "run")
	p.until("caught up")
	stall.Store(true)
	l.Grow(1) // ends the long poll
	<-stalled
	p.signal(syscall.SIGINT)
	require.Equal(t, config.ExitDone, p.wait(), p.text())
	require.Contains(t, p.text(), `"msg":"stopped"`)
}

func secondSignalEndsAtOnce(t *testing.T) {
	l := grown(50)
	database := throwaway.Migrated(t, migrate)
	p := start(t, map[string]string{
		"INDEXER_DATABASE_URL": database, "INDEXER_LEDGER_URL": participantOf(t, l, sandbox.ServerOptions{}), "INDEXER_LISTEN": "",
	}, "run")
	p.until("caught up")
	release := holdBack(t, database)
	l.Grow(10)
	untilHeldBack(t, database)
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGINT) // two of a kind could be taken for one
	require.Equal(t, config.ExitFailed, p.wait(), p.text())
	release() // not before: it did not wait
}
