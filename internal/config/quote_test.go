package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShellWord(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"/tmp/a-b_c.1": "/tmp/a-b_c.1", "/tmp/a b": "'/tmp/a b'", "it's $x": `'it'\''s $x'`, "": "''",
		"#bank:Main:Account": "'#bank:Main:Account'",
	} {
		require.Equal(t, want, ShellWord(word))
	}
}
