package access

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		"-7":                            0,
		"1.5":                           0,
		"soon":                          0,
		"99999999999999999999":          24 * time.Hour,
		"Thu, 02 Jan 2025 03:04:35 GMT": 30 * time.Second,
		"Thu, 02 Jan 2025 03:00:00 GMT": 0,
		"Thu, 02 Jan 9999 03:00:00 GMT": 24 * time.Hour,
	} {
		require.Equal(t, want, RetryAfter(header, now), header)
	}
}
