package active

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/store/internal/rows"
)

// What a batch does is remembered until it is shown, however those beside it are cut, and not longer; what is too much
// is not.
func TestWhatIsRememberedOfBatches(t *testing.T) {
	t.Parallel()
	events := func(from, to int64) (list []rows.Effect) {
		for at := from + 1; at <= to; at++ {
			list = append(list, rows.Effect{Offset: at})
		}
		return list
	}
	p := &Pending{Limit: 30, Enough: 1000}
	after := func(from, to int64) string {
		parts, reach, known := p.After(from, to)
		n := 0
		for _, part := range parts {
			n += len(part)
		}
		return fmt.Sprint(n, " up to ", reach, " ", known)
	}
	p.Add(20, 30, events(20, 30))
	p.Add(0, 10, events(0, 10))
	p.Add(10, 20, events(10, 20)) // touches both
	require.Equal(t, "30 up to 30 true", after(0, 30))
	require.Equal(t, "10 up to 15 true", after(5, 15))
	p.Add(30, 31, events(30, 31))
	require.Equal(t, "0 up to 31 false", after(30, 31), "more than may be remembered")
	p.Forget(15) // of a batch that is shown in part, the rest is still to be shown
	require.Equal(t, "0 up to 10 false", after(0, 30), "is to be read back up to what is remembered")
	require.Equal(t, "15 up to 30 true", after(15, 30))
	require.Equal(t, 20, p.events)
	p.Add(30, 40, events(30, 40))
	require.Equal(t, "25 up to 40 true", after(15, 50))
	p.Forget(40)
	require.Zero(t, p.events)
	require.Empty(t, p.batches)

	p.Add(50, 50, nil)
	require.Empty(t, p.batches, "nothing was covered")
	p.Enough = 10
	p.Add(50, 60, events(50, 60))
	p.Add(60, 70, events(60, 70))
	p.Add(70, 72, events(70, 72))
	require.Equal(t, "10 up to 60 true", after(50, 72), "enough for a transaction")
	require.Equal(t, "15 up to 70 true", after(55, 72))
}
