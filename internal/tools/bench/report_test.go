package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReportKeepsWhatStandsAboveTheMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "benchmarks.md")
	r := report{command: "make bench", title: "Targets", commit: "abc", about: "*Two cores.*"}
	r.target(target{what: "rate", measured: 0.849, wanted: 0.85, digits: 3})
	r.target(target{what: "memory", measured: 150, wanted: 150, atMost: true, unit: "MiB"})
	r.add(section{title: "Tail", notes: []string{"How it was measured."}, table: [][]string{{"a", "b"}, {"1", "2"}}})
	const measured = marks + "make bench. -->\n" + `
## Targets

| what | measured | wanted | reached | at commit |
|---|---|---|---|---|
| rate | 0.849 | at least 0.850 | **no** | abc |
| memory | 150 MiB | at most 150 MiB | yes | abc |

## Tail

How it was measured.

*Two cores.*

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
	require.Equal(t, "# Benchmarks\n\n"+marks+"make bench. -->\n\n## three\n\n"+marks+"make bench-sql. -->\n\n## four\n", string(text))
}

// A report in pieces replaces the sections and targets that it has, where they are, and leaves the others. One of
// everything leaves none.
func TestReportsInPieces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "benchmarks.md")
	measured := func(commit string, inPieces bool, figure float64, titles ...string) {
		t.Helper()
		r := &report{command: "make bench", title: "Targets", commit: commit, about: "at " + commit, inPieces: inPieces}
		for _, title := range titles {
			r.target(target{what: title, measured: figure, wanted: 1})
			r.add(section{title: title, table: [][]string{{"a"}, {commit}}})
			require.NoError(t, r.write(path)) // as after each part
		}
	}
	const head = "| what | measured | wanted | reached | at commit |\n|---|---|---|---|---|\n"
	of := func(title, commit string) string {
		return "\n## " + title + "\n\nat " + commit + "\n\n| a |\n|---|\n| " + commit + " |\n"
	}
	want := func(below string) {
		t.Helper()
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "# Benchmarks\n\n"+marks+"make bench. -->\n"+below, string(text))
	}
	measured("abc", false, 1, "one", "two", "three")
	measured("def", true, 2, "two", "four")
	want("\n## Targets\n\n" + head + "| one | 1 | at least 1 | yes | abc |\n| two | 2 | at least 1 | yes | def |\n| three | 1 | at least 1 | yes | abc |\n" +
		"| four | 2 | at least 1 | yes | def |\n" + of("one", "abc") + of("two", "def") + of("three", "abc") + of("four", "def"))
	measured("ghi", false, 3, "one")
	want("\n## Targets\n\n" + head + "| one | 3 | at least 1 | yes | ghi |\n" + of("one", "ghi"))
}

func TestThousands(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234", 999.6: "1,000"} {
		require.Equal(t, want, thousands(n))
	}
}
