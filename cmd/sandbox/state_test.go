package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/sandbox"
)

// grownBy is a ledger as a process serves it that keeps its state in a file.
func grownBy(t *testing.T, file string, updates int) (*state, *sandbox.Ledger) {
	t.Helper()
	s, l, err := growAgain(file, sandbox.Options{Seed: 7}, updates)
	require.NoError(t, err)
	return s, l
}

// requireBegins requires that a ledger begins with all that another one has shown.
func requireBegins(t *testing.T, l, shown *sandbox.Ledger) {
	t.Helper()
	require.GreaterOrEqual(t, l.Len(), shown.Len())
	require.GreaterOrEqual(t, l.End(), shown.End())
	require.Equal(t, shown.ParticipantID(), l.ParticipantID())
	scope := sandbox.Scope{Shape: sandbox.LedgerEffects}
	require.Empty(t, sandbox.Diff(shown.Truth(scope, shown.End()), l.Truth(scope, shown.End())))
}

// A process that is killed at any moment, or stopped, is followed by one with the same ledger.
func TestTheLedgerIsGrownAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ledger")
	_, before := grownBy(t, file, 50)
	require.Equal(t, 50, before.Len())
	for range 4 {
		s, l := grownBy(t, file, 50)
		requireBegins(t, l, before)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.live(ctx, l, 500) }()
		for began := l.Len(); l.Len() < began+20; {
			time.Sleep(time.Millisecond)
			left := filepath.Join(t.TempDir(), "left by a kill")
			shown := l.Len() // before what the file says is read
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(left, text, 0o600))
			_, again := grownBy(t, left, 50)
			require.GreaterOrEqual(t, again.Len(), shown)
			require.LessOrEqual(t, again.Len(), l.Len()+1000)
		}
		stop()
		require.NoError(t, <-done)
		_, again := grownBy(t, file, 50)
		require.Equal(t, l.Len(), again.Len(), "stopped, and not killed")
		requireBegins(t, again, l)
		before = l
	}
	_, longer := grownBy(t, file, before.Len()+30)
	require.Equal(t, before.Len()+30, longer.Len())
	requireBegins(t, longer, before)
}

func TestStatesThatAreRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	good := filepath.Join(folder, "good")
	grownBy(t, good, 20)
	for name, c := range map[string]struct{ text, says string }{
		"empty":           {"", "remove it to begin another ledger"},
		"another seed":    {`{"seed": 8, "updates": 20, "grown": 20, "end": 27}`, "from seed 8, not 7"},
		"elsewhere too":   {`{"seed": 7, "elsewhere": true, "updates": 20, "grown": 20, "end": 27}`, "--elsewhere=true"},
		"another release": {`{"seed": 7, "updates": 20, "grown": 20, "end": 1}`, "another release of the sandbox"},
	} {
		file := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		_, _, err := growAgain(file, sandbox.Options{Seed: 7}, 20)
		require.ErrorContains(t, err, c.says, name)
		require.ErrorContains(t, err, "--state", name)
	}
	_, _, err := growAgain(filepath.Join(folder, "missing", "file"), sandbox.Options{Seed: 7}, 20)
	require.ErrorContains(t, err, "--state")

	// Nobody is shown what is not noted.
	s, l := grownBy(t, filepath.Join(folder, "gone"), 20)
	s.file = filepath.Join(folder, "missing", "file")
	require.ErrorContains(t, s.live(t.Context(), l, 1000), "--state")
	require.Equal(t, 20, l.Len())

	for _, flags := range [][]string{{"--replay", good}, {"--all"}} {
		var out, errs bytes.Buffer
		require.Equal(t, exitFailed, exitCode(run(t.Context(), append(flags, "--state", good), &out), &errs))
		require.Contains(t, errs.String(), "--state")
	}
}

// The command keeps its state when it is told to.
func TestStateOfTheCommand(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ledger")
	said, url, stop := start(t, "--updates", "30", "--rate", "1000", "--state", file)
	require.Contains(t, said, "serving 30 updates")
	_, participant := get(t, url+"/v2/parties/participant-id", "")
	var end struct{ Offset int64 }
	for end.Offset < 100 {
		_, body := get(t, url+"/v2/state/ledger-end", "")
		require.NoError(t, json.Unmarshal([]byte(body), &end))
	}
	require.NoError(t, stop())

	_, url, stop = start(t, "--updates", "30", "--state", file)
	_, body := get(t, url+"/v2/parties/participant-id", "")
	require.Equal(t, participant, body)
	shown := end.Offset
	_, body = get(t, url+"/v2/state/ledger-end", "")
	require.NoError(t, json.Unmarshal([]byte(body), &end))
	require.GreaterOrEqual(t, end.Offset, shown)
	require.NoError(t, stop())
}
