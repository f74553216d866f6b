package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/app"
	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/audit"
)

func goesOn(t *testing.T, environ map[string]string) {
	t.Helper()
	code, _, stderr := command(t, environ, "run", "--until-current")
	require.Equal(t, config.ExitDone, code, stderr)
}

// What both have, and only one of them, is said before it is done, and after.
func TestReanchor(t *testing.T) {
	t.Parallel()
	slow.Long(t, "runs command after command")
	environ, before := indexed(t, grown(400), sandbox.ServerOptions{}, nil)
	said, _ := printed(t, config.ExitDone, environ, "reanchor")
	require.Equal(t, fmt.Sprintf("the participant has what is stored after offset 0, at the same offsets: %d updates. There is nothing to do\n", len(before["updates"])), said)

	restored := grown(395)
	restored.Redeal(200, 1)
	common := restored.Offset(199)
	environ["INDEXER_LEDGER_URL"] = participantOf(t, restored, sandbox.ServerOptions{})
	truth := restored.Truth(sandbox.Scope{Shape: sandbox.LedgerEffects}, restored.End())
	words := func(args ...string) string {
		said, _ := printed(t, config.ExitDone, environ, append([]string{"reanchor"}, args...)...)
		return strings.Join(strings.Fields(said), " ")
	}
	lost := 395 - len(truth["updates"])
	require.Positive(t, lost)
	parting := []string{
		fmt.Sprintf("200 updates after offset 0 up to %d are at the same offsets; after it they part: the database has %s at offset ", common, restored.UpdateID(200)),
		fmt.Sprintf("the participant has %s at offset %d, recorded 2026-", restored.UpdateID(200), restored.Offset(200)),
		fmt.Sprintf("AFTER OFFSET %d UPDATES both have, at other offsets %d both have, at the same offset 0 only the participant has 0 only the database has %d", common, 195-lost, lost+5),
		fmt.Sprintf("%d that only the database has are lost with it; the first are 1220", lost),
	}
	for _, c := range []struct {
		args []string
		end  string
	}{
		{nil, "nothing was changed: add --apply"}, {[]string{"--apply"}, fmt.Sprintf("to %d: start the indexer, it reads on from there", common)},
	} {
		said := words(c.args...)
		for _, part := range append(parting, c.end) {
			require.Contains(t, said, part)
		}
	}
	require.Contains(t, words(), "There is nothing to do")
	goesOn(t, environ)
	require.Empty(t, sandbox.Diff(truth, storedRows(t, connect(t, environ["INDEXER_DATABASE_URL"]))))
}

// Where the last update in common is stored above the watermark, what is equal goes further than what is kept.
func TestWhatIsEqualIsSaidUpToWhereTheyPart(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, printDivergence(&out, &app.Reanchored{Divergence: audit.Divergence{From: 10, Watermark: 20, Common: 30, Equal: 15, Parted: true}, To: 20}))
	require.Contains(t, out.String(), "15 updates after offset 10 up to 30 are at the same offsets")
	require.Contains(t, out.String(), "AFTER OFFSET 30")
}
