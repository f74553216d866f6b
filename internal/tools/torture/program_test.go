package torture

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// script is a program made of a shell script, started. Its end with one code is forgiven.
func script(t *testing.T, text string, forgiven int) (p *program, ended chan error) {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "program")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700))
	p = &program{path: path, folder: folder, name: "program", kill: killIndexer, tally: newTally()}
	p.forgiven = func(code int) bool { return code == forgiven }
	ended = make(chan error, 1)
	go func() { ended <- p.keep(t.Context()) }()
	return p, ended
}

func (p *program) life() (n int, alive bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lives, p.cmd != nil && p.cmd.Process != nil
}

func lives(t *testing.T, p *program, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		lives, alive := p.life()
		return alive && lives == n
	}, 5*time.Minute, time.Millisecond)
}

// Killed it is started again, and the kill is counted once; paused it continues; asked to end it ends.
func TestAProgramThatIsKilledIsStartedAgain(t *testing.T) {
	t.Parallel()
	p, ended := script(t, "trap 'exit 0' TERM\nwhile :; do sleep 0.05; done", 1)
	lives(t, p, 1)
	took, err := p.strike(t.Context(), fault{kind: killIndexer})
	require.NoError(t, err)
	require.False(t, took, "it counts when it has ended")
	lives(t, p, 2)
	require.Equal(t, 1, p.tally.of(killIndexer))
	took, err = p.strike(t.Context(), fault{kind: pauseProgram, long: ms})
	require.NoError(t, err)
	require.True(t, took)
	p.stop()
	require.NoError(t, <-ended)
	require.Equal(t, 1, p.tally.Total())

	took, err = p.strike(t.Context(), fault{kind: pauseProgram})
	require.NoError(t, err)
	require.False(t, took, "there is nothing to pause")
}

// One that ends by itself is a failure, with its code and the end of its log, even with code 0; unless that is
// forgiven.
func TestAProgramThatEndsByItselfIsAFailure(t *testing.T) {
	t.Parallel()
	_, ended := script(t, "echo so it ends; exit 3", 1)
	err := <-ended
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "so it ends")

	_, ended = script(t, "exit 0", 1)
	require.ErrorContains(t, <-ended, "ended by itself")

	p, ended := script(t, "[ -e \"$0.again\" ] && exit 3; touch \"$0.again\"; exit 1", 1)
	require.ErrorContains(t, <-ended, "exit status 3")
	n, _ := p.life()
	require.Equal(t, 2, n)
}
