package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

func TestParseBefore(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]store.PruneBefore{
		"1":                    {Offset: new(ledger.Offset(1))},
		"9223372036854775807":  {Offset: new(ledger.Offset(9223372036854775807))},
		"2026-01-31":           {Time: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)},
		"2026-01-31T12:00:00Z": {Time: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)},
		"400d":                 {Age: 400 * 24 * time.Hour},
		"36h":                  {Age: 36 * time.Hour},
		"1h30m":                {Age: 90 * time.Minute},
	} {
		got, err := ParseBefore(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "0", "-1", "9223372036854775808", "0d", "-1d", "1.5d", "106752d", "d", "0h", "-5m", "2026-02-30", "2026-1-1", "0000-01-01", "yesterday", "1y", "5 d",
	} {
		_, err := ParseBefore(text)
		require.ErrorContains(t, err, "is neither", text)
	}
}

func TestAgesAreShownAsGiven(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"400d", "1d", "36h0m0s", "1h30m0s"} {
		var a Age
		require.NoError(t, a.UnmarshalText([]byte(text)))
		require.Equal(t, text, a.String())
	}
}
