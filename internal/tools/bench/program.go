package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ledgerindexer/ledger"
)

// usage is what a process took.
type usage struct {
	wall time.Duration // from its start to its end
	cpu  time.Duration // user and system time
	peak int64         // resident memory, in bytes; 0 where the system does not report it

	postgres time.Duration // processor time of the database server meanwhile; 0 where the system does not report it
}

// programs are the programs that are measured, built into a folder.
type programs struct {
	folder  string
	profile string // folder for profiles; empty: none are taken
	taken   int    // profiles
}

// buildPrograms builds what is measured. The tree's own code is compiled, as with make build.
func buildPrograms(ctx context.Context, folder string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", folder, "ledgerindexer/cmd/indexer", "ledgerindexer/cmd/backfill")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w: %s", err, out)
	}
	return nil
}

// command prepares a program. It is configured by flags only: this process's variables that are settings are removed.
func (p *programs) command(ctx context.Context, name, database string, args ...string) (*exec.Cmd, error) {
	path := filepath.Join(p.folder, name)
	// of which none are taken
	if _, ok := profiledPrograms[name]; ok && p.profile != "" && !slices.Contains(args, "prune") {
		own, err := os.Executable()
		if err != nil {
			return nil, err
		}
		p.taken++
		args = append([]string{profileCommand, filepath.Join(p.profile, fmt.Sprintf("run-%03d", p.taken)), name}, args...)
		path = own
	}
	cmd := exec.CommandContext(ctx, path, args...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "INDEXER_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	// What is not measured in both shapes is measured in that of ACS deltas, which the simulated ledgers are made in.
	cmd.Env = append(cmd.Env, "INDEXER_DATABASE_URL="+database, "INDEXER_SHAPE="+string(ledger.ShapeACSDelta))
	return cmd, nil
}

// run runs a program, which must succeed.
func (p *programs) run(ctx context.Context, name, database string, args ...string) (usage, error) {
	cmd, err := p.command(ctx, name, database, args...)
	if err != nil {
		return usage{}, err
	}
	return measure(cmd)
}

// running is a program that runs until it is stopped.
type running struct {
	cmd *exec.Cmd
	log tail
}

// start starts a program.
func (p *programs) start(ctx context.Context, name, database string, args ...string) (*running, error) {
	cmd, err := p.command(ctx, name, database, args...)
	if err != nil {
		return nil, err
	}
	r := &running{cmd: cmd}
	cmd.Stdout, cmd.Stderr = &r.log, &r.log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return r, nil
}

// stop ends the program as an operator would; it must have run until now.
func (r *running) stop() error {
	err := r.cmd.Process.Signal(syscall.SIGTERM)
	if ended := r.cmd.Wait(); ended != nil {
		err = errors.Join(err, fmt.Errorf("%s ended with %w; the end of its log:\n%s", filepath.Base(r.cmd.Path), ended,
			r.log.text))
	}
	return err
}

// measure runs a command, which must succeed.
func measure(cmd *exec.Cmd) (usage, error) {
	var log tail
	cmd.Stdout, cmd.Stderr = &log, &log
	began := time.Now()
	err := cmd.Start()
	if err != nil {
		return usage{}, err
	}
	meter := followPeak(cmd.Process.Pid)
	err = cmd.Wait()
	wall, peak := time.Since(began), meter.stop()
	if err != nil {
		return usage{}, fmt.Errorf("%s: %w; the end of its output:\n%s", filepath.Base(cmd.Path), err, log.text)
	}
	return usage{wall: wall, cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), peak: peak}, nil
}

// tail keeps the end of what is written to it.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 4096
	t.text = append(t.text, p...)
	if n := len(t.text); n > most {
		t.text = append(t.text[:0], t.text[n-most:]...)
	}
	return len(p), nil
}
