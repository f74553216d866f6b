package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseTime(t *testing.T) {
	t.Parallel()
	at := func(nanoseconds int) time.Time { return time.Date(2025, 10, 14, 11, 29, 20, nanoseconds, time.UTC) }
	rows := []struct {
		text  string
		want  time.Time
		exact bool // microseconds hold it
	}{
		{"2025-10-14T11:29:20Z", at(0), true},
		{"2025-10-14T11:29:20.1Z", at(100_000_000), true},
		{"2025-10-14T11:29:20.12Z", at(120_000_000), true},
		{"2025-10-14T11:29:20.123Z", at(123_000_000), true},
		{"2025-10-14T11:29:20.1234Z", at(123_400_000), true},
		{"2025-10-14T11:29:20.12345Z", at(123_450_000), true},
		{"2025-10-14T11:29:20.123456Z", at(123_456_000), true},
		{"2025-10-14T11:29:20.1234567Z", at(123_456_000), false},
		{"2025-10-14T11:29:20.12345678Z", at(123_456_000), false},
		{"2025-10-14T11:29:20.123456789Z", at(123_456_000), false},
		{"2025-10-14T11:29:20.123456000Z", at(123_456_000), true},
		{"2025-10-14T13:29:20+02:00", at(0), true},
		{"1969-12-31T23:59:59.999999999Z", time.Date(1969, 12, 31, 23, 59, 59, 999_999_000, time.UTC), false},
		{"0001-01-01T00:00:00Z", time.Time{}, true},
		{"9999-12-31T23:59:59.999999Z", time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC), true},
	}
	for _, row := range rows {
		got, err := ParseTime(row.text)
		require.NoError(t, err, row.text)
		want := Time{Time: row.want, Valid: true}
		if !row.exact {
			want.Exact = row.text
		}
		require.Equal(t, want, got, row.text)
	}
	for _, text := range []string{
		"", "2025-10-14", "2025-10-14T11:29:20", "2025-10-14 11:29:20Z", "2025-10-14T11:29:20.Z", "2025-10-14T11:29:20,5Z",
		"2025-10-14T1:29:20.0Z", "2025-10-14T11:29:20.1234567890Z", "2025-13-14T11:29:20Z", "2025-10-14T11:29:60Z", "+10000-01-01T00:00:00Z",
		"2025-10-14T11:29:20Z ", "2025-10-14T24:00:00Z", "2025-10-14t11:29:20z",
	} {
		_, err := ParseTime(text)
		require.Error(t, err, text)
	}
}
