package ingest

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzParseStart(f *testing.F) {
	for _, text := range []string{"", "genesis", "latest", "0", "-1", "+7", "007", "9223372036854775807", "9223372036854775808", "1e3", " 5", "Genesis"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		start, err := ParseStart(text)
		switch {
		case err != nil:
			require.Zero(t, start)
			require.ErrorContains(t, err, strconv.Quote(text))
		case start.latest:
			require.Equal(t, "latest", text)
		default:
			require.GreaterOrEqual(t, int64(start.offset), int64(0))
			again, err := ParseStart(strconv.FormatInt(int64(start.offset), 10))
			require.NoError(t, err)
			require.Equal(t, start, again)
		}
	})
}
