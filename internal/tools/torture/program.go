package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// program is one of the programs under test, which is started again whenever it was killed.
type program struct {
	path, folder, name string
	args, env          []string
	kill               faultKind
	tally              *Tally
	// forgiven, if set, reports whether an exit with this code, not 0, is expected; the program is then started again.
	forgiven func(code int) bool

	mu       sync.Mutex
	cmd      *exec.Cmd // the running process; nil: none
	killed   bool      // we killed it
	stopping bool
	lives    int
	began    time.Time
}

// keep starts the program, again after each kill, until it exits or stop ends it. The error of an unexpected exit
// contains the end of the log.
func (p *program) keep(ctx context.Context) error {
	runtime.LockOSThread() // for tie
	defer runtime.UnlockOSThread()
	for {
		log, err := p.begin(ctx)
		if err != nil || log == "" {
			return err
		}
		_ = p.cmd.Wait() // the process state has the error
		again, err := p.end(ctx, log)
		if !again {
			return err
		}
	}
}

// begin starts the process and returns its log file, or "" if it was stopped before.
func (p *program) begin(ctx context.Context) (log string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping || ctx.Err() != nil {
		return "", ctx.Err()
	}
	p.lives++
	log = filepath.Join(p.folder, fmt.Sprintf("%s-%03d.log", p.name, p.lives))
	f, err := os.Create(log)
	if err != nil {
		return "", err
	}
	defer f.Close()
	p.cmd = exec.CommandContext(ctx, p.path, p.args...)
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = f, f
	tie(p.cmd)
	p.killed, p.began = false, time.Now()
	return log, p.cmd.Start()
}

// end checks how the process has ended.
func (p *program) end(ctx context.Context, log string) (again bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.cmd.ProcessState
	status, _ := state.Sys().(syscall.WaitStatus)
	p.cmd = nil
	switch {
	case ctx.Err() != nil:
		return false, fmt.Errorf("%s was not done in time: %w; the end of %s:\n%s", p.name, ctx.Err(), log, tail(log))
	case p.killed && status.Signaled() && status.Signal() == syscall.SIGKILL:
		p.tally.hit(p.kill)
		return true, nil
	case p.stopping && (state.ExitCode() == 0 || status.Signaled() && status.Signal() == syscall.SIGTERM &&
		tail(log) == ""):
		// Before it handles signals it has said nothing.
		return false, nil
	case state.ExitCode() == 0 && p.kill != killIndexer:
		return false, nil
	case p.forgiven != nil && state.ExitCode() > 0 && p.forgiven(state.ExitCode()):
		return true, nil
	}
	return false, fmt.Errorf("%s ended by itself with %v after %v; the end of %s:\n%s", p.name, state,
		time.Since(p.began).Round(ms), log, tail(log))
}

// signal sends a signal, and reports whether there was a process.
func (p *program) signal(s os.Signal) bool {
	return p.cmd != nil && p.cmd.Process.Signal(s) == nil
}

// strike injects a fault of a schedule. A kill counts when the process has ended by it.
func (p *program) strike(ctx context.Context, s fault) (bool, error) {
	switch s.kind {
	case p.kill:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.killed = p.signal(syscall.SIGKILL) || p.killed
		return false, nil
	case pauseProgram:
		return p.pauses(ctx, s.long), nil
	}
	return false, errors.New("a program has no fault " + string(s.kind))
}

// pauses stops the process for a while, and reports whether it continued.
func (p *program) pauses(ctx context.Context, d time.Duration) bool {
	p.mu.Lock()
	life := p.lives
	stopped := p.signal(syscall.SIGSTOP)
	p.mu.Unlock()
	if !stopped {
		return false
	}
	pause(ctx, d)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lives == life && p.signal(syscall.SIGCONT)
}

// stop asks the program to end (SIGTERM). keep returns when it has.
func (p *program) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopping = true
	p.signal(syscall.SIGTERM)
}

// dump makes the process write its stacks to its log and exit.
func (p *program) dump() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signal(syscall.SIGQUIT)
}

// tail returns the last lines of a log.
func tail(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-30):], []byte("\n")))
}
