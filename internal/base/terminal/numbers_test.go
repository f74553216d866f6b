package terminal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/ledger"
)

func TestNumbersForPeople(t *testing.T) {
	t.Parallel()
	for n, text := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 21300: "21,300", 1234567: "1,234,567", -100: "-100", -1000: "-1,000"} {
		require.Equal(t, text, Count(n))
	}
	for d, text := range map[time.Duration]string{
		0: "1 s", 31 * time.Second: "31 s", 89 * time.Second: "89 s", 90 * time.Second: "2 min", 4 * time.Minute: "4 min",
		119 * time.Minute: "119 min", 2*time.Hour + 5*time.Minute: "2 h 5 min", 47*time.Hour + 59*time.Minute + 45*time.Second: "48 h 0 min",
		50 * time.Hour: "2 days", 100 * time.Hour: "4 days",
	} {
		require.Equal(t, text, Brief(d), d)
	}
	require.Equal(t, "12/s", Rate(ledger.Progress{Rate: 11.6}))
}
