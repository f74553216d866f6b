package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ words, want string }{
		{"gra", "grant grants"},
		{"index --log-level warn ", "create list drop"},
		{"run --sha", "--shape"},
		{"run --shape ", "acs-delta ledger-effects"},
		{"run --shape=l", "--shape=ledger-effects"},
		{"run --shape = a", "acs-delta"}, // as bash has it
		{"run --shape =", "acs-delta ledger-effects"},
		{"run --no-top", "--no-topology"},
		{"run --blobs --log-f", "--log-format"},
		{"run --config ", ""}, // a file
		{"completion ", "bash zsh fish"},
		{"grant analyst ", ""},
	} {
		code, out, said := command(t, nil, append([]string{"completion", "words", "--"}, strings.Split(c.words, " ")...)...)
		require.Zero(t, code, said)
		var words []string
		for line := range strings.Lines(out) {
			word, help, described := strings.Cut(strings.TrimSpace(line), "\t")
			require.Equal(t, described, help != "")
			words = append(words, word)
		}
		require.Equal(t, c.want, strings.Join(words, " "), c.words)
	}
}

// Each shell gets the words by the script that is printed for it.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	for shell, script := range map[string]string{
		"bash": `source "$0"; COMP_WORDS=(indexer run --shape l) COMP_CWORD=3; _indexer indexer; echo "${COMPREPLY[@]}"`,
		// What zsh has only at its prompt is replaced.
		"zsh":  `compdef() {}; _describe() { print -l "${(@P)2}" }; source "$0"; words=(indexer run --shape l) CURRENT=4; _indexer`,
		"fish": `source $argv[1]; complete -C "indexer run --shape l"`,
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(shell + " is not installed")
			}
			code, printed, said := command(t, nil, "completion", shell)
			require.Zero(t, code, said)
			folder := t.TempDir()
			file := filepath.Join(folder, "script")
			require.NoError(t, os.WriteFile(file, []byte(printed), 0o600))
			self, err := os.Executable()
			require.NoError(t, err)
			require.NoError(t, os.Symlink(self, filepath.Join(folder, "indexer")))
			running := exec.CommandContext(t.Context(), path, "-c", script, file)
			running.Env = append(os.Environ(), asProgram+"=1", "PATH="+folder+":"+os.Getenv("PATH"), "HOME="+folder)
			out, err := running.CombinedOutput()
			require.NoError(t, err, string(out))
			require.Equal(t, "ledger-effects", strings.TrimSpace(string(out)))
		})
	}
}
