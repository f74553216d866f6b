package ingest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

func TestParsesAStart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Start{"genesis": {}, "latest": {latest: true}, "0": {}, "17": {offset: 17}} {
		got, err := ParseStart(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "Genesis", "-1", "1.5", "12x", "9223372036854775808", " 1"} {
		_, err := ParseStart(text)
		require.ErrorContains(t, err, "genesis, latest or an offset", text)
	}
}

func startAt(t *testing.T, text string) Start {
	t.Helper()
	start, err := ParseStart(text)
	require.NoError(t, err)
	return start
}

func TestStartsWhereItIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		start         string
		updates       int
		pruned        ledger.Offset
		blind         bool
		at            ledger.Offset
		activeUnknown bool
		what, do      string // where it is refused
	}{
		"genesis":                {start: "genesis", updates: 20},
		"genesis, blind":         {start: "genesis", updates: 20, blind: true},
		"latest":                 {start: "latest", updates: 20, at: 60, activeUnknown: true},
		"latest, pruned":         {start: "latest", updates: 20, at: 60, pruned: 30, activeUnknown: true},
		"latest, empty ledger":   {start: "latest"},
		"an offset":              {start: "31", updates: 20, at: 31, activeUnknown: true},
		"an offset, blind":       {start: "31", updates: 20, blind: true, at: 31, activeUnknown: true},
		"the ledger's end":       {start: "60", updates: 20, at: 60, activeUnknown: true},
		"right where it was cut": {start: "30", updates: 20, pruned: 30, at: 30, activeUnknown: true},

		"genesis, pruned": {start: "genesis", updates: 20, pruned: 30,
			what: "the participant is pruned up to offset 30, which is above offset 0", do: "`backfill`"},
		"an offset, pruned": {start: "29", updates: 20, pruned: 30,
			what: "the participant is pruned up to offset 30, which is above offset 29", do: "--start"},
		"above the end": {start: "61", updates: 20, what: "offset 61 is above the ledger's end 60", do: "--start"},
		"latest and not known": {start: "latest", updates: 20, blind: true,
			what: "the server does not report its ledger end, so the offset can't be chosen", do: "--start"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLoop(t, c.updates)
				l.ledger.pruned, l.ledger.blind = c.pruned, c.blind
				l.memory.started = false
				l.Start, l.ParticipantID = startAt(t, c.start), "participant::1"
				resumed := ledger.Offset(-1)
				l.Watch.Resumed = func(at ledger.Offset) { resumed = at }
				stop := l.run()
				if c.what != "" {
					var problem *ledger.Problem
					require.ErrorAs(t, <-l.done, &problem)
					require.Equal(t, c.what, problem.What)
					require.Contains(t, problem.Do, c.do)
					require.False(t, l.memory.started)
					require.Zero(t, l.retried())
					return
				}
				pass(time.Second)
				require.True(t, l.memory.started)
				require.Equal(t, "participant::1", l.memory.participant)
				require.Equal(t, c.at, resumed)
				require.Equal(t, !c.activeUnknown, l.memory.stateKnown)
				require.ElementsMatch(t, l.ledger.all()[c.at/spacing:], l.memory.got())
				require.NoError(t, stop())
				require.Empty(t, l.memory.mistakes)
			})
		})
	}
}

// Start decides only where there is no checkpoint.
func TestTheCheckpointGoesBeforeStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 20)
		l.memory.at = 30
		l.Start = startAt(t, "latest")
		stop := l.run()
		synctest.Wait()
		require.Equal(t, l.ledger.all()[10:], l.memory.got())
		require.NoError(t, stop())
	})
}
