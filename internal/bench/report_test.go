package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReportKeepsWhatStandsAboveTheMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "benchmarks.md")
	r := report{command: "make bench", title: "Targets"}
	r.note("two cores")
	r.target(target{what: "rate", measured: 0.849, wanted: 0.85, digits: 3})
	r.target(target{what: "memory", measured: 150, wanted: 150, atMost: true, unit: "MiB"})
	r.add(section{title: "Tail", notes: []string{"How it was measured."}, table: [][]string{{"a", "b"}, {"1", "2"}}})
	const measured = marks + "make bench. -->\n" + `
- two cores

## Targets

| what | measured | wanted | reached |
|---|---|---|---|
| rate | 0.849 | at least 0.850 | **no** |
| memory | 150 MiB | at most 150 MiB | yes |

## Tail

How it was measured.

| a | b |
|---|---|
| 1 | 2 |
`
	require.NoError(t, r.write(path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "# Benchmarks\n\n"+measured, string(text))

	require.NoError(t, os.WriteFile(path, []byte("# Ours\n\nRead this.\n\n"+r.mark()+"\nold\n"), 0o600))
	require.NoError(t, r.write(path))
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "# Ours\n\nRead this.\n\n"+measured, string(text))
}

// Each command replaces its own part only, whichever comes first.
func TestReportsOfSeveralCommands(t *testing.T) {
	path := filepath.Join(t.TempDir(), "benchmarks.md")
	of := func(command, title string) *report {
		r := &report{command: command}
		r.add(section{title: title})
		return r
	}
	require.NoError(t, of("make bench", "one").write(path))
	require.NoError(t, of("make bench-sql", "two").write(path))
	require.NoError(t, of("make bench", "three").write(path))
	require.NoError(t, of("make bench-sql", "four").write(path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "# Benchmarks\n\n"+marks+"make bench. -->\n\n\n## three\n\n"+marks+"make bench-sql. -->\n\n\n## four\n", string(text))
}

func TestThousands(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234", 999.6: "1,000"} {
		require.Equal(t, want, thousands(n))
	}
}
