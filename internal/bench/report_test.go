package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReportKeepsWhatStandsAboveTheMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "benchmarks.md")
	var r report
	r.note("two cores")
	r.target(target{what: "rate", measured: 0.849, wanted: 0.85, digits: 3})
	r.target(target{what: "memory", measured: 150, wanted: 150, atMost: true, unit: "MiB"})
	r.add(section{title: "Tail", notes: []string{"How it was measured."}, table: [][]string{{"a", "b"}, {"1", "2"}}})
	const measured = mark + `
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

	require.NoError(t, os.WriteFile(path, []byte("# Ours\n\nRead this.\n\n"+mark+"\nold\n"), 0o600))
	require.NoError(t, r.write(path))
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "# Ours\n\nRead this.\n\n"+measured, string(text))
}

func TestThousands(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234", 999.6: "1,000"} {
		require.Equal(t, want, thousands(n))
	}
}
